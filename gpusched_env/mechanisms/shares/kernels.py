"""Shares at the hooks: placement on shared GPUs, their cost, and the speed of the jobs on them."""

from __future__ import annotations

from gpusched_env.arrays import Floats, Ints, Mask
from gpusched_env.hooks import register
from gpusched_env.kernel import kernel, lean_kernel
from gpusched_env.mechanisms.shares.adaptation import lost_s
from gpusched_env.mechanisms.shares.constants import ShareFacts, constants
from gpusched_env.mechanisms.shares.features import write_features
from gpusched_env.mechanisms.shares.placement import (
    best_slot,
    block_fits,
    has_room,
    join_all,
    largest_free_share,
    leave_all,
    of_several,
    slots,
)
from gpusched_env.mechanisms.shares.slowdown import residents, write_pair_slowdowns, write_utilisation_slowdowns
from gpusched_env.mechanisms.shares.speed import speed_beside, speed_in_place
from gpusched_env.simulator import hooks
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.events import charge_on
from gpusched_env.simulator.holdings import SHARE
from gpusched_env.simulator.placement.held_nodes import next_node
from gpusched_env.simulator.placement.placement import can_place, can_resize, take
from gpusched_env.simulator.run import Board


@kernel
def open_round(board: Board) -> None:
    nodes, shared = board.nodes, slots(board)
    for n in range(nodes.shape[0]):
        for gpu in range(shared):
            nodes[n, at.NODE_COLUMNS + shared + gpu] = nodes[n, at.NODE_COLUMNS + gpu]


@kernel
def clear_nodes(board: Board) -> None:
    for n in range(board.nodes.shape[0]):
        for gpu in range(slots(board)):
            board.nodes[n, at.NODE_COLUMNS + gpu] = 0


@kernel
def recount(board: Board) -> None:
    for v in range(board.capacity.shape[0]):
        board.capacity[v, at.FREE_SHARE] = largest_free_share(board, v)


@kernel
def slow_down(board: Board, slowdowns: Floats) -> None:
    if board.facts.slowdown.shape[0] > 0:
        write_pair_slowdowns(board, slowdowns)
    if board.facts.utilisation.shape[0] > 0:
        write_utilisation_slowdowns(board, slowdowns)


@kernel
def lose_time(board: Board, slowdowns: Floats, same: Mask, lost: Floats) -> None:
    if board.facts.sharing[at.ADAPT_S] > 0.0:
        lost[:] = lost_s(board, slowdowns, same)


@kernel
def held_charge(board: Board, job: int, config: int, rate: float) -> float:
    """Return the charge for a share [€/s]: its GPU's part of its node, split by share."""
    node, units = int(board.jobs[job, at.NODE]), board.facts.configs[config, at.CONFIG_UNITS]
    if units == 0:
        return rate
    if of_several(board, config):
        return _charge_of_shares(board, job, config)
    rate = charge_on(board, node, board.facts.configs[config, at.CONFIG_GPUS])
    return rate * units / board.nodes[node, at.NODE_COLUMNS + int(board.jobs[job, at.SLOT])]


@kernel
def _charge_of_shares(board: Board, job: int, config: int) -> float:
    """Return the charge for a share of several GPUs [€/s]: each GPU's part of its node, split by share."""
    nodes, configs, rate, n = board.nodes, board.facts.configs, 0.0, int(board.jobs[job, at.NODE])
    slot, units = int(board.jobs[job, at.SLOT]), configs[config, at.CONFIG_UNITS]
    while n >= 0:
        busy = nodes[n, at.USABLE] - nodes[n, at.FREE]
        each = board.node_rate[nodes[n, at.NODE_TYPE], busy] / busy
        for gpu in range(slot, slot + configs[config, at.CONFIG_GPUS]):
            rate += each * units / nodes[n, at.NODE_COLUMNS + gpu]
        n = next_node(board, job, config, n, False)
    return rate


@lean_kernel
def fits_kind(board: Board, config: int, fits: int) -> int:
    configs, capacity = board.facts.configs, board.capacity
    v, units = configs[config, at.CONFIG_TYPE], configs[config, at.CONFIG_UNITS]
    if units == 0:
        return fits
    if of_several(board, config):
        return 1 if block_fits(board, config) else 0
    return 1 if (capacity[v, at.FREE_BLOCK] > 0) | (capacity[v, at.FREE_SHARE] >= units) else 0


@kernel
def put(board: Board, job: int, config: int, placed: bool) -> bool:
    if board.facts.configs[config, at.CONFIG_UNITS] == 0:
        return placed
    node, slot = best_slot(board, job, config)
    take(board, job, config, node, slot)
    return True


