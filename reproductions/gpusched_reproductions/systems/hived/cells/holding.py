"""Which gang holds which GPUs: begin and end, preemption and its end, lazy preemption and its reversal."""

from __future__ import annotations

from dataclasses import dataclass, field

from gpusched_reproductions.systems.hived.cells.binding import Binding
from gpusched_reproductions.systems.hived.cells.gang import Gang, Placement, Use


@dataclass(eq=False)
class GangTable:
    """The gangs, and the physical GPUs that they use or have reserved.

    Attributes:
        gangs: The gangs that are placed or preempt others, by name.
        use: What each GPU does, by its row; free where there is none.
        user: The gang that runs on a GPU.
        claimant: The gang that has reserved a GPU.
    """

    binding: Binding
    gangs: dict[str, Gang] = field(default_factory=dict)
    use: dict[int, Use] = field(default_factory=dict)
    user: dict[int, Gang] = field(default_factory=dict)
    claimant: dict[int, Gang] = field(default_factory=dict)

    def victims(self, placed: Placement) -> frozenset[str]:
        return frozenset(self.user[gpu].name for of_pod in placed for gpu in of_pod if gpu in self.user)

    def preemptors(self, placed: Placement) -> list[Gang]:
        found = (self.claimant.get(gpu) for of_pod in placed for gpu in of_pod)
        return list(dict.fromkeys(gang for gang in found if gang is not None))

    def admit(self, gang: Gang) -> None:
        for of_pod in gang.placed:
            for gpu in of_pod:
                self.binding.allocate(gpu, gang.cell_of(gpu), gang.request.priority)
                self.user[gpu], self.use[gpu] = gang, Use.USED
        self.gangs[gang.name] = gang

    def end(self, gang: Gang) -> None:
        for gpu in (gpu for of_pod in gang.placed for gpu in of_pod):
            del self.user[gpu]
            if self.use[gpu] is Use.USED:
                self.binding.release(gpu)
                del self.use[gpu]
            else:
                self.use[gpu] = Use.RESERVED
        del self.gangs[gang.name]

    def preempt(self, gang: Gang) -> None:
        """Let a gang reserve its GPUs, before those who use them have ended."""
        for of_pod, own in zip(gang.placed, gang.cells, strict=True):
            for gpu, cell in zip(of_pod, own, strict=True):
                if gpu in self.user:
                    self.binding.release(gpu)
                self.binding.allocate(gpu, cell, gang.request.priority)
                self.claimant[gpu] = gang
                self.use[gpu] = Use.RESERVING if gpu in self.user else Use.RESERVED
        self.gangs[gang.name] = gang

    def cancel(self, gang: Gang) -> None:
        """Let a gang that preempts others give up what it has reserved; its GPUs go back to those who use them."""
        for gpu in (gpu for of_pod in gang.placed for gpu in of_pod):
            self.binding.release(gpu)
            del self.claimant[gpu]
            if self.use[gpu] is Use.RESERVING:
                user = self.user[gpu]
                self.binding.allocate(gpu, user.cell_of(gpu), user.request.priority)
                self.use[gpu] = Use.USED
            else:
                del self.use[gpu]
        del self.gangs[gang.name]

    def begin(self, gang: Gang) -> None:
        """Let a gang that preempted others begin: they have ended."""
        for gpu in (gpu for of_pod in gang.placed for gpu in of_pod):
            del self.claimant[gpu]
            self.user[gpu], self.use[gpu] = gang, Use.USED
        gang.preempts = False

    def preempt_lazily(self, cells: Placement) -> list[tuple[Gang, Placement]]:
        """Let the lazy gangs on some virtual GPUs run on as opportunistic ones; return them and their virtual GPUs."""
        before = []
        for cell in (cell for of_pod in cells for cell in of_pod):
            gpu = int(self.binding.virtual.bound[cell])
            if gpu >= 0 and self.use.get(gpu) is Use.USED and self.user[gpu].request.lazy:
                gang = self.user[gpu]
                before.append((gang, gang.cells))
                self._lazily(gang)
        return before

    def _lazily(self, gang: Gang) -> None:
        for cell in (cell for of_pod in gang.cells for cell in of_pod):
            gpu = int(self.binding.virtual.bound[cell])
            self.binding.release(gpu)
            self.binding.allocate(gpu, -1, gang.request.priority)
        gang.cells = []

    def revert(self, gang: Gang, cells: Placement) -> None:
        for of_pod, own in zip(gang.placed, cells, strict=True):
            for gpu, cell in zip(of_pod, own, strict=True):
                self.binding.release(gpu)
                self.binding.allocate(gpu, cell, gang.request.priority)
        gang.cells = cells
