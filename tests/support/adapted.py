"""Adaptation agents for tests: networks with few or random weights, and STS-X that is told what to do."""

from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpusched_agents.files.storage import weight_shapes
from gpusched_agents.network.control_policy import ControlPolicy
from gpusched_agents.spec import AgentSpec, NetworkConfig
from gpusched_agents.training.evolved import EvolvedNetwork
from gpusched_baselines import StsX
from gpusched_baselines.sts_x.plan import CONTROLS, ENERGY_CONTROLS, Adaptation
from gpusched_env import Instance
from gpusched_env.arrays import Floats
from gpusched_env.model.configuration import Configuration
from gpusched_env.simulator import View
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.run import Board

NETWORK = NetworkConfig("control-set", hidden=3, rounds=1)  # which sets the controls in every round
MET = (Configuration("V", 1), Configuration("V", 1, share=0.5), Configuration("V", 1, nodes=2))  # of every kind


def spec_of(instance: Instance) -> AgentSpec:
    """Make the spec of an agent that has met everything, and may decide on large clusters."""
    return AgentSpec.of("control-set", MET, instance.gpu_types, max_configurations=256, max_gpu_types=32)


def adapted_sts_x(instance: Instance, weights: NDArray[np.floating] | None = None, rounds: int = 1) -> ControlPolicy:
    """Make an agent; with weights of 0 unless there are others."""
    flat = nothing(instance) if weights is None else weights
    return replace(EvolvedNetwork(spec_of(instance), NETWORK).policy(flat), name="adapted", rounds=rounds)


def nothing(instance: Instance) -> NDArray[np.float32]:
    """Return weights of 0."""
    shapes = weight_shapes(spec_of(instance), NETWORK)
    return np.zeros(sum(int(np.prod(shape)) for shape in shapes.values()), dtype=np.float32)


def randomised(instance: Instance, seed: int, scale: float = 1.0) -> NDArray[np.float32]:
    return np.random.default_rng(seed).normal(0.0, scale, len(nothing(instance))).astype(np.float32)


@dataclass(frozen=True, slots=True, kw_only=True)
class Given(StsX):
    """STS-X with the same adaptation in every round.

    Args:
        logs: Logarithms of factors: by control for all jobs, or by job and control.
        critical: Factors on the rates of configurations for critical jobs, by index.
        deferrable: Likewise for deferrable jobs.
        delay: Logarithm of the factor on the delay over which the value of a second is taken.
        from_s: From when on it has this adaptation [s]; STS-X before.
    """

    logs: Mapping[int | tuple[int, int], float] = field(default_factory=dict)
    critical: Mapping[int, float] = field(default_factory=dict)
    deferrable: Mapping[int, float] = field(default_factory=dict)
    delay: float = 0.0
    from_s: float = 0.0

    def _adaptation(self, view: View, board: Board, rate: Floats) -> Adaptation:
        active = board.active[: board.count[at.ACTIVE]]
        jobs, critical, deferrable = np.zeros((len(active), CONTROLS)), rate.copy(), rate.copy()
        if board.clock[at.NOW] < self.from_s:
            return Adaptation(jobs, critical, deferrable, not self.deferrable, 0.0, np.zeros(ENERGY_CONTROLS))
        for where, value in self.logs.items():
            rows, control = (slice(None), where) if isinstance(where, int) else (active == where[0], where[1])
            jobs[rows, control] = value
        for rates, factors in ((critical, self.critical), (deferrable, self.deferrable)):
            for config, factor in factors.items():
                rates[:, config] *= factor
        return Adaptation(jobs, critical, deferrable, not self.deferrable, self.delay, np.zeros(ENERGY_CONTROLS))


class InThisProcess:
    """Takes the place of the pool of processes: does all at once, in this one."""

    _processes = None

    def __init__(self, *_arguments: object, **_settings: object) -> None:
        self.calls = 0

    def submit(self, function: Callable[..., Any], *arguments: object) -> Future[Any]:
        self.calls += 1
        future: Future[Any] = Future()
        future.set_result(function(*arguments))
        return future

    def shutdown(self, **_settings: object) -> None:
        """Do nothing: there are no processes."""
