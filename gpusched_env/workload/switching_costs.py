"""What switches cost applications, by how they are made: presets from PipeSwitch's published log (OSDI 2020)."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from gpusched_env.workload.scenario.switching import Switching

STOP_START_S = 6.4
"""Stopping a process and starting another one, until the model is ready [s]: mean of 5.6, 6.2 and 7.2 (PipeSwitch)."""
ONE_PROCESS_START_S = 0.19
"""Stopping a task and starting the next one in the same process [s], a model's transmission included (PipeSwitch)."""
ONE_PROCESS_S = 0.15
"""The same without the transmission [s]: mean of 0.17, 0.14 and 0.15."""
PIPELINED_S = 0.003
"""The same where another process is ready and layers are sent while others compute [s]."""
BYTES_PER_GIB = 2.0**30


class SwitchingCosts(NamedTuple):
    """Seconds without progress at a start, where a job goes on, and at a restart; no `resume_s`: none of its own."""

    start_s: float
    resume_s: float | None
    restart_s: float


def switching_costs(switching: Switching, state_gib: float, restart_s: float | None) -> SwitchingCosts:
    """Give what switches cost an application.

    Where it goes on, its state S leaves the GPU and comes back, at a bandwidth B: 2 S / B, and what the model adds.

    Args:
        switching: What the scenario says.
        state_gib: What is moved when jobs are switched [GiB].
        restart_s: Seconds of a restart that are given; None for those of the model.
    """
    stop_start_s = STOP_START_S if restart_s is None else restart_s
    moves_s = 2.0 * state_gib * BYTES_PER_GIB / (switching.bandwidth_gb_per_s * 1e9)
    costs = {
        None: SwitchingCosts(0.0, None, 0.0 if restart_s is None else restart_s),
        "free": SwitchingCosts(0.0, 0.0, 0.0),
        "stop-start": SwitchingCosts(stop_start_s, stop_start_s, stop_start_s),
        "one-process": SwitchingCosts(ONE_PROCESS_START_S, ONE_PROCESS_S + moves_s, stop_start_s),
        "pipelined": SwitchingCosts(PIPELINED_S, PIPELINED_S + moves_s, stop_start_s),
    }[switching.model]
    start_s = costs.start_s if switching.start_s is None else switching.start_s
    resume_s = costs.resume_s if switching.resume_s is None else switching.resume_s
    return SwitchingCosts(start_s, resume_s, costs.restart_s)


def switching_columns(
    costs: Sequence[SwitchingCosts], application: NDArray[np.int64], *, told: bool
) -> dict[str, NDArray[np.float64]]:
    """Give the columns of a table of jobs, by name, for the application of every job, (J,).

    Where distances are `told` apart although nothing says what going on costs, that is a restart: then a job that
    changes from guest to host on its GPU loses nothing.
    """
    columns = {
        "start_s": np.array([each.start_s for each in costs])[application],
        "restart_s": np.array([each.restart_s for each in costs])[application],
    }
    if any(each.resume_s is None for each in costs):
        return columns | {"resume_s": columns["restart_s"]} if told else columns
    return columns | {"resume_s": np.array([each.resume_s for each in costs])[application]}
