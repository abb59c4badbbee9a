"""Which gang holds which GPUs: begin and end, preemption and its end, lazy preemption and its reversal."""

from __future__ import annotations

from dataclasses import dataclass, field

from gpusched_env.cells import tree as at
from gpusched_env.cells.binding import NOBODY, Binding
from gpusched_env.cells.gang import Gang, Placement, Use


@dataclass(eq=False)
class GangTable:
    """The gangs, and the physical GPUs that they use or have reserved.

    Args:
        binding: The cells.

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
        """Return the names of the gangs that run on some GPUs."""
        return frozenset(self.user[gpu].name for of_pod in placed for gpu in of_pod if gpu in self.user)

    def preemptors(self, placed: Placement) -> list[Gang]:
        """Return the gangs that have reserved some of these GPUs."""
        found = (self.claimant.get(gpu) for of_pod in placed for gpu in of_pod)
        return list(dict.fromkeys(gang for gang in found if gang is not None))

    def admit(self, gang: Gang) -> None:
        """Let a gang begin on GPUs that nobody uses.

        Its virtual GPUs are found again, from the physical ones: those to which they are bound, else of the cells that
        the tenant was promised the first free ones. (HiveD recovers a gang like this after a restart, and does so
        always.)
        """
        planned, own = gang.cells, list[list[int]]()
        is_lazy = False
        for p, of_pod in enumerate(gang.placed):
            own.append([])
            for g, gpu in enumerate(of_pod):
                cell = -1
                if planned and not is_lazy:
                    cell = self._virtual_for(gpu, planned[p][g], gang)
                    is_lazy = cell < 0
                if cell >= 0:
                    own[-1].append(cell)
                    top = self.binding.virtual.top(cell)
                    if at.free_around(self.binding.physical.tree, gpu) >= 0 and self.binding.virtual.highest(top) >= 0:
                        self._preempt_inside(top)
                self.binding.allocate(gpu, cell, gang.request.priority)
                self.user[gpu], self.use[gpu] = gang, Use.USED
        gang.cells = own if planned else []
        if is_lazy:
            self._lazily(gang)
        self.gangs[gang.name] = gang

    def _virtual_for(self, gpu: int, planned: int, gang: Gang) -> int:
        """Return the virtual GPU to which a physical one is bound, or is to be; -1 if there is none."""
        physical, virtual = self.binding.physical, self.binding.virtual
        top = virtual.top(planned)
        size = virtual.size(top)
        below: list[int] = []
        cell = gpu
        while physical.bound[cell] < 0 and physical.size(cell) < size:
            below.append(cell)
            cell = physical.parent(cell)
        found = int(physical.bound[cell])
        if found < 0:
            found = self._lowest(self.binding.equals_of(top), gang.request.priority)
        for _ in below:
            if found < 0:
                return -1
            found = self._lowest(list(virtual.children(found)), gang.request.priority)
        return found

    def _lowest(self, cells: list[int], priority: int) -> int:
        """Return the first virtual cell that is free and not bound, else the one held at the lowest priority; or -1."""
        virtual = self.binding.virtual
        best = -1
        for cell in cells:
            highest = virtual.highest(cell)
            if highest == NOBODY:
                if virtual.bound[cell] < 0:
                    return cell
            elif highest < priority and (best < 0 or highest < virtual.highest(best)):
                best = cell
        return best

    def end(self, gang: Gang) -> None:
        """End a gang that is placed."""
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
        """Let the gangs on some virtual GPUs, if they are lazy, run on as opportunistic ones; return them, with theirs.

        Args:
            cells: The virtual GPUs that another gang is to have.
        """
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

    def _preempt_inside(self, cell: int) -> None:
        """Let all gangs in a virtual cell run on as opportunistic ones."""
        for inside in self.binding.virtual.gpus_of(cell):
            gpu = int(self.binding.virtual.bound[inside])
            if gpu >= 0 and self.use.get(gpu) is Use.USED:
                self._lazily(self.user[gpu])

    def revert(self, gang: Gang, cells: Placement) -> None:
        """Give a gang that was preempted lazily its cells back."""
        for of_pod, own in zip(gang.placed, cells, strict=True):
            for gpu, cell in zip(of_pod, own, strict=True):
                self.binding.release(gpu)
                self.binding.allocate(gpu, cell, gang.request.priority)
        gang.cells = cells
