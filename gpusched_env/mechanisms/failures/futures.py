"""Outages in a simulated future of a run: those that policies expect, drawn from what they see."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gpusched_env.errors import InputError
from gpusched_env.mechanisms.failures import state as of
from gpusched_env.simulator import layout as at

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.random import Generator
    from numpy.typing import NDArray

    from gpusched_env.mechanisms.failures.state import FailureBoard

LONGEST_S = 60 * 86_400.0
"""For how long outages are drawn; after that no node goes down [s]."""


def new_job_rows(jobs: int) -> dict[str, NDArray[np.float64]]:
    """Return the arrays of the board with a row for each job, for some jobs that have not run."""
    saved = np.zeros((jobs, of.SAVED_COLUMNS))
    saved[:, of.STOPPED_S] = -1.0
    return {"saved": saved}


def draw(board: FailureBoard, until_s: float, rng: Generator) -> dict[str, NDArray[Any]]:
    """Draw what happens to nodes from now on, by name of the hidden array.

    Nodes fail at the rates that policies expect, and are down for the expected time, both exponential, so that only the
    present state counts: a node that is down comes back as if it had gone down now; one that is announced to go down
    goes down then. Outages that are drawn are not announced.

    Args:
        board: The board; nothing on it changes.
        until_s: The time until which outages are drawn [s], at most `LONGEST_S` from now on.
        rng: Draws them.

    Raises:
        InputError: The model does not have the expected lengths of outages.
    """
    now = float(board.clock[at.NOW])
    until_s, nodes = min(until_s, now + LONGEST_S), range(len(board.outages))
    events = (event for node in nodes for event in _events(board, node, until_s, rng))
    rows = [(now,) * of.TIMELINE_COLUMNS] * int(board.passed[0])  # nothing reads what has happened
    rows += sorted(events, key=lambda event: event[of.TIME])
    return {"timeline": np.array(rows).reshape(len(rows), of.TIMELINE_COLUMNS)}


def _events(board: FailureBoard, node: int, until_s: float, rng: Generator) -> Iterator[tuple[float, ...]]:
    now = time = float(board.clock[at.NOW])
    per_s, mean_s = board.facts.node_failures[board.nodes[node, at.NODE_TYPE]]
    is_down = board.outages[node, of.IS_DOWN] > 0.0
    if board.outages[node, of.ANNOUNCED_S] < np.inf:
        time, is_down = float(board.outages[node, of.ANNOUNCED_S]), True
        yield time, of.DOWN, node, now, 1.0
    while time <= until_s:
        if is_down and np.isnan(mean_s):
            raise InputError("failures.outage_s", None, "one expected length for each GPU type, to simulate the future")
        if is_down:
            time += rng.exponential(mean_s)
            yield time, of.UP, node, 0.0, 0.0
        time += rng.exponential(1.0 / per_s) if per_s > 0.0 else np.inf
        if time <= until_s:
            yield time, of.DOWN, node, time, 1.0
        is_down = True
