"""AntMan as Muri's program has it: guaranteed jobs that hold GPUs, and opportunistic ones on any GPUs.

Rules of github.com/pkusys/Muri 4e69a78 (Apache-2.0), simulator/run_sim.py with `antman` and switch.py, in our own code.
"""

from __future__ import annotations

from functools import cache
from math import floor
from typing import TYPE_CHECKING

from gpusched_reproductions.systems.muri.program import MuriPolicy
from gpusched_reproductions.systems.muri.traces import GPUS, Stages

if TYPE_CHECKING:
    from gpusched_reproductions.systems.muri.program import SimulatedJob

GUARANTEED, STARTED, OPPORTUNISTIC = 0.1, 0.01, 0.9
"""What a job counts for on each of its GPUs; a guaranteed one gets the second part of its own only when it starts."""
MOST = 0.8
"""An opportunistic job comes only to GPUs that count for less."""


class MuriAntMan(MuriPolicy):
    """Guaranteed jobs by submission, then opportunistic ones by submission; a job that runs is not moved or stopped.

    A guaranteed job that does not fit takes what no guaranteed job has, and holds it until it has all: up to 8 GPUs on
    one node, at first that with most of them; more than 8 on wholly free nodes. An opportunistic job takes all of its
    GPUs at once, on any nodes: those that count for least, first by node. Only guaranteed jobs that run slow it down,
    not those that hold GPUs and wait.
    """

    def __init__(self, nodes: int) -> None:
        super().__init__(nodes)
        self._guaranteed: list[SimulatedJob] = []  # that wait, by submission
        self._gpus: dict[SimulatedJob, list[int]] = {}  # of each job, numbered through all nodes
        self._free = [list(range(node * GPUS, (node + 1) * GPUS)) for node in range(nodes)]  # of guaranteed jobs
        self._above: dict[int, SimulatedJob] = {}  # by GPU: the guaranteed job that runs on it
        # What the jobs of a GPU count for. Sums are rounded as the program's are: it decides which of two GPUs comes
        # first that no job has any more.
        self._count = [0.0] * (nodes * GPUS)

    def submit(self, job: SimulatedJob) -> None:
        self._gpus[job] = []
        if job.trace.opportunistic:
            self.waiting.add(job, job.number)
        else:
            self._guaranteed.append(job)

    def end(self, job: SimulatedJob) -> None:
        super().end(job)
        for gpu in self._gpus.pop(job):
            if job.trace.opportunistic:
                self._count[gpu] -= OPPORTUNISTIC
            else:
                self._count[gpu] -= GUARANTEED
                del self._above[gpu]
                self._free[gpu // GPUS].append(gpu)
        for free in self._free:
            free.sort()

    def place(self) -> None:
        for job in list(self._guaranteed):
            if not any(self._free):
                break
            if self._hold(job):
                self._guaranteed.remove(job)
                self.running.append(job)
                self._above |= dict.fromkeys(self._gpus[job], job)
        opportunistic = self.waiting.start(sum(count < MOST for count in self._count))
        for job in opportunistic:
            self._take(job)
        self.running += opportunistic
        self.running.sort(key=lambda job: (job.trace.opportunistic, job.number))
        for job in self.running:
            if job.trace.opportunistic:
                job.iteration_s = self._iteration_s(job)

    def _hold(self, job: SimulatedJob) -> bool:
        """Give a guaranteed job what it can have now; return whether it has all."""
        held = self._gpus[job]
        needed = job.gpus - len(held)
        free = [len(each) for each in self._free]
        if job.gpus > GPUS:
            chosen = [node for node, count in enumerate(free) if count == GPUS][: needed // GPUS]
        elif held:
            chosen = [held[0] // GPUS]
        else:
            chosen = [next((node for node, count in enumerate(free) if count >= needed), free.index(max(free)))]
        for node in chosen:
            more = self._free[node][: min(needed, GPUS)]
            del self._free[node][: len(more)]
            held += more
            for gpu in more:
                self._count[gpu] += GUARANTEED - STARTED
        if len(held) < job.gpus:
            return False
        for gpu in held:
            self._count[gpu] += STARTED
        return True

    def _take(self, job: SimulatedJob) -> None:
        """Give an opportunistic job its GPUs."""
        open_to_it = [gpu for gpu, count in enumerate(self._count) if count < MOST]
        self._gpus[job] = sorted(open_to_it, key=self._count.__getitem__)[: job.gpus]
        for gpu in self._gpus[job]:
            self._count[gpu] += OPPORTUNISTIC

    def _iteration_s(self, job: SimulatedJob) -> float:
        above = {self._above[gpu] for gpu in self._gpus[job] if gpu in self._above}
        below_s = [iterations_below(job.trace.stages, each.trace.stages) * each.alone_s for each in above]
        return max([job.alone_s, *below_s])


@cache
def iterations_below(own: Stages, above: Stages) -> int:
    """Return how many iterations of a guaranteed job pass during one of an opportunistic job on its GPUs.

    A stage proceeds only while the guaranteed job is in a stage of another resource, and what is begun in an iteration
    of it ends with it. Loading of data takes as many iterations as it fits between the guaranteed job's own; then
    computing, of which a part is done in the rest of the last one; then synchronisation, likewise. Stages are those of
    the trace, without `LONGER`.
    """
    data_s, gpu_s, network_s = own.data_s, own.gpu_s, own.network_s
    not_data_s = above.gpu_s + above.network_s
    not_gpu_s = above.data_s + above.network_s
    not_network_s = above.data_s + above.gpu_s
    # The program rounds the quotient and the remainder each for itself, other than divmod.
    iterations, rest_s = floor(data_s / not_data_s), data_s % not_data_s
    if rest_s > 0.0:
        iterations += 1
        gpu_s -= min(gpu_s, above.network_s, not_data_s - rest_s)
    iterations, rest_s = iterations + floor(gpu_s / not_gpu_s), gpu_s % not_gpu_s
    if rest_s > 0.0:
        iterations += 1
        if rest_s < above.data_s:
            network_s -= min(network_s, not_network_s - rest_s)
    iterations, rest_s = iterations + floor(network_s / not_network_s), network_s % not_network_s
    return iterations + (rest_s > above.data_s)
