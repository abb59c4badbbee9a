"""The power of a site, and its cap: what policies may know of it, and what a kWh above it costs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import numpy as np

from gpusched_env.arrays import Floats
from gpusched_env.kernel import kernel, lean_kernel
from gpusched_env.mechanisms.cap.model import PowerCap
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.run import Board, Hidden

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from gpusched_env.model import Instance

ROUNDED = 1.0 + 1e-9  # sums of powers differ by rounding


class CapBoard(Board):
    """Adds what a kWh above the cap costs.

    Attributes:
        site: Numbers of the cap, (SITE_COLUMNS,); (0,) without one.
    """

    site: Annotated[Floats, 1]


class CapHidden(Hidden):
    """Adds the periods of the cap.

    Attributes:
        caps: The periods of the site's cap, disclosed when they are announced, (P, CAP_COLUMNS); no rows without
            a cap.
    """

    caps: Annotated[Floats, 2]


def arrays(instance: Instance) -> dict[str, NDArray[np.float64]]:
    """Return the arrays of an instance at the beginning of a run."""
    cap = instance.of(PowerCap)
    if cap is None:
        return {"site": np.empty(0), "caps": np.empty((0, at.CAP_COLUMNS))}
    numbers = np.array([np.inf if cap.is_hard else cap.soft_eur_per_kwh])
    return {"site": numbers, "caps": np.array([cap.start_s, cap.cap_kw, cap.noticed_s]).T.copy()}


@lean_kernel
def full_kilowatts(board: Board) -> float:
    """Return the power of all nodes with all GPUs busy, without what the PUE adds [kW]; 1 without any."""
    nodes, drawn, total = board.nodes, board.facts.kilowatts, 0.0
    for n in range(nodes.shape[0]):
        total += drawn[nodes[n, at.NODE_TYPE], nodes[n, at.NODE_GPUS]]
    return total if total > 0.0 else 1.0


@lean_kernel
def has_site(board: Board) -> bool:
    return board.site.shape[0] > 0


@lean_kernel
def has_hard_cap(board: Board) -> bool:
    return has_site(board) and board.site[at.SOFT_EUR] == np.inf and board.clock[at.CAP_KW] < np.inf


@lean_kernel
def is_above_cap(board: Board, added_kw: float) -> bool:
    return board.clock[at.KW] + added_kw > board.clock[at.CAP_KW] * ROUNDED


@lean_kernel
def saved_kw(board: Board, job: int, config: int) -> float:
    """Return what the GPUs of a configuration draw less than full busy ones with a job [kW]."""
    if not board.has_saved_power:
        return 0.0
    saved = board.facts.saved_kw
    return saved[int(board.jobs[job, at.APPLICATION]), config] if saved.shape[0] > 0 else 0.0


@lean_kernel
def count_saved(board: Board, job: int, config: int, times: int) -> None:
    """Update the power of the site: a job gets a configuration (`times` 1), or returns it (-1)."""
    if has_site(board):
        board.clock[at.KW] -= times * saved_kw(board, job, config)


@lean_kernel
def count_power(board: Board, node: int, before: int, after: int) -> None:
    """Update the power of the site: a node had so many free GPUs, and has so many now."""
    if has_site(board):
        v, usable, drawn = board.nodes[node, at.NODE_TYPE], board.nodes[node, at.USABLE], board.facts.kilowatts
        board.clock[at.KW] += drawn[v, usable - after] - drawn[v, usable - before]


@kernel
def site_kw(board: Board) -> float:
    """Return the power of all nodes, less what held GPUs save, without what the PUE adds [kW]."""
    nodes, drawn, total = board.nodes, board.facts.kilowatts, 0.0
    for n in range(nodes.shape[0]):
        total += drawn[nodes[n, at.NODE_TYPE], nodes[n, at.USABLE] - nodes[n, at.FREE]]
    for job in board.active[: board.count[at.ACTIVE]]:
        if board.jobs[job, at.CONFIG] >= 0.0:
            total -= saved_kw(board, job, int(board.jobs[job, at.CONFIG]))
    return total


@lean_kernel
def measure_power(board: Board) -> None:
    if has_site(board):
        board.clock[at.KW] = site_kw(board)


@lean_kernel
def over_cap_rate(board: Board) -> float:
    """Return what the power above a soft cap costs now in addition to its energy [€/s]."""
    if not has_site(board) or board.site[at.SOFT_EUR] == np.inf:
        return 0.0
    return max(0.0, board.clock[at.KW] - board.clock[at.CAP_KW]) * board.site[at.SOFT_EUR] / 3600.0


@kernel
def next_site_event(board: Board, hidden: Hidden) -> float:
    """Return when the cap changes next, or a change is announced [s]; inf for never."""
    caps, now, time = hidden.caps, board.clock[at.NOW], np.inf
    for p in range(caps.shape[0]):
        for column in (at.CAP_START_S, at.CAP_NOTICED_S):
            if caps[p, column] > now:
                time = min(time, caps[p, column])
    return time


@kernel
def next_fall(hidden: Hidden, from_s: float) -> float:
    """Return the first time, from `from_s` on, at which the cap falls [s]; inf for never."""
    caps = hidden.caps
    for p in range(1, caps.shape[0]):
        if caps[p, at.CAP_START_S] >= from_s and caps[p, at.CAP_PERIOD_KW] < caps[p - 1, at.CAP_PERIOD_KW]:
            return caps[p, at.CAP_START_S]
    return np.inf


@kernel
def see_cap(board: Board, hidden: Hidden, time: float) -> None:
    """Write the cap at `time`, and the next change that has been announced, to the clock."""
    caps, clock, told = hidden.caps, board.clock, False
    for p in range(caps.shape[0]):
        if caps[p, at.CAP_START_S] <= time:
            clock[at.CAP_KW] = caps[p, at.CAP_PERIOD_KW]
            clock[at.NEXT_CAP_S], clock[at.NEXT_CAP_KW] = np.inf, clock[at.CAP_KW]
        elif caps[p, at.CAP_NOTICED_S] <= time and not told:
            clock[at.NEXT_CAP_S], clock[at.NEXT_CAP_KW] = caps[p, at.CAP_START_S], caps[p, at.CAP_PERIOD_KW]
            told = True
