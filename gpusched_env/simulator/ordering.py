"""The order in which a round asks its jobs, and the columns by which rules rank them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from gpusched_env.errors import InputError
from gpusched_env.simulator import layout as at
from gpusched_env.simulator import rounds
from gpusched_env.simulator.sorting import pressures
from gpusched_env.simulator.survival import expected_left

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

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
        """Return the present time [s]."""
        return self.view.now_s

    @property
    def submission_s(self) -> NDArray[np.float64]:
        """Return the submission times [s]."""
        return self._column(at.SUBMISSION)

    @property
    def due_s(self) -> NDArray[np.float64]:
        """Return the due dates [s]."""
        return self._column(at.DUE)

    @property
    def tardiness_weight_eur_per_s(self) -> NDArray[np.float64]:
        """Return the tardiness weights [€/s]."""
        return self._column(at.WEIGHT)

    @property
    def epochs_done(self) -> NDArray[np.float64]:
        """Return the epochs done."""
        return self._column(at.EPOCHS)

    @property
    def epochs_left(self) -> NDArray[np.float64]:
        """Return the epochs left in the worst case: maximum epochs - epochs done."""
        return self._column(at.MAX_EPOCHS) - self.epochs_done

    @property
    def expected_epochs_left(self) -> NDArray[np.float64]:
        """Return the expected epochs left, given the epochs done: ∫ S(x)/S(w) dx over x > w."""
        return np.array([expected_left(self.view.board, job) for job in self.index])

    @property
    def min_execution_s(self) -> NDArray[np.float64]:
        """Return the least execution time left in the worst case [s]: all epochs left, fastest configuration."""
        return self.epochs_left * self._column(at.MIN_TAU)

    @property
    def pressure(self) -> NDArray[np.float64]:
        """Return the pressure: present time + least execution time left - due date [s]; where positive, times ω [€]."""
        return pressures(self.view.board, self.index, self.epochs_left)

    def _column(self, column: int) -> NDArray[np.float64]:
        return self.view.jobs[self.index, column]


Order: TypeAlias = str | Callable[[ActiveJobs], "NDArray[np.float64]"]
"""A named order, or a rule that returns a number for each job; the smallest is asked first."""


def check_order(order: Order) -> Order:
    """Return `order`.

    Raises:
        InputError: It is neither a rule nor one of the named orders.
    """
    if not callable(order) and order not in rounds.NAMED_ORDERS:
        raise InputError(
            "job_order", order, f"one of {', '.join(rounds.NAMED_ORDERS)}, or a function of the active jobs"
        )
    return order


def ask_order(view: View, order: Order, *, waiting_only: bool) -> NDArray[np.int64]:
    """List the jobs that the round asks, first to last; equal ones by index.

    Args:
        view: The present state, in an open round.
        order: A named order or a rule.
        waiting_only: Whether only jobs that hold nothing are asked.

    Returns:
        A view of the state's own buffer, shape (A,): valid until the next round.

    Raises:
        InputError: A rule returns the wrong number of keys, NaN, or a value that is no number.
    """
    board = view.board
    active = board.count[at.ACTIVE]
    if callable(order):
        board.keys[:active] = _keys(order(ActiveJobs(view, view.active)), active)
        rounds.order_round(board, waiting_only)
    else:
        rounds.order_by(board, rounds.NAMED_ORDERS[order], waiting_only)
    return board.order[: board.count[at.TO_ASK]]


def _keys(given: ArrayLike, active: int) -> NDArray[np.float64]:
    try:
        keys = np.asarray(given)
    except ValueError:  # lists of different lengths
        keys = np.empty(0, dtype=np.object_)
    if keys.dtype.kind not in "biuf" or keys.shape != (active,) or np.isnan(keys).any():
        shown = given.tolist() if isinstance(given, np.ndarray) else given
        count = "1 finite number" if active == 1 else f"{active} finite numbers"
        raise InputError("job_order", shown, f"{count}, one for each active job")
    return keys
