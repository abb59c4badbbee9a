"""Workloads like that of the run so far, on copies of its board, and what policies cost on them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gpusched_baselines.rollout_policy.samples import arrivals_like, needs_of, sample_outcome, uniforms
from gpusched_baselines.rollout_policy.simulation import cost_of_policy, new_copy, reset
from gpusched_baselines.sts_x.capacity_price import RECENT
from gpusched_env import Policy
from gpusched_env.simulator.kernels import Board, Ints, View, at

MOST_ROUNDS = 20
"""Most rounds of a simulation, for each job."""


class Workloads:
    """Workloads that begin with the active jobs of the open round; then the jobs so far come again, in their order.

    Each begins with another one of these. What jobs need is drawn from their distributions, of active ones given the
    epochs done. So nothing but the board is read.

    Args:
        view: The view of the run, in which two jobs or more were submitted; nothing on its board changes.
        draws: Number of workloads, ≥ 1.
        coming: Jobs that come in each, ≥ 0.
        seed: Seed of what is drawn.

    Attributes:
        work: What simulations have taken so far: their rounds, each with the number of its active jobs times that of
            configurations over `PER_ROUND`.
    """

    def __init__(self, view: View, draws: int, coming: int, seed: int) -> None:
        board, rng = view.board, np.random.default_rng(seed)
        known, active = int(board.count[at.SUBMITTED]), int(board.count[at.ACTIVE])
        self._copy = new_copy(board, coming, max(0, known - max(RECENT, active)))
        self._view, start = View(self._copy.work, view.configurations), self._copy.start
        gaps = np.diff(board.jobs[:known, at.SUBMISSION])
        places = (np.arange(coming) + rng.integers(len(gaps), size=(draws, 1))) % len(gaps)
        self._jobs, self._tau = arrivals_like(board, _alike(board)[1 + places], gaps[places])
        self._first = first = int(start.count[at.SUBMITTED])
        self._outcomes = np.full((draws, first + coming, at.OUTCOME_COLUMNS), np.inf)
        later = np.arange(first, first + coming)
        of_active, of_later = uniforms(rng, draws, active), uniforms(rng, draws, coming)
        for draw, outcome in enumerate(self._outcomes):
            sample_outcome(start, of_active[draw], outcome)
            start.jobs[first:] = self._jobs[draw]
            outcome[first:, at.NEEDED] = needs_of(start, later, of_later[draw : draw + 1])[0]
        self.work = 0.0

    def cost(self, draw: int, policy: Policy, most_eur: float = np.inf, *, goes_on: bool = False) -> float:
        """Return what a workload costs with a policy from now on [€]; inf if it costs more than `most_eur`.

        Args:
            draw: Number of the workload.
            policy: The policy.
            most_eur: Cost at which the simulation stops [€].
            goes_on: Whether the policy is that of the run; else it begins as after `forget`.
        """
        copy, outcome = self._copy, self._outcomes[draw]
        copy.hidden.jobs[self._first :], copy.hidden.tau[self._first :] = self._jobs[draw], self._tau[draw]
        reset(copy.start, copy.work)
        if not goes_on:
            forget(copy.work)
        most = MOST_ROUNDS * len(outcome)
        total, rounds, planned = cost_of_policy(copy, outcome, self._view, policy, most, most_eur)
        self.work += rounds + planned * len(self._view.configurations) / PER_ROUND
        return total


PER_ROUND = 300.0


def forget(board: Board, last: int | None = None) -> None:
    """Clear the memory of jobs, up to column `last`, for another policy: all but what a service knows of jobs over."""
    board.memory[: board.count[at.SUBMITTED], :last][_is_known(board)] = 0.0


def _is_known(board: Board) -> NDArray[np.bool_]:
    """Whether the row of a submitted job is its own, (J,): of jobs over a service knows their submission alone."""
    return board.jobs[: board.count[at.SUBMITTED], at.CHEAPEST] >= 0.0


def _alike(board: Board) -> Ints:
    """Return for every submitted job itself, or the next one of which more than the submission is known, (J,)."""
    known = np.flatnonzero(_is_known(board))
    jobs = np.arange(board.count[at.SUBMITTED])
    return known[np.minimum(np.searchsorted(known, jobs), len(known) - 1)] if len(known) else jobs
