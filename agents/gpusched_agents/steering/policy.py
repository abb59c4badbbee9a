"""A steering agent as a policy: STS-X, told by a network what is dear, urgent and worth a change."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from gpusched_agents.steering.network import CALM, URGENT, say
from gpusched_baselines.steering_env.features import JOBS, OPTIONS, ROUND, observe_round
from gpusched_baselines.sts_x import StsX
from gpusched_baselines.sts_x.appraisal import FREE_RATE
from gpusched_baselines.sts_x.steering import KNOBS, Steering
from gpusched_env.kernel import kernel
from gpusched_env.simulator import layout as at

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from gpusched_agents.spec import AgentSpec
    from gpusched_env.arrays import Floats, Singles
    from gpusched_env.model import Instance
    from gpusched_env.simulator.run import Board


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SteeringPolicy(StsX):
    """STS-X with a steersman. With weights of 0 it does what STS-X does.

    Args:
        spec: What it was trained for.
        weights: The network's weights, end to end (`gpusched_agents.steering.network.flat_of`).
        hidden: Width of its hidden layer.
    """

    spec: AgentSpec
    weights: NDArray[np.float32]
    hidden: int

    def check(self, instance: Instance) -> None:
        """Check that the agent can decide on this instance.

        Raises:
            InputError: It has more configurations or GPU types than it may be used with, or another kind of them.
        """
        self.spec.check(instance.configurations, instance.gpu_types)

    def _steering(self, board: Board, rate: Floats) -> Steering:
        said, urgent, calm, patience = steer(board, rate, self.weights, self.hidden)
        return Steering(said, urgent, calm, False, patience)


@kernel
def steer(board: Board, rate: Floats, flat: Singles, width: int) -> tuple[Floats, Floats, Floats, float]:
    """Look at a round and say what `Steering` holds: of every job, the rates of urgent and calm ones, the patience."""
    active, configs = board.count[at.ACTIVE], board.facts.configs.shape[0]
    jobs, whole, options = np.empty((active, len(JOBS))), np.empty(len(ROUND)), np.empty((configs, len(OPTIONS)))
    observe_round(board, rate, FREE_RATE, jobs, whole, options)
    said, prices = np.empty((active, KNOBS)), np.empty((2, configs))
    patience = say(jobs, whole, options, flat, width, said, prices)
    return said, rate * np.exp(prices[URGENT]), rate * np.exp(prices[CALM]), patience
