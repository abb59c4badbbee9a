"""The board on its way to the process that decides: only what a policy may see, and after the first only changes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gpusched_env.simulator import layout as at
from gpusched_env.simulator.run import Board, Facts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

OWN = ("facts", "memory", "keys", "order")
"""What is not sent again: facts never change, and the others are the policy's own scratch."""
SEEN = tuple(name for name in Board.__annotations__ if name not in OWN)
CONFIGURATION = ("gpu_type", "gpus_per_node", "nodes", "share", "priority")


def rows_of(array: NDArray[Any]) -> NDArray[np.int64]:
    """Give the array as rows of bits, so that NaN equals itself: what has one axis is one row."""
    bits = array.view(np.int64)
    return bits if bits.ndim > 1 else bits.reshape(1, -1)


class SentBoard:
    """What the other side knows of a board."""

    def __init__(self, board: Board) -> None:
        self._known = {name: rows_of(getattr(board, name)).copy() for name in SEEN}

    def changes(self, board: Board) -> tuple[list[list[Any]], list[bytes]]:
        """Give the rows that differ from what is known: names with counts, and their bytes; then they are known."""
        counts, parts = [], []
        for name, known in self._known.items():
            now = rows_of(getattr(board, name))
            rows = np.flatnonzero((now != known).any(axis=1))
            if len(rows):
                known[rows] = now[rows]
                counts.append([name, len(rows)])
                parts += [rows.tobytes(), now[rows].tobytes()]
        return counts, parts


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


class BoardCopy:
    """The board in the process that decides: what was sent, whatever a policy did to it since.

    Args:
        board: The board, as it was sent first.
    """

    def __init__(self, board: Board) -> None:
        self.board = board
        self._sent = {name: getattr(board, name).copy() for name in SEEN}

    def change(self, counts: list[list[Any]], data: memoryview) -> None:
        """Take over changes, and undo all that was done to the board since."""
        for name, count in counts:
            rows = rows_of(self._sent[name])
            places, data = data[: 8 * count], data[8 * count :]
            size = 8 * count * rows.shape[1]
            values, data = data[:size], data[size:]
            rows[np.frombuffer(places, dtype=np.int64)] = np.frombuffer(values, dtype=np.int64).reshape(count, -1)
        for name, array in self._sent.items():
            getattr(self.board, name)[...] = array

    @property
    def active(self) -> NDArray[np.int64]:
        """Give the active jobs, (A,)."""
        return self._sent["active"][: self._sent["count"][at.ACTIVE]]


def wanted_bytes(active: int, nodes: int) -> int:
    """Give the size of what `wanted` writes."""
    return 8 * (4 * active + nodes)


def parts_of(data: bytes, active: int) -> Iterator[NDArray[Any]]:
    """Give what is wanted of every active job, (A, 4), and how nodes follow one another, (N,)."""
    yield np.frombuffer(data, dtype=np.float64, count=4 * active).reshape(active, 4)
    yield np.frombuffer(data, dtype=np.int64, offset=32 * active)
