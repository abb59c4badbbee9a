"""The `due_dates` section of a scenario, and when jobs are due."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from pydantic import Field

from gpusched_env.errors import InputError
from gpusched_env.model.checks import LONGEST, LONGEST_S
from gpusched_env.workload.scenario.settings import Positive, Settings

if TYPE_CHECKING:
    from numpy.random import Generator
    from numpy.typing import NDArray


class DueDates(Settings):
    """When jobs are due: submission + slack · U(least, greatest full execution time)."""

    slack: Positive = Field(
        default=1.0,
        description="Factor on the time from submission to due date: 1 is the published rule, below 1 is tighter.",
    )


def due_dates(
    rule: DueDates, submission_s: NDArray[np.float64], full_s: NDArray[np.float64], rng: Generator
) -> NDArray[np.float64]:
    """Draw each job's due date: submission + slack · U(min, max) of its full execution times.

    Args:
        rule: The rule.
        submission_s: Submission times [s], shape (J,).
        full_s: Execution time of all epochs on every configuration [s], shape (J, C); inf where not allowed.
        rng: Randomness.

    Returns:
        Due dates [s], shape (J,).

    Raises:
        InputError: One of them is later than `LONGEST_S`.
    """
    least = full_s.min(axis=1)
    greatest = np.where(np.isfinite(full_s), full_s, 0.0).max(axis=1)
    share = rng.random(len(submission_s))
    with np.errstate(over="ignore"):
        due: NDArray[np.float64] = submission_s + rule.slack * (least + share * (greatest - least))
    if not np.all(due <= LONGEST_S):
        raise InputError("due_dates.slack", rule.slack, f"a factor with which no job is due later than {LONGEST}")
    return due
