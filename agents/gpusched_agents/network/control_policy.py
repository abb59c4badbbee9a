"""The policy that decides as STS-X with controls that a network sets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from gpusched_baselines.adaptation_env.controls import (
    SETS,
    Controls,
    adaptation_of,
    control_count,
    controls_of,
    forget_cheapest,
)
from gpusched_baselines.adaptation_env.features import remember_offers
from gpusched_baselines.adaptation_env.observation import observe, rows_of
from gpusched_baselines.sts_x import StsX
from gpusched_baselines.sts_x.type_prices import MOST_RECENT
from gpusched_env.errors import InputError
from gpusched_env.model import Instance, checks
from gpusched_env.simulator import View
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.policy import FREE_COLUMNS

if TYPE_CHECKING:
    from gpusched_agents.network.actors import Actor
    from gpusched_agents.spec import AgentSpec
    from gpusched_baselines.sts_x.plan import Adaptation
    from gpusched_env.arrays import Floats
    from gpusched_env.simulator.run import Board

SQUASHED = ("sac", "td3", "tqc")
"""Algorithms with tanh on their actions, and ReLU between their layers; the others have tanh between layers."""


def control_set(inputs: int, outputs: int) -> str | None:
    """Return the set of controls of an actor of these sizes, `round` or `jobs`; None for other sizes."""
    for name in SETS:
        types, rest = divmod(outputs - control_count(0, name), control_count(1, name) - control_count(0, name))
        if rest == 0 and types > 0 and rows_of(inputs, types, name) is not None:
            return name
    return None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ControlPolicy(StsX):
    """STS-X with controls that an actor sets; it decides as in an episode of the adaptation environment.

    The controls are kept in the first row of the policy's memory and in those of active jobs, after STS-X's columns:
    the number of the round in which they were set, then the controls, then the state of the actor.

    Args:
        actor: The network that sets the controls.
        rounds: Number of rounds after which it sets them again, ≥ 1, as in its training.
        controls: The set of controls, `round` or `jobs`, as in its training.
        spec: What it was trained for, if that is known.
        fades: Whether it decides as STS-X where there are kinds of configurations that its training did not have; else
            it refuses them.

    Raises:
        InputError: A value is not allowed.
    """

    actor: Actor
    rounds: int = 16
    controls: str = "round"
    spec: AgentSpec | None = None
    fades: bool = False
    jobs_over: ClassVar[int] = MOST_RECENT

    def __post_init__(self) -> None:
        StsX.__post_init__(self)
        checks.whole("rounds", self.rounds)
        control_count(1, self.controls)

    def check(self, instance: Instance) -> None:
        """Check that the actor fits an instance.

        Raises:
            InputError: It was trained for another number of GPU types, or, where that is known and it does not fade,
                for other kinds of configurations.
        """
        if self.spec is not None:
            self.spec.check(instance.configurations, instance.gpu_types, other_kinds=self.fades)
        types = len(instance.gpu_types)
        needed, actor = control_count(types, self.controls), self.actor.for_types([v.name for v in instance.gpu_types])
        if rows_of(actor.inputs, types, self.controls) is None or actor.outputs != needed:
            allowed = f"as many as the agent was trained with: it has {actor.outputs} controls, not {needed}"
            raise InputError("instance.gpu_types", f"{types} of them", allowed)

    def memory_columns(self, instance: Instance) -> int:
        """Return the columns of memory that it needs."""
        return self._columns(len(instance.gpu_types)).stop

    def _columns(self, types: int) -> slice:
        """Return the columns of the controls, after those of STS-X: 1 + K + S."""
        first = FREE_COLUMNS + 3 * types
        return slice(first, first + 1 + control_count(types, self.controls) + self.actor.state_size)

    def _plan(self, view: View) -> None:
        super(ControlPolicy, self)._plan(view)  # a class with slots has no plain super()
        board = view.board
        if self._present(board).priced:  # as in the environment: the cheapest configuration may differ next time
            forget_cheapest(board)

    def _adaptation(self, view: View, board: Board, rate: Floats) -> Adaptation:
        remember_offers(board)
        stored = self._stored(board)
        round_, actor = int(board.count[at.ROUND]), self.actor.for_types(view.gpu_types)
        if not self._holds(stored[0, 0], round_):
            stored[0] = stored[stored[:, 0].argmax()]  # another row, in a run that goes on with other jobs (service)
        if not self._holds(stored[0, 0], round_):
            last = 1 + actor.outputs
            stored[0, 0], stored[0, 1:last] = round_, 0.0
            if self.spec is None or self.spec.has_kinds(view.configurations):
                seen = np.zeros(actor.inputs)
                observe(board, rate, seen, self.controls == "energy")
                stored[0, 1:last] = actor.act(seen.astype(np.float32), stored[0, last:])
        stored[board.active[: board.count[at.ACTIVE]]] = stored[0]
        return adaptation_of(self._present(board), board, rate)

    def _holds(self, since: float, round_: int) -> bool:
        return since > 0.0 and (since - 1) // self.rounds == (round_ - 1) // self.rounds

    def _stored(self, board: Board) -> Floats:
        """Return the columns of the controls, (J, 1 + K + S): their round, the controls, the actor's state."""
        columns = self._columns(board.capacity.shape[0])
        if board.memory.shape[1] < columns.stop:
            raise InputError("memory_columns", board.memory.shape[1], f"{columns.stop} or more")
        return board.memory[:, columns]

    def _present(self, board: Board) -> Controls:
        types = board.capacity.shape[0]
        last = 1 + control_count(types, self.controls)
        return controls_of(self._stored(board)[0, 1:last], board.facts.configs, types)
