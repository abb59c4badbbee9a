"""Tiresias and SRTF as Muri's program has them: policies that decide again at every event which jobs run.

Rules of github.com/pkusys/Muri 4e69a78 (Apache-2.0), simulator/run_sim.py with `dlas-gpu` and `shortest`, in our own
code.
"""

from __future__ import annotations

from math import ceil, inf
from typing import TYPE_CHECKING

from gpusched_reproductions.systems.muri.program import MuriPolicy

if TYPE_CHECKING:
    from gpusched_reproductions.systems.muri.program import SimulatedJob

QUEUE_ENDS = (3250.0, 7200.0)
"""GPU-seconds after which a job leaves Tiresias' first and second queue; the third one has no end."""


class Srtf(MuriPolicy):
    """Shortest remaining time first.

    At every event jobs run in order of the time that they still need alone, while there are as many free GPUs as they
    need; one that does not fit waits, and later ones are tried. The program places each on the first node with room, or
    on wholly free nodes: since numbers of GPUs are powers of two and all jobs are placed again, that never fails where
    enough GPUs are free.
    """

    def submit(self, job: SimulatedJob) -> None:
        self.waiting.add(job, job.left * job.iteration_s, job.number)

    def place(self) -> None:
        for job in self.running:
            self.submit(job)
        self.running = self.waiting.start(self.gpus)


class MuriTiresias(MuriPolicy):
    """Three queues by the GPU-seconds that a job has had; GPUs are counted, not placed.

    At every event jobs run, first those of the first queue, while there are as many free GPUs as they need; one that
    does not fit waits, and later ones are tried. A queue has its running jobs first, in their order, then the waiting
    ones. New jobs come to the end of the first queue, and a running job that has had enough to the end of the next,
    which is an event after whole seconds of its own time.
    """

    same_time = 0.0

    def __init__(self, nodes: int) -> None:
        super().__init__(nodes)
        self._queue: dict[SimulatedJob, int] = {}
        self._had_s: dict[SimulatedJob, float] = {}
        self._demoted: list[SimulatedJob] = []
        self._events, self._now_s = 0, 0.0

    def submit(self, job: SimulatedJob) -> None:
        self._queue[job], self._had_s[job] = 0, 0.0
        self.waiting.add(job, 0, job.number, 0)

    def advance(self, before_s: float, now_s: float) -> None:
        super().advance(before_s, now_s)
        self._now_s, self._demoted = now_s, []
        for job in self.running:
            self._had_s[job] = self._had_s[job] + now_s - before_s
            queue = self._queue[job]
            if queue < len(QUEUE_ENDS) and self._had_s[job] * job.gpus >= QUEUE_ENDS[queue]:
                self._queue[job] = queue + 1
                self._demoted.append(job)
        self._demoted.sort(key=lambda job: job.number)

    def place(self) -> None:
        # Keys: the queue, then the place. Jobs that ran come before all that wait (negative, later events first, so
        # that those preempted now come before those preempted earlier), demoted ones after all that wait.
        self._events += 1
        for place, job in enumerate(job for job in self.running if job not in self._demoted):
            self.waiting.add(job, self._queue[job], -self._events, place)
        for place, job in enumerate(self._demoted):
            self.waiting.add(job, self._queue[job], self._events, place)
        self.running = self.waiting.start(self.gpus)
        self.change_s = min(
            (
                ceil(QUEUE_ENDS[queue] / job.gpus) - self._had_s[job] + self._now_s
                for job in self.running
                if (queue := self._queue[job]) < len(QUEUE_ENDS)
            ),
            default=inf,
        )
