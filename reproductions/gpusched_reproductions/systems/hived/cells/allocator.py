"""The allocator of HiveD (Zhao et al., OSDI 2020) for requests of gangs.

A guaranteed gang is packed into its tenant's virtual cluster, and the cells that it needs are bound to physical ones.
It may take GPUs from gangs of lower priority of its tenant, and from opportunistic ones, which run where nobody else
does. Nodes do not fail, and the configuration does not change.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from gpusched_env.cells import tree as at
from gpusched_env.errors import InputError
from gpusched_reproductions.systems.hived.cells.binding import HIGHEST, OPPORTUNISTIC, Binding
from gpusched_reproductions.systems.hived.cells.cluster import CellCluster
from gpusched_reproductions.systems.hived.cells.gang import Allocation, Gang, Placement, Request
from gpusched_reproductions.systems.hived.cells.holding import GangTable
from gpusched_reproductions.systems.hived.cells.packing import pack
from gpusched_reproductions.systems.hived.cells.search import CellSearch


class Allocator:
    """A cluster of cells, and the gangs that it runs.

    Args:
        cluster: The cluster and what its tenants were promised.
    """

    def __init__(self, cluster: CellCluster) -> None:
        self.cluster = cluster
        self.holding = GangTable(Binding(cluster))
        self.binding = self.holding.binding
        virtual, physical = self.binding.virtual, self.binding.physical
        self._nodes_of_tenant = {
            (tenant, name): virtual.nodes(cells, cluster.chain(name).node)
            for tenant, promised in self.binding.promised.items()
            for name, cells in promised.items()
        }
        self._nodes_of_pinned = {
            (tenant, name): virtual.nodes([cell], self.binding.chain_of(cell).node)
            for tenant, pinned in self.binding.pinned.items()
            for name, cell in pinned.items()
        }
        self._nodes = {
            chain.name: physical.nodes(
                [top for top in physical.tops if self.binding.chain_of_piece(top) is chain], chain.node
            )
            for chain in cluster.chains
        }

    @property
    def gangs(self) -> dict[str, Gang]:
        """The gangs that are placed or preempt others, by name."""
        return self.holding.gangs

    def schedule(self, name: str, request: Request, *, preempt: bool = True) -> Allocation:
        """Place a gang, let it preempt others, or let it wait.

        A gang that is placed stays where it is. One that preempts others is asked again: it is placed when they have
        ended; when its nodes are no longer suggested, it lets go of them and is scheduled again.

        Args:
            name: Name of the gang.
            request: What it asks for.
            preempt: Whether it may begin to preempt; else the answer only names the gangs that it would preempt.

        Raises:
            InputError: It asks for what there cannot be.
        """
        request = replace(request, sizes=tuple(sorted(request.sizes)))
        self._check(request)
        gang = self.gangs.get(name)
        if gang is not None and gang.preempts:
            if preempt and not all(self._suggests(request, gpu) for of_pod in gang.placed for gpu in of_pod):
                self.holding.cancel(gang)
                gang = None
            elif not (victims := self.holding.victims(gang.placed)):
                self.holding.begin(gang)
            else:
                return Allocation(victims=victims)
        if gang is not None:
            return self._placed(gang.placed)
        found = self._find(request)
        if found is None:
            return Allocation()
        placed, cells = found
        victims = self.holding.victims(placed)
        if victims and not preempt:
            return Allocation(victims=victims)
        for other in self.holding.preemptors(placed):
            self.holding.cancel(other)
        if victims:
            self.holding.preempt(Gang(name, request, placed, cells, preempts=True))
            return Allocation(victims=victims)
        self.holding.admit(Gang(name, request, placed, cells))
        return self._placed(placed)

    def remove(self, name: str) -> None:
        """End a gang: its GPUs and cells are free again, or those of a gang that preempts go back to their holders.

        Raises:
            InputError: There is no such gang.
        """
        if name not in self.gangs:
            raise InputError("gang", name, "one that is placed or preempts others")
        gang = self.gangs[name]
        if gang.preempts:
            self.holding.cancel(gang)
        else:
            self.holding.end(gang)

    def _check(self, request: Request) -> None:
        if request.tenant not in self.cluster.tenants:
            raise InputError("tenant", request.tenant, f"one of {', '.join(self.cluster.tenants)}")
        if not OPPORTUNISTIC <= request.priority <= HIGHEST:
            raise InputError("priority", request.priority, f"{OPPORTUNISTIC} to {HIGHEST}")
        if not request.sizes or request.sizes[0] < 1:
            raise InputError("sizes", list(request.sizes), "at least one pod, each with at least one GPU")
        own = self.cluster.tenants[request.tenant].pinned
        if request.pinned and (request.pinned not in own or request.priority == OPPORTUNISTIC):
            raise InputError("pinned", request.pinned, f"for guaranteed gangs, one of {', '.join(own)}")
        types = {chain.gpu_type for chain in self.cluster.chains}
        if not request.pinned and request.gpu_type and request.gpu_type not in types:
            raise InputError("gpu_type", request.gpu_type, f"one of {', '.join(sorted(types))}")
        if not request.pinned and request.gpu_type and not list(self._views(request)):
            raise InputError("gpu_type", request.gpu_type, "a type that the tenant was promised")

    def _views(self, request: Request) -> Iterator[list[int]]:
        """Yield the lists of nodes among which a gang is packed, one after the other."""
        if request.pinned:
            yield self._nodes_of_pinned[request.tenant, request.pinned]
            return
        for chain in self.cluster.chains:
            if request.gpu_type in ("", chain.gpu_type):
                if request.priority == OPPORTUNISTIC:
                    yield self._nodes[chain.name]
                elif (request.tenant, chain.name) in self._nodes_of_tenant:
                    yield self._nodes_of_tenant[request.tenant, chain.name]

    def _find(self, request: Request) -> tuple[Placement, Placement] | None:
        """Return physical and virtual GPUs for a gang; None if there are none now."""
        for nodes in self._views(request):
            if request.priority == OPPORTUNISTIC:
                placed = pack(self.binding.physical, nodes, request.sizes, OPPORTUNISTIC, self._usable(request))
                if placed is not None:
                    return placed, []
            else:
                found = self._in_cells(request, nodes)
                if found is not None:
                    return found
        return None

    def _in_cells(self, request: Request, nodes: list[int]) -> tuple[Placement, Placement] | None:
        """Return GPUs for a guaranteed gang on some virtual nodes; gangs that it preempts lazily lose their cells."""
        bound, usable = self.binding.virtual.bound, self._usable(request)
        cells = pack(
            self.binding.virtual,
            nodes,
            request.sizes,
            request.priority,
            lambda node: bound[node] < 0 or usable(int(bound[node])),
        )
        if cells is None:
            return None
        before = self.holding.preempt_lazily(cells)
        placed = CellSearch(self.binding, usable).run(cells)
        if placed is None:
            for gang, own in before:
                self.holding.revert(gang, own)
            return None
        return placed, cells

    def _usable(self, request: Request) -> Callable[[int], bool]:
        if request.suggested is None:
            return lambda _: True
        allowed, side = request.suggested, self.binding.physical
        return lambda cell: any(self._node(int(gpu)) in allowed for gpu in side.gpus_of(cell))

    def _suggests(self, request: Request, gpu: int) -> bool:
        return request.suggested is None or self._node(gpu) in request.suggested

    def _node(self, gpu: int) -> str:
        return self.binding.names[int(self.binding.physical.tree[gpu, at.FIRST])][0]

    def _placed(self, placed: Placement) -> Allocation:
        names, tree = self.binding.names, self.binding.physical.tree
        places = []
        for of_pod in placed:
            gpus = [names[int(tree[gpu, at.FIRST])] for gpu in of_pod]
            places.append((gpus[0][0], tuple(number for _, number in gpus)))
        return Allocation(tuple(places))
