"""Repair: from what a solver gives, which holds up to its tolerance, to a plan that meets the due date."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from gpusched_baselines.planning.single_job import SingleJobProblem


def repaired(problem: SingleJobProblem, ends: ArrayLike) -> NDArray[np.float64]:
    """Turn the ends of all segments but the last into breakpoints that cover the epochs left and meet the due date.

    The ends are clipped to [w, E] and sorted. If the worst case then misses the due date, every end moves towards w by
    the same factor θ, so that faster configurations begin earlier. The worst case is linear in θ, and at θ = 0 the
    fastest configuration runs throughout, which is in time; so the largest θ that meets the due date is known.

    Args:
        problem: A problem whose fastest configuration meets the due date.
        ends: Epoch at which configuration k ends, for all but the last, (K - 1,); finite.

    Returns:
        Breakpoints from w to E, never falling, (K + 1,).
    """
    w, largest = problem.epochs_done, problem.max_epochs
    inner = np.sort(np.clip(np.asarray(ends, dtype=np.float64), w, largest))
    starts = np.concatenate([[w], inner, [largest]])
    worst = problem.worst_case_s(starts)
    if worst > problem.time_left_s:
        fastest = problem.epochs_left * problem.tau[-1]
        theta = max(0.0, (problem.time_left_s - fastest) / (worst - fastest))
        starts[1:-1] = w + theta * (inner - w)
    return starts
