"""The active jobs as columns, for rules that rank them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from gpusched_env.simulator import layout as at
from gpusched_env.simulator.survival import expected_left

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from gpusched_env.simulator.view import View


@dataclass(frozen=True, slots=True)
class ActiveJobs:
    """Jobs submitted and not completed; every property is a fresh float64 array, one value per job in `index`.

    Args:
        view: The view they come from.
        index: Their indices, shape (A,).
    """

    view: View
    index: NDArray[np.int64]

    @property
    def now_s(self) -> float:
        """Give the present time [s]."""
        return self.view.now_s

    @property
    def submission_s(self) -> NDArray[np.float64]:
        """Give the submission times [s]."""
        return self._column(at.SUBMISSION)

    @property
    def due_s(self) -> NDArray[np.float64]:
        """Give the due dates [s]."""
        return self._column(at.DUE)

    @property
    def tardiness_weight_eur_per_s(self) -> NDArray[np.float64]:
        """Give the tardiness weights [€/s]."""
        return self._column(at.WEIGHT)

    @property
    def epochs_done(self) -> NDArray[np.float64]:
        """Give the epochs done."""
        return self._column(at.EPOCHS)

    @property
    def epochs_left(self) -> NDArray[np.float64]:
        """Give the epochs left in the worst case: maximum epochs - epochs done."""
        return self._column(at.MAX_EPOCHS) - self.epochs_done

    @property
    def expected_epochs_left(self) -> NDArray[np.float64]:
        """Give the expected epochs left, given the epochs done: ∫ S(x)/S(w) dx over x > w."""
        table = self.view.distributions
        rows = self._column(at.DISTRIBUTION).astype(np.int64)
        largest = self._column(at.MAX_EPOCHS)
        done = self.epochs_done / largest
        left = [
            expected_left(table.edges[row], table.survival[row], table.tail[row], fraction)
            for row, fraction in zip(rows, done, strict=True)
        ]
        return np.array(left) * largest

    @property
    def min_execution_s(self) -> NDArray[np.float64]:
        """Give the least execution time left in the worst case [s]: all epochs left, fastest configuration."""
        return self.epochs_left * self._column(at.MIN_TAU)

    @property
    def pressure_s(self) -> NDArray[np.float64]:
        """Give the pressure [s]: present time + least execution time left - due date."""
        return self.now_s + self.min_execution_s - self.due_s

    def _column(self, column: int) -> NDArray[np.float64]:
        return self.view.jobs[self.index, column]
