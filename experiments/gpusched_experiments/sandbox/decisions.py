"""The board on its way to the process that decides, and what is wanted there on its way back.

Only what a policy may see is sent, and after the first time only changes. Every place that is wanted is checked on the
true board, then held.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpusched_env.arrays import Floats, Ints
from gpusched_env.kernel import kernel, lean_kernel
from gpusched_env.model import checks
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.holdings import hold_at
from gpusched_env.simulator.placement.held_nodes import chain_of, most_spread
from gpusched_env.simulator.placement.release import release
from gpusched_env.simulator.run import Board, Facts
from gpusched_experiments.sandbox.submitted import SubmissionError

CONFIG, NODE, SLOT, TIMER = range(4)
"""Columns of what is wanted of a job: configuration, first node, shared GPU (-1 for none), and timer [s].

Behind them, with spread configurations, the node of every GPU.
"""

MOST_INDEX = 2**31

WRONG = (
    "",
    "a configuration that is not there, or that the job may not use",
    "a node that is not there, or of another GPU type",
    "GPUs that are not free there",
    "a share of a GPU that is not free there",
    "whole nodes that are not empty, or no chain of as many",
    "more than the quota of the job's tenant",
    "a timer that is no time",
)
"""What a job may not be given, by the number that `_adopt` gives."""


def decisions_of(board: Board, active: Ints) -> list[bytes]:
    """Write what a policy made of the board in a round: what every active job holds, and how nodes follow."""
    spread = range(at.JOB_COLUMNS, at.JOB_COLUMNS + int(most_spread(board)))
    rows = board.jobs[active][:, [at.CONFIG, at.NODE, at.SLOT, at.TIMER_S, *spread]]
    return [rows.tobytes(), board.nodes[:, at.NEXT].tobytes()]


def apply_decisions(board: Board, decisions: Floats, chain: Ints) -> None:
    """Give every active job what is wanted of it, in an open round.

    Args:
        board: The true board.
        decisions: What is wanted of every active job, (A, 4 and the GPUs of the largest spread configuration).
        chain: The node that follows on each in a job's chain of whole nodes, or -1, (N,).

    Raises:
        SubmissionError: Something cannot be given; the round is then not whole.
    """
    places = np.delete(decisions, TIMER, axis=1)
    whole = ((np.abs(places) < MOST_INDEX) & (np.floor(places) == places)).all(axis=1)
    if not whole.all():
        raise SubmissionError(f"job {board.active[np.argmin(whole)]} was given what is no number of anything")
    timer = decisions[:, TIMER]
    in_time = np.isinf(timer) | ((timer >= 0.0) & (timer <= checks.LONGEST_S))
    if not in_time.all():
        raise SubmissionError(f"job {board.active[np.argmin(in_time)]} was given {WRONG[7]}")
    job, wrong = _apply_decisions(board, decisions, chain)
    if wrong:
        raise SubmissionError(f"job {job} was given {WRONG[wrong]}")


@kernel
def _apply_decisions(board: Board, decisions: Floats, chain: Ints) -> tuple[int, int]:
    """Release what changes, then give what is wanted; return the first job for which that cannot be, and why."""
    active = board.active
    changes = np.zeros(board.count[at.ACTIVE], dtype=np.bool_)
    for i in range(changes.shape[0]):
        changes[i] = not _holds(board, active[i], decisions[i], chain)
        if changes[i]:
            release(board, active[i])
    for i in range(changes.shape[0]):
        job = active[i]
        board.jobs[job, at.TIMER_S] = decisions[i, TIMER]
        if changes[i] and decisions[i, CONFIG] >= 0.0:
            config, place = int(decisions[i, CONFIG]), (int(decisions[i, NODE]), int(decisions[i, SLOT]))
            if _is_spread(board, config):
                wrong = hold_at(board, job, config, place[0], place[1], _gpus_of(board, config, decisions[i]))
            else:
                wrong = hold_at(board, job, config, place[0], place[1], chain)
            if wrong > 0:
                return job, wrong
    return -1, 0


@lean_kernel
def _is_spread(board: Board, config: int) -> bool:
    """Whether a configuration, which may be one that is not there, is spread."""
    return config < board.facts.configs.shape[0] and board.facts.configs[config, at.CONFIG_SPREAD] > 0


@kernel
def _gpus_of(board: Board, config: int, decisions: Floats) -> Ints:
    """Return the node of every GPU of a spread configuration that is wanted for a job."""
    return decisions[TIMER + 1 : TIMER + 1 + board.facts.configs[config, at.CONFIG_NODES]].astype(np.int64)


@kernel
def _holds(board: Board, job: int, decisions: Floats, chain: Ints) -> bool:
    """Return whether a job holds what is wanted already."""
    jobs, nodes = board.jobs, board.nodes
    if jobs[job, at.CONFIG] < 0.0 or jobs[job, at.CONFIG] != decisions[CONFIG]:
        return jobs[job, at.CONFIG] < 0.0 and decisions[CONFIG] < 0.0
    if jobs[job, at.NODE] != decisions[NODE] or jobs[job, at.SLOT] != decisions[SLOT]:
        return False
    config = int(jobs[job, at.CONFIG])
    if _is_spread(board, config):
        return np.array_equal(chain_of(board, job), _gpus_of(board, config, decisions))
    if board.facts.configs[config, at.CONFIG_NODES] == 1 or board.facts.configs[config, at.CONFIG_UNITS] > 0:
        return True
    n = int(jobs[job, at.NODE])
    while n >= 0:
        if chain[n] != nodes[n, at.NEXT]:
            return False
        n = nodes[n, at.NEXT]
    return True


OWN = ("facts", "memory", "keys", "order")
"""What is not sent again: facts never change, and the others are the policy's own scratch."""
SEEN = tuple(name for name in Board.__annotations__ if name not in OWN)
CONFIGURATION = ("gpu_type", "gpus_per_node", "nodes", "share", "priority", "spread", "power_limit")


