"""Putting what a request carries on from the decision before into a state, and taking out what the next one needs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from gpusched_baselines.shared_gpus.fill import Fill
from gpusched_env.simulator import layout as at
from gpusched_experiments.service.memory import Memory, generator_of, random_state

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpusched_env.simulator import Policy, State
    from gpusched_experiments.service.fields import DecideRequest

MOST_WEIGHTS = 5_000
"""Weights of jobs that are over which are kept for policies that look at them: the latest."""


def sees_weights_of_all(policy: Policy) -> bool:
    """Say whether a policy looks at the weights of jobs that are over: Fill ranks jobs among all that ever came."""
    return isinstance(policy, Fill)


@dataclass(frozen=True)
class Carried:
    """What goes on from one decision to the next.

    Args:
        policy: The policy.
        name: Its name in requests.
        place: Fingerprint of the cluster.
        ids: The jobs, by index in the instance.
        before: What the request brings.

    Attributes:
        over: Weights of jobs that are over, as the state has them before the others [€/s]. Most policies do not look at
            them; for these there is one such job, which has the run's own row of their memory.
    """

    policy: Policy
    name: str
    place: str
    ids: Sequence[str]
    before: Memory | None
    over: tuple[float, ...] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "over", self._over())

    def _over(self) -> tuple[float, ...]:
        if not sees_weights_of_all(self.policy):
            return (0.0,)
        if self.before is None:
            return ()
        there, former = set(self.ids), zip(self.before.ids, self.before.weights, strict=True)
        return (*self.before.over, *(weight for name, weight in former if name not in there))[-MOST_WEIGHTS:]

    def put_into(self, state: State, request: DecideRequest) -> np.random.Generator:
        """Put memory and wake-ups back where they were, and count jobs on; give the randomness."""
        board, before, first = state.board, self.before, len(self.over)
        board.count[at.IDLE] = request.idle_rounds
        board.jobs[:first, at.WEIGHT] = self.over
        if before is None:
            return np.random.default_rng(request.seed)
        row_of = {name: row for row, name in enumerate(before.ids)}
        rows = np.array([row_of.get(name, -1) for name in self.ids])
        known = np.flatnonzero(rows >= 0)
        board.jobs[first + known, at.WAKE_S] = before.wake_s[rows[known]]
        board.jobs[first + known, at.PACE] = before.pace[rows[known]]
        if before.place == self.place and before.rows.shape[1] == board.memory.shape[1]:
            board.memory[:first] = before.rows[:1]
            board.memory[first + known] = before.rows[1 + rows[known]]
        if first == 1:
            # The one job that is over stands for all: with each of them, submissions and ends rise by one.
            submitted = before.submitted + len(self.ids) - len(known)
            board.count[at.DONE] += 2 * (submitted - len(self.ids))
        board.count[at.ROUND] = before.rounds
        return generator_of(before.random)

    def taken_from(self, state: State, rng: np.random.Generator) -> Memory:
        """Take what the next decision needs from a state after its round."""
        board, first = state.board, len(self.over)
        last = first + len(self.ids)
        gone = (int(board.count[at.DONE]) - first) // 2
        weights = board.jobs[first:last, at.WEIGHT].tolist() if sees_weights_of_all(self.policy) else []
        own = board.memory[:1] if first else np.zeros((1, board.memory.shape[1]))
        return Memory(
            policy=self.name,
            place=self.place,
            ids=self.ids,
            wake_s=board.jobs[first:last, at.WAKE_S],
            pace=board.jobs[first:last, at.PACE],
            rows=np.concatenate([own, board.memory[first:last]]),
            rounds=int(board.count[at.ROUND]),
            submitted=len(self.ids) + gone,
            random=random_state(rng),
            weights=weights,
            over=self.over if weights else (),
        )
