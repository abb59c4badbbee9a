"""Features of the power limits of configurations, for the current job."""

from __future__ import annotations

from gpusched_env.arrays import Singles
from gpusched_env.kernel import lean_kernel
from gpusched_env.mechanisms import GROUPS
from gpusched_env.mechanisms.saved_power.names import LIMIT_ONLY, SAVED
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.placement.held_nodes import same_gpus
from gpusched_env.simulator.run import Board

LIMITS = tuple(GROUPS).index("limits")


@lean_kernel
def write_group(board: Board, group: int, rows: Singles) -> None:
    """Write a row for each configuration, (C, LIMITS); zeros where the job may not use it, and at the end."""
    if group != LIMITS:
        return
    rows[:, :] = 0.0
    count, clock, saved = board.count, board.clock, board.facts.saved_kw
    if count[at.TO_ASK] == count[at.ASKED]:
        return
    job = board.order[count[at.ASKED]]
    application, old = int(board.jobs[job, at.APPLICATION]), int(board.jobs[job, at.OLD_CONFIG])
    eur_per_kw_s = clock[at.PRICE] * clock[at.PUE] / 3600.0
    for c in range(rows.shape[0]):
        if board.tau[job, c] == float("inf"):
            continue
        if saved.shape[0] > 0:
            less = saved[application, c] * eur_per_kw_s
            whole = board.planning_rate[application, c] + less
            rows[c, SAVED] = less / whole if whole > 0.0 else 0.0
        rows[c, LIMIT_ONLY] = 1.0 if old >= 0 and old != c and same_gpus(board, old, c) else 0.0
