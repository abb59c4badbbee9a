"""Outages in a simulated future of a run: those that policies expect, drawn from what they see."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gpusched_env.errors import InputError
from gpusched_env.mechanisms.failures import state as of
from gpusched_env.mechanisms.failures.model import SECONDS_PER_DAY, Expected
from gpusched_env.simulator import layout as at

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.random import Generator
    from numpy.typing import NDArray

    from gpusched_env.mechanisms.failures.state import FailureBoard

LONGEST_S = 60 * 86_400.0
"""For how long outages are drawn; after that no node goes down [s]."""


def new_job_rows(board: FailureBoard, jobs: int) -> dict[str, NDArray[np.float64]]:
    """Return the rows of the board's arrays by job for some jobs that have not run, by name; none without failures."""
    saved = np.zeros((jobs, of.SAVED_COLUMNS))
    saved[:, of.STOPPED_S] = -1.0
    return {"saved": saved} if len(board.outages) else {}


def draw(board: FailureBoard, until_s: float, rng: Generator) -> dict[str, NDArray[Any]]:
    """Draw what happens to nodes from now on, by name of the hidden array.

    Nodes fail and leave as expected, at exponential times, so that only the present state counts: a node that is down
    comes back as if it had gone down now, and one that is announced to go down goes down then.

    Args:
        board: The board; nothing on it changes.
        until_s: The time until which outages are drawn [s], at most `LONGEST_S` from now on.
        rng: Draws them.

    Raises:
        InputError: The model does not have what is expected, as with spare nodes.
    """
    if len(board.outages) and not len(board.facts.expected_outages):
        allowed = "what is expected of each GPU type, to simulate the future; scenarios with spare nodes do not have it"
        raise InputError("failures.expected", None, allowed)
    now = float(board.clock[at.NOW])
    until_s, nodes = min(until_s, now + LONGEST_S), range(len(board.outages))
    events = (event for node in nodes for event in _events(board, node, until_s, rng))
    rows = [(now,) * of.TIMELINE_COLUMNS] * int(board.passed[0])  # nothing reads what has happened
    rows += sorted(events, key=lambda event: event[of.TIME])
    return {"timeline": np.array(rows).reshape(len(rows), of.TIMELINE_COLUMNS)}


def _events(board: FailureBoard, node: int, until_s: float, rng: Generator) -> Iterator[tuple[float, ...]]:
    expected, own = Expected(*board.facts.expected_outages[board.nodes[node, at.NODE_TYPE]]), board.outages[node]
    time, is_down = float(board.clock[at.NOW]), own[of.IS_DOWN] > 0.0
    if own[of.ANNOUNCED_S] < np.inf:
        time, is_down = float(own[of.ANNOUNCED_S]), own[of.STOPS] > 0.0
        yield time, of.DOWN, node, own[of.NOTICED_S], own[of.STOPS]
        if not is_down:
            yield time, of.UP, node, 0.0, 0.0
    if is_down:
        time += rng.exponential(expected.repair_s if own[of.NOTICED_S] == np.inf else expected.away_s)
        yield time, of.UP, node, 0.0, 0.0
    while True:
        fails, leaves = (
            time + rng.exponential(SECONDS_PER_DAY / per_day) if per_day > 0.0 else np.inf
            for per_day in (expected.fail_per_day, expected.leave_per_day)
        )
        leaves += expected.notice_s
        down_s, notice_s = (leaves, expected.notice_s) if leaves < fails else (fails, 0.0)
        if down_s > until_s:
            return
        if notice_s > 0.0:
            yield down_s - notice_s, of.NOTICE, node, down_s, 1.0
        yield down_s, of.DOWN, node, down_s - notice_s, 1.0
        time = down_s + rng.exponential(expected.away_s if leaves < fails else expected.repair_s)
        yield time, of.UP, node, 0.0, 0.0
