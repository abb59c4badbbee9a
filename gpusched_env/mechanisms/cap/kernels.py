"""The cap on the power of the site at the hooks: placements that stay under it, its periods, and what is above it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gpusched_env.hooks import register
from gpusched_env.kernel import kernel, lean_kernel
from gpusched_env.mechanisms.cap.features import write_group
from gpusched_env.mechanisms.cap.power import (
    CapBoard,
    CapHidden,
    arrays,
    count_power,
    count_saved,
    has_hard_cap,
    is_above_cap,
    measure_power,
    next_fall,
    next_site_event,
    over_cap_rate,
    saved_kw,
    see_cap,
)
from gpusched_env.mechanisms.cap.throttling import throttle
from gpusched_env.simulator import hooks
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.events import bill_rate
from gpusched_env.simulator.placement.node_index import find_node
from gpusched_env.simulator.run import Board, Hidden

if TYPE_CHECKING:
    from gpusched_env.model import Instance


@lean_kernel
def within_cap(board: Board, job: int, config: int) -> bool:
    """Whether the site stays under a hard cap with a configuration, which fits, for a job that holds nothing."""
    return not has_hard_cap(board) or not is_above_cap(board, added_kw(board, job, config))


@kernel
def added_kw(board: Board, job: int, config: int) -> float:
    """Return the power that a configuration, which fits, would add where a job would be placed [kW].

    Of a share it is the most that it can add, that of nodes that were off: it may go to GPUs that are shared already.
    """
    nodes, configs, drawn = board.nodes, board.facts.configs, board.facts.kilowatts
    v, gpus, many = configs[config, at.CONFIG_TYPE], configs[config, at.CONFIG_GPUS], configs[config, at.CONFIG_NODES]
    if configs[config, at.CONFIG_UNITS] > 0 or many > 1:
        return many * drawn[v, gpus] - saved_kw(board, job, config)
    node = find_node(board, v, gpus, int(board.jobs[job, at.PREFERRED_NODE]))
    busy = nodes[node, at.USABLE] - nodes[node, at.FREE]
    return drawn[v, busy + gpus] - drawn[v, busy] - saved_kw(board, job, config)


@kernel
def grown_kw(board: Board, job: int, config: int) -> float:
    """Return the power that a configuration in the place of the one that a job holds, on its node, would add [kW]."""
    jobs, nodes, configs = board.jobs, board.nodes, board.facts.configs
    held, node = int(jobs[job, at.CONFIG]), int(jobs[job, at.NODE])
    saved, units = saved_kw(board, job, config) - saved_kw(board, job, held), configs[held, at.CONFIG_UNITS]
    if configs[config, at.CONFIG_UNITS] > 0 or configs[held, at.CONFIG_NODES] > 1:
        return -saved
    v, busy, drawn = nodes[node, at.NODE_TYPE], nodes[node, at.USABLE] - nodes[node, at.FREE], board.facts.kilowatts
    after = busy + configs[config, at.CONFIG_GPUS] - configs[held, at.CONFIG_GPUS]
    if units > 0 and nodes[node, at.NODE_COLUMNS + int(jobs[job, at.SLOT])] > units:
        after += 1  # others stay on the shared GPU
    return drawn[v, min(after, drawn.shape[1] - 1)] - drawn[v, busy] - saved


@lean_kernel
def may_place(board: Board, job: int, config: int, allowed: bool) -> bool:
    return allowed and within_cap(board, job, config)


@lean_kernel
def may_resize(board: Board, job: int, config: int, allowed: bool) -> bool:
    return allowed and not (has_hard_cap(board) and is_above_cap(board, grown_kw(board, job, config)))


@lean_kernel
def next_event(board: Board, hidden: Hidden, time: float) -> float:
    return min(time, next_site_event(board, hidden))


@lean_kernel
def next_decision(board: Board, hidden: Hidden, from_s: float, decision: float) -> float:  # noqa: ARG001 - of the hook
    return min(decision, next_fall(hidden, from_s))


@kernel
def after_event(board: Board, hidden: Hidden) -> None:
    if hidden.caps.shape[0] > 0:
        see_cap(board, hidden, board.clock[at.NOW])
        measure_power(board)
        board.clock[at.BILL_RATE] = bill_rate(board)


@lean_kernel
def penalty_rate(board: Board, rate: float) -> float:
    return rate + over_cap_rate(board)


@lean_kernel
def account(board: Board, seconds: float, length: float) -> None:  # noqa: ARG001 - of the hook
    board.clock[at.CAP_FORCED_S] += board.count[at.FORCED] * seconds


def begin(instance: Instance, board: Board, hidden: CapHidden) -> None:  # noqa: ARG001 - as others
    """Write the cap at the beginning of a run."""
    if len(hidden.caps):
        see_cap(board, hidden, 0.0)


def expect(board: Board, hidden: CapHidden | None, until: float) -> dict[str, Any]:  # noqa: ARG001 - as others
    """Return the periods of the cap that have been announced; none for a simulation by a policy."""
    caps = np.empty((0, at.CAP_COLUMNS)) if hidden is None else hidden.caps
    noticed = np.minimum(caps[:, at.CAP_NOTICED_S], caps[:, at.CAP_START_S]) <= board.clock[at.NOW]
    return {"caps": np.ascontiguousarray(caps[noticed])}


register(
    "cap",
    {
        hooks.recount: measure_power,
        hooks.close_round: throttle,
        hooks.next_event: next_event,
        hooks.next_decision: next_decision,
        hooks.after_event: after_event,
        hooks.penalty_rate: penalty_rate,
        hooks.account: account,
        hooks.may_place: may_place,
        hooks.may_resize: may_resize,
        hooks.count_in: count_saved,
        hooks.count_busy: count_power,
        hooks.empty_nodes: measure_power,
        hooks.write_group: write_group,
    },
    (CapBoard, CapHidden),
    arrays,
    begin,
    expect,
)
