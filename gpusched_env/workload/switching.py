"""What switching of jobs costs: processes that start, states that move, layers that are sent while others compute."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpusched_env.model.job import BYTES_PER_GIB, moving_s
from gpusched_env.workload.scenario.sharing import SwitchingCosts
from gpusched_env.workload.start_up.architectures import layers_of
from gpusched_env.workload.start_up.pipeline import Pass, StartUpCosts, best_groups, pipelined_s

if TYPE_CHECKING:
    from gpusched_env.workload.scenario.sharing import Switching
    from gpusched_env.workload.tables.applications import Application

TIMED_ON = "V100"
"""GPU type on which iterations of pipelined starts are timed."""
STOP_START_S = 6.4
"""Stopping a process and starting another one, until the model is ready [s]: mean of 5.6, 6.2 and 7.2 (PipeSwitch)."""
ONE_PROCESS_START_S = 0.19
"""Stopping a task and starting the next one in the same process [s], a model's transmission included (PipeSwitch)."""
ONE_PROCESS_S = 0.15
"""The same without the transmission [s]: mean of 0.17, 0.14 and 0.15."""
PIPELINED_S = 0.003
"""The same where another process is ready and layers are sent while others compute [s]."""


def switching_costs(switching: Switching, application: Application, restart_s: float | None) -> SwitchingCosts:
    """Return the costs of switching of an application.

    Where it continues, its state S leaves the GPU and comes back, at a bandwidth B: 2 S / B, and the model's constant;
    or, with `start_up = "layers"` and a model whose layers are known, S / B and what the pipeline adds.

    Args:
        restart_s: Seconds of a restart that are given; None for those of the model.
    """
    stop_start_s = STOP_START_S if restart_s is None else restart_s
    moves_s = moving_s(application.state_gib, switching.bandwidth_gb_per_s)
    costs = {
        None: SwitchingCosts(0.0, None, 0.0 if restart_s is None else restart_s),
        "free": SwitchingCosts(0.0, 0.0, 0.0),
        "stop-start": SwitchingCosts(stop_start_s, stop_start_s, stop_start_s),
        "one-process": SwitchingCosts(ONE_PROCESS_START_S, ONE_PROCESS_S + moves_s, stop_start_s),
        "pipelined": SwitchingCosts(PIPELINED_S, PIPELINED_S + moves_s, stop_start_s),
    }[switching.model]
    added = added_s(application, switching.bandwidth_gb_per_s) if switching.start_up == "layers" else None
    if added is not None:
        costs = SwitchingCosts(added[0], moves_s / 2.0 + added[1], stop_start_s)
    return switching.given_costs(costs.restart_s, costs.start_s, costs.resume_s)


def added_s(application: Application, bandwidth_gb_per_s: float) -> tuple[float, float] | None:
    """Return what a pipeline adds to a first start and to a resumption [s]; None where no layers are known.

    A first start sends the weights while the forward pass computes; a resumption the whole state, that of gradients and
    optimiser while the backward pass does. Passes are those of the application's batch on one V100.
    """
    layers, batches = layers_of(application.name), application.batches_per_epoch
    epoch_s = application.seconds_per_epoch.get((TIMED_ON, 1))
    if not layers or not batches or epoch_s is None:
        return None
    machine, seconds = StartUpCosts(bandwidth_gb_per_s), epoch_s / batches
    passes = Pass.forward(layers, seconds / 3.0), Pass.iteration(layers, application.state_gib * BYTES_PER_GIB, seconds)
    start, resume = (pipelined_s(task, best_groups(task, machine), machine) - task.total_s for task in passes)
    return start, resume
