"""What environments with `features=("gpusched_env.mechanisms.failures",)` observe of failures."""

from __future__ import annotations

from gpusched_env.arrays import Singles
from gpusched_env.kernel import lean_kernel
from gpusched_env.mechanisms.failures import state as of
from gpusched_env.mechanisms.failures.model import NAME
from gpusched_env.observation import group_number
from gpusched_env.observation.ratios import Names, squash
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.run import Board

GROUP = group_number(NAME)

_failure = Names()
DOWN = _failure("GPUs of nodes that are down / GPUs")
ANNOUNCED = _failure("GPUs of nodes that are announced to go down / GPUs")
UNSAVED = _failure("squash(time since the current job, if it runs, was last saved / its interval between checkpoints)")
LOST = _failure("epochs that the current job has lost / its maximum epochs, at most 1")
FEATURES = tuple(_failure)


@lean_kernel
def write_group(board: Board, group: int, rows: Singles) -> None:
    """Write the row of the group, (1, 4)."""
    if group != GROUP:
        return
    rows[:] = 0.0
    if board.outages.shape[0] == 0:
        return
    gpus, count = 0, board.count
    for n in range(board.nodes.shape[0]):
        own = board.nodes[n, at.NODE_GPUS]
        gpus += own
        rows[0, DOWN] += own if board.outages[n, of.IS_DOWN] > 0.0 else 0
        rows[0, ANNOUNCED] += own if board.outages[n, of.ANNOUNCED_S] < float("inf") else 0
    rows[0, DOWN] /= gpus
    rows[0, ANNOUNCED] /= gpus
    if count[at.ASKED] < count[at.TO_ASK]:
        job = board.order[count[at.ASKED]]
        held = int(board.jobs[job, at.OLD_CONFIG])
        rows[0, LOST] = min(1.0, board.saved[job, of.LOST_EPOCHS] / board.jobs[job, at.MAX_EPOCHS])
        if held >= 0:
            since, interval = (
                board.clock[at.NOW] - board.saved[job, of.SAVED_S],
                board.facts.checkpointing[held, of.INTERVAL_S],
            )
            rows[0, UNSAVED] = squash(max(0.0, since) / interval) if interval > 0.0 else 0.0
