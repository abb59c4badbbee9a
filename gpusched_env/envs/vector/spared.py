"""What the GPUs that were held before the present round spare, where they draw power by duty."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gpusched_env.simulator import layout as at

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from gpusched_env.simulator.run import Board


def spared_before(board: Board, runs: NDArray[np.bool_]) -> float:
    """Give what the GPUs of the jobs that run cost less than busy ones [€/s], as they were before the round.

    Args:
        board: The run.
        runs: Which of the submitted jobs ran until the present round, (S,).
    """
    facts, clock = board.facts, board.clock
    if not facts.spared.size:
        return 0.0
    jobs = board.jobs[: len(runs)][runs]
    held, own, node, slot = jobs[:, [at.OLD_CONFIG, at.APPLICATION, at.OLD_NODE, at.OLD_SLOT]].astype(np.int64).T
    configs = facts.configs[held]
    v, units = configs[:, at.CONFIG_TYPE], configs[:, at.CONFIG_UNITS]
    per_node = (board.nodes.shape[1] - at.NODE_COLUMNS) // 2
    used = board.nodes[node, np.where(slot >= 0, at.NODE_COLUMNS + per_node + slot, 0)]
    part = np.where(units > 0, units / np.maximum(1, used), 1.0)
    duty = facts.duty[v, own] if facts.duty.size else np.ones(len(jobs))
    work = duty / np.where(units > 0, jobs[:, at.PACE] * facts.planned[own, held], 1.0)
    gpus = configs[:, at.CONFIG_GPUS] * configs[:, at.CONFIG_NODES]
    kilowatts = float(np.sum(facts.spared[v] * gpus * (part - work)))
    return kilowatts * float(clock[at.PRICE] * clock[at.PUE]) / 3600.0
