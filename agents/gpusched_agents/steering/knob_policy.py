"""An agent of the steering environment as a policy: STS-X, whose knobs an actor sets every so many rounds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from gpusched_baselines.steering_env.features import feature_count, observe
from gpusched_baselines.steering_env.knobs import SETS, Knobs, forget_cheapest, knob_count, knobs_of, steering_of
from gpusched_baselines.sts_x import StsX
from gpusched_env.errors import InputError
from gpusched_env.model import checks
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.policy import FREE_COLUMNS

if TYPE_CHECKING:
    from gpusched_agents.spec import AgentSpec
    from gpusched_agents.steering.actor import Actor
    from gpusched_baselines.sts_x.plan import Steering
    from gpusched_env.arrays import Floats
    from gpusched_env.model import Instance
    from gpusched_env.simulator import View
    from gpusched_env.simulator.run import Board


def knob_set(inputs: int, outputs: int) -> str | None:
    """Return which set of knobs an actor of these sizes has, `round` or `jobs`; None for other sizes."""
    types = (inputs - feature_count(0)) // (feature_count(1) - feature_count(0))
    fits = types > 0 and feature_count(types) == inputs
    return next((name for name in SETS if fits and knob_count(types, name) == outputs), None)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class KnobPolicy(StsX):
    """STS-X with knobs that an actor sets; it decides as in an episode of the steering environment.

    The knobs stand in the first row of the policy's memory and in those of active jobs, behind STS-X's columns: the
    number of the round in which they were set, then the knobs, then what the actor carries on.

    Args:
        actor: Sets the knobs.
        rounds: After how many rounds it sets them again, ≥ 1, as in its training.
        knobs: Which there are, `round` or `jobs`, as in its training.
        spec: What it was trained for, if that is known.

    Raises:
        InputError: A value is not allowed.
    """

    actor: Actor
    rounds: int = 16
    knobs: str = "round"
    spec: AgentSpec | None = None

    def __post_init__(self) -> None:
        StsX.__post_init__(self)
        checks.whole("rounds", self.rounds)
        knob_count(1, self.knobs)

    def check(self, instance: Instance) -> None:
        """Check that the actor fits an instance.

        Raises:
            InputError: It was trained for another number of GPU types, or, where that is known, for other kinds of
                configurations.
        """
        if self.spec is not None:
            self.spec.check(instance.configurations, instance.gpu_types)
        types = len(instance.gpu_types)
        needed = feature_count(types), knob_count(types, self.knobs)
        if (self.actor.inputs, self.actor.outputs) != needed:
            allowed = f"as many as the agent was trained with: it has {self.actor.outputs} knobs, not {needed[1]}"
            raise InputError("instance.gpu_types", f"{types} of them", allowed)

    def memory_columns(self, instance: Instance) -> int:
        """Return the columns of memory that it needs."""
        types = len(instance.gpu_types)
        return FREE_COLUMNS + types + 1 + knob_count(types, self.knobs) + self.actor.state_size

    def _plan(self, view: View) -> None:
        super(KnobPolicy, self)._plan(view)  # a class with slots has no plain super()
        board = view.board
        if self._present(board).priced:  # as in the environment: what is cheapest now need not be so next time
            forget_cheapest(board)

    def _steering(self, board: Board, rate: Floats) -> Steering:
        stored = self._stored(board)
        round_ = int(board.count[at.ROUND])
        if not self._holds(stored[0, 0], round_):
            stored[0] = stored[stored[:, 0].argmax()]  # another row, in a run that goes on with other jobs (service)
        if not self._holds(stored[0, 0], round_):
            seen = np.zeros(feature_count(board.room.shape[0]))
            observe(board, rate, seen)
            last = 1 + self.actor.outputs
            stored[0, 0], stored[0, 1:last] = round_, self.actor.act(seen.astype(np.float32), stored[0, last:])
        stored[board.active[: board.count[at.ACTIVE]]] = stored[0]
        return steering_of(self._present(board), board, rate)

    def _holds(self, since: float, round_: int) -> bool:
        """Whether what was set in one round, 0 for none, holds in another."""
        return since > 0.0 and (since - 1) // self.rounds == (round_ - 1) // self.rounds

    def _stored(self, board: Board) -> Floats:
        """Return where the knobs stand, (J, 1 + K + S): the round in which they were set, they, the actor's state."""
        return board.memory[:, FREE_COLUMNS + board.room.shape[0] :]

    def _present(self, board: Board) -> Knobs:
        return knobs_of(self._stored(board)[0, 1 : 1 + self.actor.outputs], board.facts.configs, board.room.shape[0])
