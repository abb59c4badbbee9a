"""As traced: the schedule that really ran, for the question what another one would have saved."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from gpusched_env.errors import InputError
from gpusched_env.kernel import kernel
from gpusched_env.model import checks
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.ordering import ask_order
from gpusched_env.simulator.placement.placement import may_have, place

if TYPE_CHECKING:
    from numpy.random import Generator
    from numpy.typing import NDArray

    from gpusched_env.arrays import Ints
    from gpusched_env.model import Instance
    from gpusched_env.simulator import View
    from gpusched_env.simulator.ordering import ActiveJobs
    from gpusched_env.simulator.run import Board


@dataclass(frozen=True, slots=True)
class AsTraced:
    """Every job starts when it really did, on what it really had, and keeps it.

    A job starts at its traced start, on the configuration that it ran on (`JobTable.traced_config`). Where that is not
    free then, it waits for it, since jobs before it may end moments late: durations are blurred within their
    resolution. Where the trace names the GPU type, it waits for GPUs of that type. Else the type is a guess, and after
    `patience_s` it takes as many GPUs of another type on which its time is closest; where no type has them, it starts
    as soon as one has. Jobs that wait are asked in the order of their traced starts, and one that does
    not fit holds none back. It says nothing of jobs whose start is not known, and so runs on replays of traces with
    start times only.

    Args:
        name: Name, as tables show it.
        patience_s: How long after its traced start a job whose GPU type is not known waits for what it ran on before it
            takes another [s], ≥ 0; several times the resolution of the trace.

    Raises:
        InputError: The patience is out of its range.
    """

    name: str = "as-traced"
    preemption: bool = False
    patience_s: float = 60.0

    def __post_init__(self) -> None:
        checks.seconds("patience_s", self.patience_s)

    @property
    def replays(self) -> bool:
        """Say that it may see what really ran."""
        return True

    def check(self, instance: Instance) -> None:
        """Check that it is known when the jobs of an instance really started.

        Raises:
            InputError: It is not.
        """
        if instance.jobs.traced_start_s is None:
            raise InputError("jobs.traced_start_s", None, "start times, as instances of traces have that tell them")

    def decide(self, view: View, rng: Generator) -> None:  # noqa: ARG002 - it draws nothing
        """Start the waiting jobs whose time has come, and ask again when that of the others comes."""
        _decide(view.board, ask_order(view, _by_traced_start, waiting_only=True), self.patience_s)


def _by_traced_start(active: ActiveJobs) -> NDArray[np.float64]:
    starts: NDArray[np.float64] = active.view.jobs[active.index, at.TRACED_START_S]
    return starts


@kernel
def _decide(board: Board, order: Ints, patience_s: float) -> None:
    jobs, now = board.jobs, board.clock[at.NOW]
    for i in range(order.shape[0]):
        job = order[i]
        start = jobs[job, at.TRACED_START_S]
        if start > now:
            jobs[job, at.WAKE_S] = start
            continue
        told = int(jobs[job, at.TRACED_CONFIG])
        config = -2 - told if told < -1 else told
        if may_have(board, job, config):
            place(board, job, config)
        elif now < start + patience_s:
            jobs[job, at.WAKE_S] = start + patience_s
            continue
        elif told >= 0:
            _place_elsewhere(board, job, config)
        jobs[job, at.WAKE_S] = np.inf


@kernel
def _place_elsewhere(board: Board, job: int, traced: int) -> None:
    """Place a job on the configuration as large as the traced one, if it can have any, on which its time is closest.

    The ratio of the times tells, the longer over the shorter; equal ones by index.
    """
    tau, configs = board.tau, board.facts.configs
    best, least = -1, np.inf
    for c in range(tau.shape[1]):
        if configs[c, at.CONFIG_SIZE] != configs[traced, at.CONFIG_SIZE] or not tau[job, c] < np.inf:
            continue
        ratio = max(tau[job, c] / tau[job, traced], tau[job, traced] / tau[job, c])
        if ratio < least and may_have(board, job, c):
            best, least = c, ratio
    if best >= 0:
        place(board, job, best)
