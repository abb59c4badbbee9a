"""The order in which a round asks its jobs."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from gpusched_env.errors import InputError
from gpusched_env.simulator import layout as at
from gpusched_env.simulator import rounds
from gpusched_env.simulator.active_jobs import ActiveJobs

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from gpusched_env.simulator.view import View

Order: TypeAlias = str | Callable[[ActiveJobs], "NDArray[np.float64]"]
"""A named order, or a rule: it gives each job a number, and the smallest is asked first."""

NAMED_ORDERS = {
    "pressure": rounds.PRESSURE,
    "submission": rounds.BY_SUBMISSION,
    "due": rounds.BY_DUE,
    "weight": rounds.BY_WEIGHT,
}


def check_order(order: Order) -> Order:
    """Return `order`.

    Raises:
        InputError: It is neither a rule nor one of the named orders.
    """
    if not callable(order) and order not in NAMED_ORDERS:
        raise InputError("job_order", order, f"one of {', '.join(NAMED_ORDERS)}, or a function of the active jobs")
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
        InputError: A rule gives the wrong number of keys, NaN, or what is no number.
    """
    active = view.count[at.ACTIVE]
    if callable(order):
        view.keys_buffer[:active] = _keys(order(ActiveJobs(view, view.active)), active)
    else:
        kind = NAMED_ORDERS[order]
        rounds.round_keys(view.jobs, view.clock, view.count, view.active_buffer, view.keys_buffer, kind)
    rounds.order_round(view.jobs, view.count, view.active_buffer, view.keys_buffer, view.order_buffer, waiting_only)
    return view.order_buffer[: view.count[at.TO_ASK]]


def _keys(given: ArrayLike, active: int) -> NDArray[np.float64]:
    """Check what a rule gives; inf passes, since a rule that divides by a weight of 0 means "last" by it."""
    try:
        keys = np.asarray(given)
    except ValueError:  # lists of different lengths
        keys = np.empty(0, dtype=np.object_)
    if keys.dtype.kind not in "biuf" or keys.shape != (active,) or np.isnan(keys).any():
        shown = given.tolist() if isinstance(given, np.ndarray) else given
        count = "1 finite number" if active == 1 else f"{active} finite numbers"
        raise InputError("job_order", shown, f"{count}, one for each active job")
    return keys
