"""What a job is offered beside others: every GPU that is open and has room, at the paces that would then be."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gpusched_baselines.neighbours.gpu import company_of, join, set_paces, together_s
from gpusched_baselines.planning.cheapest import worth
from gpusched_env.kernel import kernel, lean_kernel
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.due_dates import misses
from gpusched_env.simulator.pace.neighbours import neighbours
from gpusched_env.simulator.placement.node_index import find_node
from gpusched_env.simulator.placement.placement import fits
from gpusched_env.simulator.placement.shared_gpus import closed_slot, slots

if TYPE_CHECKING:
    from gpusched_env.arrays import Floats, Ints
    from gpusched_env.simulator.run import Board


# offers: float64, one row for each.
LATE = 0  # 1 if it misses the due date
FIRST = 1  # its cost [€]; if it is late, its time [s]
SECOND = 2  # units of the GPU that it takes: of equals the smaller share
CONFIG, NODE, GPU = 3, 4, 5  # the configuration, and where, -1 for wherever it fits best


@kernel
def best_offer(board: Board, job: int, own_left: float, left: Floats) -> tuple[int, int, int]:
    """Choose for `job` what costs least of all that fits and meets its due date, else what is fastest.

    Whole GPUs and nodes count as in `cheapest_with`. A share of a GPU that is open takes as long as it would beside the
    jobs there, and costs the power of the GPU for as long as it will be busy longer for it; it is no offer if one of
    them would miss a due date for it that it meets now. A share of a GPU of its own costs the whole of it, and comes
    before the whole of it: others may join.

    Args:
        board: The run.
        job: The job, which holds nothing.
        own_left: The epochs that it is taken to have left.
        left: Those that every active job is taken to have left, (A,).

    Returns:
        The configuration, and for a share the node and the number of the GPU, else -1; -1, -1, -1 if nothing fits.
    """
    offers = np.empty((board.facts.configs.shape[0] * (1 + board.nodes.shape[0] * slots(board)), 6))
    found = _whole_offers(board, job, own_left, offers)
    if slots(board) > 0:
        found = _shared_offers(board, job, own_left, left, offers, found)
    best = -1
    for i in range(found):
        if best < 0 or _better(offers[i], offers[best]):
            best = i
    if best < 0:
        return -1, -1, -1
    return int(offers[best, CONFIG]), int(offers[best, NODE]), int(offers[best, GPU])


@lean_kernel
def _better(one: Floats, other: Floats) -> bool:
    """Say whether an offer is better: in time before late, then by cost or time, then the smaller share."""
    for column in (LATE, FIRST, SECOND):
        if one[column] != other[column]:
            return one[column] < other[column]
    return False


@lean_kernel
def _write(offer: Floats, late: bool, first: float, units: int, config: int, node: int, gpu: int) -> None:
    offer[LATE], offer[FIRST], offer[SECOND] = 1.0 if late else 0.0, first, units
    offer[CONFIG], offer[NODE], offer[GPU] = config, node, gpu


@kernel
def _whole_offers(board: Board, job: int, own_left: float, offers: Floats) -> int:
    """Write the offers of whole GPUs and nodes; return how many there are."""
    configs, tau, found = board.facts.configs, board.tau, 0
    time_left = board.jobs[job, at.DUE] - board.clock[at.NOW]
    for c in range(configs.shape[0]):
        if tau[job, c] < np.inf and configs[c, at.CONFIG_UNITS] == 0 and fits(board, c):
            late, first, _ = worth(own_left * tau[job, c], time_left, board.least_rate[c])
            _write(offers[found], late, first, at.UNITS, c, -1, -1)
            found += 1
    return found


@kernel
def _shared_offers(board: Board, job: int, own_left: float, left: Floats, offers: Floats, found: int) -> int:
    """Add the offers of shares, of GPUs that are open and of one that would be opened; return how many there are."""
    configs, tau, nodes = board.facts.configs, board.tau, board.nodes
    time_left = board.jobs[job, at.DUE] - board.clock[at.NOW]
    last, before = neighbours(board)
    for c in range(configs.shape[0]):
        units, v = configs[c, at.CONFIG_UNITS], configs[c, at.CONFIG_TYPE]
        if tau[job, c] == np.inf or units == 0 or not fits(board, c):
            continue
        whole = board.least_rate[c] / board.facts.shares[c]
        if board.room[v, at.GAP] > 0:
            seconds = own_left * tau[job, c] / board.facts.planned[int(board.jobs[job, at.APPLICATION]), c]
            late, first, _ = worth(seconds, time_left, whole)
            node = find_node(board, v, 1, int(board.jobs[job, at.HOME]))
            _write(offers[found], late, first, units, c, node, closed_slot(board, node))
            found += 1
        for n in range(nodes.shape[0]):
            for g in range(slots(board) if nodes[n, at.NODE_TYPE] == v else 0):
                used = nodes[n, at.NODE_COLUMNS + g]
                if used == 0 or used + units > at.UNITS:
                    continue
                late, first = _beside(board, job, c, own_left, left, last[n * slots(board) + g], before)
                if first < np.inf:
                    _write(offers[found], late, first if late else first * whole, units, c, n, g)
                    found += 1
    return found


@kernel
def _beside(
    board: Board, job: int, config: int, own_left: float, left: Floats, last: int, before: Ints
) -> tuple[bool, float]:
    """Rank a share of a GPU beside those there: by how much longer the GPU is busy or, if it is late, by its time.

    Infinite if one of the others would miss its due date for it.
    """
    company = company_of(board, last, before, left, 1)
    size = company.jobs.shape[0]
    company.alone_s[size - 1], company.jobs[size - 1], company.configs[size - 1] = 0.0, job, config
    set_paces(board, company)
    now_s = company.alone_s / company.pace
    join(board, company, size - 1, job, config, own_left)
    set_paces(board, company)
    for k in range(size - 1):
        time_left = board.jobs[company.jobs[k], at.DUE] - board.clock[at.NOW]
        if misses(company.alone_s[k] / company.pace[k], time_left) and not misses(now_s[k], time_left):
            return True, np.inf
    seconds = company.alone_s[size - 1] / company.pace[size - 1]
    if misses(seconds, board.jobs[job, at.DUE] - board.clock[at.NOW]):
        return True, seconds
    together = together_s(board, company)
    return False, max(0.0, together - together_s(board, company_of(board, last, before, left, 0)))