def rows_of(array: NDArray[Any]) -> NDArray[np.int64]:
    """Return the array as rows of bits, so that NaN equals itself: what has one axis is one row."""
    bits = array.view(np.int64)
    return bits if bits.ndim > 1 else bits.reshape(1, -1)


def written(values: Board | Facts) -> tuple[list[list[Any]], list[bytes]]:
    """Write all arrays of a board that are sent, or of facts: name, kind and shape of each, and their bytes."""
    names = SEEN if isinstance(values, Board) else tuple(Facts.__annotations__)
    arrays = [(name, np.ascontiguousarray(getattr(values, name))) for name in names]
    shapes = [[name, array.dtype.str, list(array.shape)] for name, array in arrays]
    return shapes, [array.tobytes() for _, array in arrays]


def read(shapes: list[list[Any]], data: memoryview) -> tuple[dict[str, NDArray[Any]], memoryview]:
    """Read what `written` wrote: the arrays by name, and the bytes behind them."""
    arrays = {}
    for name, kind, shape in shapes:
        size = np.dtype(kind).itemsize * int(np.prod(shape, dtype=np.int64))
        arrays[name] = np.frombuffer(data[:size], dtype=kind).reshape(shape).copy()
        data = data[size:]
    return arrays, data


class SentBoard:
    """What was sent of a board: where it comes from, to send only what changes, and where it goes, to undo the rest.

    Args:
        board: The board, as it was sent first.
    """

    def __init__(self, board: Board) -> None:
        self.board = board
        self._sent = {name: getattr(board, name).copy() for name in SEEN}

    def changes(self, board: Board) -> tuple[list[list[Any]], list[bytes]]:
        """Return the rows that differ from what was sent: names with counts, and their bytes; then they are sent."""
        counts, parts = [], []
        for name, array in self._sent.items():
            known, now = rows_of(array), rows_of(getattr(board, name))
            rows = np.flatnonzero((now != known).any(axis=1))
            if len(rows):
                known[rows] = now[rows]
                counts.append([name, len(rows)])
                parts += [rows.tobytes(), now[rows].tobytes()]
        return counts, parts

    def change(self, counts: list[list[Any]], data: memoryview) -> None:
        """Take over changes, and undo all that a policy did to the board since."""
        for name, count in counts:
            rows = rows_of(self._sent[name])
            size = 8 * count * rows.shape[1]
            places, values, data = data[: 8 * count], data[8 * count : 8 * count + size], data[8 * count + size :]
            rows[np.frombuffer(places, dtype=np.int64)] = np.frombuffer(values, dtype=np.int64).reshape(count, -1)
        for name, array in self._sent.items():
            getattr(self.board, name)[...] = array

    @property
    def active(self) -> NDArray[np.int64]:
        """Return the active jobs, (A,)."""
        return self._sent["active"][: self._sent["count"][at.ACTIVE]]


def decision_bytes(active: int, nodes: int, spread: int) -> int:
    """Return the size of what `decisions` writes."""
    return 8 * ((TIMER + 1 + spread) * active + nodes)


def parts_of(data: bytes, active: int, spread: int) -> Iterator[NDArray[Any]]:
    """Yield what is wanted of every active job, (A, 4 + `spread`), and how nodes follow one another, (N,)."""
    columns = TIMER + 1 + spread
    yield np.frombuffer(data, dtype=np.float64, count=columns * active).reshape(active, columns)
    yield np.frombuffer(data, dtype=np.int64, offset=8 * columns * active)
