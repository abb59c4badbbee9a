"""Where roll-outs are played: boards of the active jobs alone, with arrays of their own, and a fate that was drawn."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from gpusched_baselines.planning.company import beside_company
from gpusched_env.kernel import kernel
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.placement.room import clear
from gpusched_env.simulator.run import Board, Hidden

if TYPE_CHECKING:
    from typing import Any

    from numpy.typing import NDArray

COPIED = ("nodes", "room", "quota", "cells", "hosts", "clock", "count")


class Stage(NamedTuple):
    """The boards of the roll-outs of one round. Row i of their jobs is the i-th active job; then come those to come.

    Attributes:
        start: The round as it begins, from an empty cluster; never changed.
        work: What a roll-out changes.
        plan: The same arrays but for `tau`: the times with which policies plan.
        hidden: The fate that was drawn, and the jobs that were drawn to come.
    """

    start: Board
    work: Board
    plan: Board
    hidden: Hidden


def new_stage(board: Board, coming: int) -> Stage:
    """Make the stage of the round that is open on `board`, with room for `coming` jobs that may come."""
    active = board.active[: board.count[at.ACTIVE]]
    planned = beside_company(board).tau[active]
    start = _compact(board, active, coming)
    clear(start, start.active[: len(active)])
    work = Board(**{n: a if n in _SHARED else a.copy() for n, a in start.__getstate__().items()})
    plan = Board(**work.__getstate__() | {"tau": _longer(planned, coming)})
    hidden = Hidden(
        fate=np.full((len(active) + coming, at.FATE_COLUMNS), np.inf),
        jobs=start.jobs.copy(),
        tau=start.tau.copy(),
        edges=board.edges,
        survival=board.survival,
        tail=board.tail,
        log=np.empty((0, at.LOG_COLUMNS)),
    )
    return Stage(start, work, plan, hidden)


_SHARED = frozenset({"facts", "node_rate", "planning_rate", "least_rate", "edges", "survival", "tail"})


def _compact(board: Board, active: NDArray[np.int64], coming: int) -> Board:
    rows = len(active) + coming
    values: dict[str, Any] = board.__getstate__() | {name: getattr(board, name).copy() for name in COPIED}
    for name in ("jobs", "tau", "memory"):
        values[name] = _longer(getattr(board, name)[active], coming)
    values |= {"active": np.arange(rows), "keys": np.zeros(rows), "order": np.zeros(rows, dtype=np.int64)}
    start = Board(**values)
    count = start.count
    count[[at.SUBMITTED, at.ACTIVE, at.DONE]] = len(active), len(active), 0
    count[[at.LOGGING, at.MILESTONES, at.LOGGED, at.IDLE]] = 0
    start.clock[at.REVIEW] = np.inf
    return start


def _longer(rows: NDArray[np.float64], more: int) -> NDArray[np.float64]:
    """Give the rows and so many rows of zeros more, contiguous."""
    return np.concatenate([rows, np.zeros((more, rows.shape[1]))])


@kernel
def reset(start: Board, work: Board) -> None:
    """Let the roll-out begin again."""
    work.jobs[:, :] = start.jobs
    work.memory[:, :] = start.memory
    work.nodes[:, :] = start.nodes
    work.room[:, :] = start.room
    work.quota[:, :] = start.quota
    work.cells[:, :] = start.cells
    work.hosts[:, :] = start.hosts
    work.clock[:] = start.clock
    work.count[:] = start.count
    work.active[:] = start.active