@kernel
def take_kind(board: Board, config: int, node: int, slot: int, taken: bool) -> bool:
    if board.facts.configs[config, at.CONFIG_UNITS] == 0:
        return taken
    join_all(board, config, node, slot)
    return True


@kernel
def let_kind_go(board: Board, job: int, config: int, released: bool) -> bool:
    if board.facts.configs[config, at.CONFIG_UNITS] == 0:
        return released
    leave_all(board, config, int(board.jobs[job, at.NODE]), int(board.jobs[job, at.SLOT]))
    return True


@lean_kernel
def next_held(board: Board, job: int, config: int, node: int, old: bool, following: int) -> int:
    configs = board.facts.configs
    if configs[config, at.CONFIG_UNITS] == 0:
        return following
    last = int(board.jobs[job, at.OLD_NODE if old else at.NODE]) + configs[config, at.CONFIG_NODES] - 1
    return node + 1 if node < last else -1


@kernel
def holding_error(board: Board, job: int, config: int, node: int, slot: int, chain: Ints, wrong: int) -> int:  # noqa: ARG001
    if wrong or board.facts.configs[config, at.CONFIG_UNITS] == 0:
        return wrong
    return 0 if has_room(board, config, node, slot, False) else SHARE


@kernel
def opens_node(board: Board, job: int, config: int, opens: int) -> int:
    jobs, nodes, configs = board.jobs, board.nodes, board.facts.configs
    units, v = configs[config, at.CONFIG_UNITS], configs[config, at.CONFIG_TYPE]
    if of_several(board, config):
        if not block_fits(board, config):
            return 0
        n, _ = best_slot(board, job, config)
        return 1 if nodes[n, at.FREE] == nodes[n, at.USABLE] else 0
    preferred = jobs[job, at.PREFERRED_NODE] >= 0 and jobs[job, at.PREFERRED_SLOT] >= 0
    if units > 0 and not preferred and board.capacity[v, at.FREE_SHARE] >= units:
        return 0
    return opens


@kernel
def speed_if_placed(board: Board, job: int, config: int, speed: float) -> float:
    nodes, facts, held = board.nodes, board.facts, int(board.jobs[job, at.CONFIG])
    units, v = facts.configs[config, at.CONFIG_UNITS], facts.configs[config, at.CONFIG_TYPE]
    if facts.configs[config, at.CONFIG_NODES] > 1 and units == 0:
        return speed
    if of_several(board, config) or (held >= 0 and of_several(board, held)):
        return _speed_of_several(board, job, config)
    if units == 0 or (facts.slowdown.shape[0] == 0 and facts.utilisation.shape[0] == 0):
        return speed
    node, gpu = int(board.jobs[job, at.NODE]), int(board.jobs[job, at.SLOT])
    beside = 0
    if gpu >= 0:
        beside = nodes[node, at.NODE_COLUMNS + gpu] - facts.configs[held, at.CONFIG_UNITS]
    if gpu < 0 or nodes[node, at.NODE_TYPE] != v or beside + units > at.UNITS:
        if not can_place(board, job, config):
            return 0.0
        node, gpu = best_slot(board, job, config)
    elif not can_resize(board, job, config):
        return 0.0
    return speed_beside(board, job, config, node * slots(board) + gpu, residents(board))


@kernel
def _speed_of_several(board: Board, job: int, config: int) -> float:
    held, modelled = int(board.jobs[job, at.CONFIG]), board.facts.utilisation.shape[0] + board.facts.slowdown.shape[0]
    if held != config and not can_place(board, job, config):
        return 0.0
    if board.facts.configs[config, at.CONFIG_UNITS] == 0 or modelled == 0:
        return 1.0
    node, slot = int(board.jobs[job, at.NODE]), int(board.jobs[job, at.SLOT])
    if held != config:
        node, slot = best_slot(board, job, config)
    return speed_in_place(board, job, config, node, slot, residents(board))


register(
    "shares",
    {
        hooks.open_round: open_round,
        hooks.clear_nodes: clear_nodes,
        hooks.recount: recount,
        hooks.slow_down: slow_down,
        hooks.lose_time: lose_time,
        hooks.held_charge: held_charge,
        hooks.fits_kind: fits_kind,
        hooks.put: put,
        hooks.take_kind: take_kind,
        hooks.let_kind_go: let_kind_go,
        hooks.next_held: next_held,
        hooks.holding_error: holding_error,
        hooks.opens_node: opens_node,
        hooks.speed_if_placed: speed_if_placed,
        hooks.write_features: write_features,
    },
    (ShareFacts,),
    constants=constants,
)
