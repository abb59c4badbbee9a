"""What roll-outs draw: the epochs that jobs need, given those done, and jobs to come.

D is the number of draws, A that of the jobs that are there, K that of jobs to come in a draw.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from gpusched_baselines.rollout_policy.samples import arrivals_like, needs_of, uniforms
from gpusched_env.errors import InputError
from gpusched_env.model import checks
from gpusched_env.simulator import Board, State
from gpusched_env.simulator import layout as at

if TYPE_CHECKING:
    from gpusched_env.arrays import Floats, Ints

NEEDS, COMING = 0, 1
"""Streams of random numbers: jobs to come do not change what those there need."""


@dataclass(frozen=True, slots=True, eq=False)
class Arrivals:
    """Jobs to come: each is like one of the board's, and comes after an exponential time.

    Args:
        per_s: Arrivals a second, > 0.
        like: Indices of the jobs on the board that they are like, each as likely, (L,), L ≥ 1.
        seen: Times between arrivals from which the rate was estimated: in each draw it is another one, from its
            posterior distribution (gamma); 0: it is known.

    Raises:
        InputError: A value is out of its range.
    """

    per_s: float
    like: Ints
    seen: int = 0

    def __post_init__(self) -> None:
        checks.positive("arrivals.per_s", self.per_s)
        checks.whole("arrivals.seen", self.seen, 0)
        if not len(self.like):
            raise InputError("arrivals.like", [], "one job or more")

    @classmethod
    def of_history(cls, board: Board) -> Arrivals | None:
        """Return arrivals as those so far: as often, and like any of the jobs so far; None if no time has passed."""
        known = int(board.count[at.SUBMITTED])
        past = float(board.clock[at.NOW] - board.jobs[0, at.SUBMISSION]) if known else 0.0
        if known < 2 or past <= 0.0:
            return None
        return cls((known - 1) / past, np.arange(known), known - 1)

    def drawn(self, state: State, draws: int, coming: int, seed: int) -> tuple[Floats, Floats, Floats]:
        """Draw them: rows of jobs, (D, K, columns), of `tau`, (D, K, C), and quantiles of what they need, (D, K)."""
        rng = np.random.default_rng([seed, COMING])
        quantiles = rng.random((draws, coming))
        picked = self.like[rng.integers(len(self.like), size=(draws, coming))]
        rate = rng.gamma(self.seen, self.per_s / self.seen, size=(draws, 1)) if self.seen else self.per_s
        return *arrivals_like(state.board, picked, rng, 1.0 / rate), quantiles


@dataclass(frozen=True, slots=True, eq=False)
class Draws:
    """What was drawn for one state.

    Attributes:
        needed: Epochs that the jobs that are there need, (D, A).
        finish_s: When those that run would end, if they went on [s], (D, A); inf where they wait.
        rows: First rows of the jobs to come, by submission, (D, K, columns).
        tau: Their seconds per epoch, (D, K, C).
        needed_later: Epochs that they need, (D, K).
    """

    needed: Floats
    finish_s: Floats
    rows: Floats
    tau: Floats
    needed_later: Floats

    @classmethod
    def of(
        cls,
        state: State,
        quantiles: Floats,
        coming: tuple[Floats, Floats, Floats] | None = None,
    ) -> Draws:
        """Draw for a state.

        Args:
            state: The state, before the round at its present time.
            quantiles: Quantiles of what the jobs that are there need, in [0, 1), (D, A): `stratified`.
            coming: Rows of jobs to come, of `tau`, and quantiles of what they need, as `Arrivals.drawn` gives them.
        """
        board = state.board
        present = board.active[: board.count[at.ACTIVE]].copy()
        draws = len(quantiles)
        needed = needs_of(board, present, quantiles)
        if coming is None:
            rows, tau = (np.empty((draws, 0, part.shape[1])) for part in (board.jobs, board.tau))
            return cls(needed, _finish_s(board, present, needed), rows, tau, np.empty((draws, 0)))
        rows, tau, later = coming
        return cls(needed, _finish_s(board, present, needed), rows, tau, _needed_later(state, rows, later))


def stratified(seed: int, draws: int, jobs: int) -> Floats:
    """Draw quantiles of the needs of jobs, (D, A): of every job one in each of D equal parts of [0, 1)."""
    return uniforms(np.random.default_rng([seed, NEEDS]), draws, jobs)


def _finish_s(board: Board, present: Ints, needed: Floats) -> Floats:
    rows = board.jobs[present]
    config = rows[:, at.CONFIG].astype(np.int64)
    seconds = board.tau[present, np.maximum(config, 0)] * rows[:, at.SLOWDOWN]
    to_do = np.maximum(0.0, needed - rows[:, at.ANCHOR_EPOCHS])
    with np.errstate(invalid="ignore"):  # a job that waits may not use configuration 0
        return np.where(config < 0, np.inf, rows[:, at.ANCHOR_S] + to_do * seconds)


def _needed_later(state: State, rows: Floats, quantiles: Floats) -> Floats:
    """Return the epochs that jobs to come need, (D, K)."""
    board, hidden = state.board, state.hidden
    told = {"edges": hidden.edges, "survival": hidden.survival, "tail": hidden.tail}
    of_all = board.__getstate__() | told | {"jobs": np.ascontiguousarray(rows.reshape(-1, rows.shape[2]))}
    jobs = np.arange(rows.shape[0] * rows.shape[1])
    return needs_of(Board(**of_all), jobs, quantiles.reshape(1, -1)).reshape(quantiles.shape)
