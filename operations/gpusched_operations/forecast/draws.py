"""What rollouts draw: the epochs that jobs need, given those done, and jobs to come.

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
    from numpy.random import Generator

    from gpusched_env.arrays import Floats, Ints

NEEDS, COMING, FUTURE = range(3)
"""Streams of random numbers: jobs to come do not change what those there need, nor both what happens to nodes."""


@dataclass(frozen=True, slots=True, eq=False)
class ArrivalModel:
    """Jobs to come, like some of the board's.

    With a history, pieces of it come again: after each job the next one of the history, with the time between them, and
    with probability 1 / √L another one (the stationary bootstrap of Politis and Romano, 1994). So bursts stay
    bursts. In each draw they are pieces of another history, which is drawn from that there was in the same way: how
    often jobs come, and which, is as uncertain as the history is short.

    Args:
        per_s: Arrivals a second, > 0.
        like: Indices of the jobs on the board that they are like, each as likely, (L,), L ≥ 1.
        gaps_s: The time from each of these to the one before it [s], (L,); None: times are exponential.

    Raises:
        InputError: A value is out of its range.
    """

    per_s: float
    like: Ints
    gaps_s: Floats | None = None

    def __post_init__(self) -> None:
        checks.positive("arrivals.per_s", self.per_s)
        if not len(self.like):
            raise InputError("arrivals.like", [], "one job or more")

    @classmethod
    def of_history(cls, board: Board) -> ArrivalModel | None:
        """Return arrivals as those so far, in pieces; None if no time has passed between them."""
        known = int(board.count[at.SUBMITTED])
        gaps = np.diff(board.jobs[:known, at.SUBMISSION])
        if not gaps.sum() > 0.0:
            return None
        past = float(board.clock[at.NOW] - board.jobs[0, at.SUBMISSION])
        return cls(len(gaps) / past, np.arange(1, known), gaps)

    def drawn(self, state: State, draws: int, coming: int, seed: int) -> tuple[Floats, Floats, Floats]:
        """Draw them: rows of jobs, (D, K, columns), of `tau`, (D, K, C), and quantiles of what they need, (D, K)."""
        rng = np.random.default_rng([seed, COMING])
        quantiles, size = rng.random((draws, coming)), len(self.like)
        if self.gaps_s is None:
            places = rng.integers(size, size=(draws, coming))
            gaps = rng.exponential(1.0 / self.per_s, size=places.shape)
        else:
            seen = _pieces(rng, size, (draws, size))
            places = np.take_along_axis(seen, _pieces(rng, size, (draws, coming)), axis=1)
            gaps = self.gaps_s[places] / (self.per_s * self.gaps_s.mean())
        return *arrivals_like(state.board, self.like[places], gaps), quantiles


def _pieces(rng: Generator, size: int, shape: tuple[int, int]) -> Ints:
    """Draw rows of numbers below `size`, each the next one of that before it but for a new piece by chance."""
    places = rng.integers(size, size=shape)
    goes_on = rng.random(shape) >= size**-0.5
    for k in range(1, shape[1]):
        places[:, k] = np.where(goes_on[:, k], (places[:, k - 1] + 1) % size, places[:, k])
    return places


@dataclass(frozen=True, slots=True, eq=False)
class Draws:
    """What was drawn for one state.

    Attributes:
        needed: Epochs that the jobs that are there need, (D, A).
        finish_s: When those that run would end, if they went on [s], (D, A); inf where they wait.
        rows: First rows of the jobs to come, by submission, (D, K, columns).
        tau: Their seconds per epoch, (D, K, C).
        needed_later: Epochs that they need, (D, K).
        seed: Seed of what mechanisms draw, such as failures of nodes.
    """

    needed: Floats
    finish_s: Floats
    rows: Floats
    tau: Floats
    needed_later: Floats
    seed: int = 0

    @classmethod
    def of(
        cls, state: State, quantiles: Floats, coming: tuple[Floats, Floats, Floats] | None = None, seed: int = 0
    ) -> Draws:
        """Draw for a state.

        Args:
            state: The state, before the round at its present time.
            quantiles: Quantiles of what the jobs that are there need, in [0, 1), (D, A): `stratified`.
            coming: Rows of jobs to come, of `tau`, and quantiles of what they need, as `drawn` of a model gives them.
            seed: Seed of what mechanisms draw.
        """
        board = state.board
        present = board.active[: board.count[at.ACTIVE]].copy()
        draws = len(quantiles)
        needed = needs_of(board, present, quantiles)
        if coming is None:
            rows, tau = (np.empty((draws, 0, part.shape[1])) for part in (board.jobs, board.tau))
            return cls(needed, _finish_s(board, present, needed), rows, tau, np.empty((draws, 0)), seed)
        rows, tau, later = coming
        return cls(needed, _finish_s(board, present, needed), rows, tau, _needed_later(state, rows, later), seed)


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
    board, hidden = state.board, state.hidden
    told = {"edges": hidden.edges, "survival": hidden.survival, "tail": hidden.tail}
    of_all = board.replaced(**told, jobs=np.ascontiguousarray(rows.reshape(-1, rows.shape[2])))
    jobs = np.arange(rows.shape[0] * rows.shape[1])
    return needs_of(of_all, jobs, quantiles.reshape(1, -1)).reshape(quantiles.shape)
