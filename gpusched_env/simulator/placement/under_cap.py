"""Whether a placement stays under the cap of the site."""

from __future__ import annotations

from gpusched_env.kernel import kernel, lean_kernel
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.placement.node_index import find_node
from gpusched_env.simulator.run import Board
from gpusched_env.simulator.site_power import has_hard_cap, is_above_cap, saved_kw


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
    saved = saved_kw(board, job, config) - saved_kw(board, job, held)
    if configs[held, at.CONFIG_UNITS] > 0 or configs[held, at.CONFIG_NODES] > 1:
        return -saved
    v, busy, drawn = nodes[node, at.NODE_TYPE], nodes[node, at.USABLE] - nodes[node, at.FREE], board.facts.kilowatts
    after = busy + configs[config, at.CONFIG_GPUS] - configs[held, at.CONFIG_GPUS]
    return drawn[v, min(after, drawn.shape[1] - 1)] - drawn[v, busy] - saved
