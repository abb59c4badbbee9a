"""HiveD's scheduler in small: packing within virtual clusters, and buddy binding to physical cells.

A model of what the paper and the project's pages describe, for its public cases: gangs, pinned cells, racks, priorities
and lazy preemption. Nodes do not fail in it, and of the nodes that Kubernetes suggests there is a mask.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from typing import Any

from gpusched_env.errors import InputError
from gpusched_env.model.tenant import feasible
from gpusched_reproductions.systems.hived.cells import (
    HIGHEST,
    OPPORTUNISTIC,
    Answer,
    Forest,
    Gang,
    HivedCell,
    VirtualCluster,
    choose_gpus,
    pack,
)


class Binding:
    """The free physical cells of every chain and kind.

    Args:
        forest: The physical cells; those that are pinned are bound already, and not free.
        promised: By chain, how many of its largest cells virtual clusters were promised.
    """

    def __init__(self, forest: Forest, promised: Counter[str]) -> None:
        self.levels = {chain: forest.levels(chain) for chain in forest.tops}
        self.free: dict[str, dict[str, list[HivedCell]]] = {
            chain: {kind: [] for kind in kinds} for chain, kinds in self.levels.items()
        }
        for chain, tops in forest.tops.items():
            self.free[chain][chain] = list(tops)
        for cell in forest.pinned.values():
            self._take_out(cell)
        for chain, tops in forest.tops.items():
            if tops[0].is_node:
                self.free[chain][chain] = as_found_healthy(self.free[chain][chain], promised[chain])

    def bind(self, wanted: list[HivedCell], allowed: set[str] | None) -> bool:
        """Bind virtual GPUs and the cells above them; False, and nothing is bound, if none of the allowed will do."""
        new: list[HivedCell] = []
        for gpu in wanted:
            if gpu.bound is not None:
                continue
            lowest = gpu
            while lowest.parent is not None and lowest.parent.bound is None:
                lowest = lowest.parent
            need = {id(cell) for leaf in wanted if leaf.bound is None for cell in _up_to(leaf, lowest)}
            above = lowest.parent.bound if lowest.parent is not None else None
            done = self._lay([lowest], above.children, need, allowed) if above else self._split(lowest, need, allowed)
            if not done:
                for cell in new:
                    self.unbind(cell)
                return False
            new += [leaf for leaf in lowest.gpus if leaf.bound is not None and leaf in wanted]
        return True

    def unbind(self, gpu: HivedCell) -> None:
        """Unbind a virtual GPU, and the cells above it that nothing else binds; pinned cells stay."""
        cell: HivedCell | None = gpu
        while cell is not None and cell.bound is not None and not any(child.bound for child in cell.children):
            physical = cell.bound
            if self._is_pinned(physical):
                return
            cell.bound = physical.bound = None
            if cell.parent is None:
                self._give_back(physical)
            cell = cell.parent

    def _is_pinned(self, physical: HivedCell) -> bool:
        virtual = physical.bound
        return virtual is not None and virtual.top.bound is not None and id(virtual.top.bound) in self._pinned

    _pinned: frozenset[int] = frozenset()

    def _split(self, virtual: HivedCell, need: set[int], allowed: set[str] | None) -> bool:
        """Bind a promised cell to a free one, splitting the lowest that there is."""
        kinds, free = self.levels[virtual.chain], self.free[virtual.chain]
        lowest = kinds.index(virtual.kind)
        while lowest >= 0 and not free[kinds[lowest]]:
            lowest -= 1
        return lowest >= 0 and self._descend(virtual, lowest, need, allowed)

    def _descend(self, virtual: HivedCell, level: int, need: set[int], allowed: set[str] | None) -> bool:
        kinds, free = self.levels[virtual.chain], self.free[virtual.chain]
        if kinds[level] == virtual.kind:
            if not self._lay([virtual], free[virtual.kind], need, allowed):
                return False
            if virtual.bound is not None:
                _remove(free[virtual.kind], virtual.bound)
            return True
        for cell in _usable(free[kinds[level]], allowed):
            below = free[kinds[level + 1]]
            kept = list(below)
            below += cell.children
            if self._descend(virtual, level + 1, need, allowed):
                _remove(free[kinds[level]], cell)
                return True
            below[:] = kept
        return False

    def _lay(
        self, cells: list[HivedCell], candidates: list[HivedCell], need: set[int], allowed: set[str] | None
    ) -> bool:
        """Lay virtual cells, of which `need` are wanted, on different candidates, and the cells below them likewise."""
        if not cells:
            return True
        first, *rest = cells
        for physical in _usable(candidates, allowed):
            below = [child for child in first.children if id(child) in need]
            first.bound, physical.bound = physical, first
            if self._lay(below, physical.children, need, allowed) and self._lay(rest, candidates, need, allowed):
                return True
            for cell in first.walk():
                other, cell.bound = cell.bound, None
                if other is not None:
                    other.bound = None
        return False

    def _take_out(self, cell: HivedCell) -> None:
        """Take a cell out of what is free, splitting what it lies in; it is pinned."""
        self._pinned |= {id(cell)}
        path = [cell]
        while path[-1].parent is not None:
            path.append(path[-1].parent)
        free = self.free[cell.chain]
        _remove(free[path[-1].kind], path[-1])
        for above, below in zip(reversed(path), reversed(path[:-1]), strict=False):
            free[below.kind] += [child for child in above.children if child is not below]

    def _give_back(self, cell: HivedCell) -> None:
        """Make a cell free; buddies that are all free become one cell."""
        free = self.free[cell.chain]
        while cell.parent is not None:
            buddies = [child for child in cell.parent.children if child is not cell]
            if not all(buddy in free[cell.kind] for buddy in buddies):
                break
            for buddy in buddies:
                _remove(free[cell.kind], buddy)
            cell = cell.parent
        free[cell.kind].append(cell)


def as_found_healthy(cells: list[HivedCell], promised: int) -> list[HivedCell]:
    """Return the order in which nodes are free once HiveD has found all of them healthy.

    When it starts it takes every node for bad, one after the other. Whenever fewer good ones are left than virtual
    clusters were promised, the first of the bad ones is bound, so that the tenant sees it; as it is found healthy it is
    free again, behind the others.
    """
    free, bad, doomed = list(cells), list[object](), list[object]()
    for cell in cells:
        bad.append(cell)
        if promised - len(doomed) > len(free) - len(bad):
            first = bad.pop(0)
            doomed.append(first)
            _remove(free, first)  # type: ignore[arg-type]
    return free + [cell for cell in cells if cell in doomed]


def _remove(cells: list[HivedCell], cell: HivedCell) -> None:
    """Take a cell out of a list; the last takes its place."""
    place = cells.index(cell)
    cells[place] = cells[-1]
    cells.pop()


def _up_to(cell: HivedCell, top: HivedCell) -> list[HivedCell]:
    path = [cell]
    while path[-1] is not top and path[-1].parent is not None:
        path.append(path[-1].parent)
    return path


def _usable(cells: list[HivedCell], allowed: set[str] | None) -> list[HivedCell]:
    """List the cells that nothing is bound to, those with fewest opportunistic GPUs first."""
    usable = [cell for cell in cells if cell.bound is None and _may_use(cell, allowed)]
    return sorted(usable, key=_lent)


def _lent(cell: HivedCell) -> int:
    return sum(gpu.gang is not None and gpu.gang.priority == OPPORTUNISTIC for gpu in cell.gpus)


def _may_use(cell: HivedCell, allowed: set[str] | None) -> bool:
    if allowed is None or not (cell.is_node or cell.children):
        return True
    nodes = [below.address for below in cell.walk() if below.is_node]
    return not nodes or any(node in allowed for node in nodes)


class Scheduler:
    """A cluster with its virtual clusters, and the pods that it runs.

    Args:
        config: The configuration, `physicalCluster` and `virtualClusters`.

    Raises:
        InputError: The virtual clusters do not fit into the cluster.
    """

    def __init__(self, config: Mapping[str, Any]) -> None:
        self.forest = Forest(config["physicalCluster"])
        self.clusters = {name: VirtualCluster.of(vc, self.forest) for name, vc in config["virtualClusters"].items()}
        self._check_feasible()
        promised: Counter[str] = Counter()
        for vc in self.clusters.values():
            for chain, cells in vc.promised.items():
                promised[chain] += sum(cell.kind == chain for cell in cells)
        self.binding = Binding(self.forest, promised)
        self.physical = {
            chain: [cell for top in tops for cell in top.walk() if cell.is_node]
            for chain, tops in self.forest.tops.items()
        }
        self.gangs: dict[str, Gang] = {}

    def _check_feasible(self) -> None:
        wanted: dict[str, Counter[int]] = defaultdict(Counter)
        for vc in self.clusters.values():
            for cell in (cell for cells in [*vc.promised.values(), vc.pinned.values()] for cell in cells):
                wanted[cell.chain][len(cell.gpus)] += 1
        for chain, counts in wanted.items():
            tops = self.forest.tops[chain]
            levels = [len(tops[0].level(kind)[0].gpus) for kind in reversed(self.forest.levels(chain))]
            if not feasible(counts, {levels[-1]: len(tops)}, levels):
                raise InputError("virtualClusters", dict(counts), f"cells that fit into {len(tops)} of {chain}")

    def schedule(
        self, name: str, config: Mapping[str, Any], sizes: list[list[int]], allowed: set[str] | None
    ) -> Answer:
        """Place a pod, and with the first of a gang all others.

        Args:
            name: Name of the pod.
            config: What it asks for.
            sizes: Pods of its gang and GPUs of each.
            allowed: Names of the nodes that may be used; None for all.

        Raises:
            InputError: It asks for what there cannot be.
        """
        self._check(config, sizes)
        gang = self.gangs.get(config["gang"])
        if gang is None:
            each = sorted(gpus for count, gpus in sizes for _ in range(count))
            gang = Gang(each, config["priority"], bool(config["lazy_preemption"]))
            place = self._lend if gang.priority == OPPORTUNISTIC else self._guarantee
            if not place(gang, config, allowed):
                return Answer()
            self.gangs[config["gang"]] = gang
        index = next(i for i, gpus in enumerate(gang.sizes) if gpus == config["gpus"] and i not in gang.pods)
        gang.pods[index] = name
        if gang.victims:
            return Answer(victims=frozenset(pod for victim in gang.victims for pod in victim.pods.values()))
        cells = gang.placed[index]
        return Answer(cells[0].node.address, tuple(int(cell.address) for cell in cells))

    def remove(self, name: str) -> None:
        """End a gang, by its name: its GPUs and cells are free again."""
        gang = self.gangs.pop(name)
        for gpu in (gpu for gpus in gang.placed for gpu in gpus):
            if gpu.gang is gang:
                gpu.gang = None
        self._give_back(gang)

    def _check(self, config: Mapping[str, Any], sizes: list[list[int]]) -> None:
        if config["virtual_cluster"] not in self.clusters:
            raise InputError("virtual_cluster", config["virtual_cluster"], f"one of {', '.join(self.clusters)}")
        vc = self.clusters[config["virtual_cluster"]]
        if not OPPORTUNISTIC <= config["priority"] <= HIGHEST:
            raise InputError("priority", config["priority"], f"{OPPORTUNISTIC} to {HIGHEST}")
        if config["pinned_cell"] and config["pinned_cell"] not in vc.pinned:
            raise InputError("pinned_cell", config["pinned_cell"], f"one of {', '.join(vc.pinned)}")
        if config["gpus"] not in [gpus for _, gpus in sizes]:
            raise InputError("gpus", config["gpus"], "GPUs of a pod of the gang")
        guaranteed = config["priority"] > OPPORTUNISTIC and not config["pinned_cell"]
        if guaranteed and not any(chain in vc.promised for chain in self._chains(config["gpu_type"])):
            raise InputError("gpu_type", config["gpu_type"], "a type that the virtual cluster has")

    def _chains(self, gpu_type: str) -> list[str]:
        """List the chains of a GPU type, or all without one, by falling name."""
        of_type = [chain for chain in self.forest.tops if gpu_type in ("", self.forest.levels(chain)[-1])]
        return sorted(of_type, reverse=True)

    def _lend(self, gang: Gang, config: Mapping[str, Any], allowed: set[str] | None) -> bool:
        """Place an opportunistic gang on GPUs that nobody holds, away from guaranteed pods."""
        for chain in self._chains(config["gpu_type"]):
            nodes = [cell for cell in self.physical[chain] if allowed is None or cell.address in allowed]
            chosen = pack(nodes, gang.sizes, OPPORTUNISTIC, across=False)
            if chosen is not None:
                gang.placed = choose_gpus(chosen, gang.sizes, OPPORTUNISTIC)
                _hold(gang, gang.placed)
                return True
        return False

    def _guarantee(self, gang: Gang, config: Mapping[str, Any], allowed: set[str] | None) -> bool:
        """Place a gang in its virtual cluster, without preemption if that is possible, and bind its cells."""
        vc = self.clusters[config["virtual_cluster"]]
        views = [config["pinned_cell"]] if config["pinned_cell"] else self._chains(config["gpu_type"])
        for view in (name for name in views if name in vc.views):
            for threshold in (OPPORTUNISTIC, gang.priority):
                chosen = pack(vc.views[view], gang.sizes, threshold, across=True)
                if chosen is None:
                    continue
                cells = choose_gpus(chosen, gang.sizes, threshold)
                if self._settle(gang, cells, allowed):
                    return True
        return False

    def _settle(self, gang: Gang, cells: list[list[HivedCell]], allowed: set[str] | None) -> bool:
        """Let a gang hold virtual GPUs, and bind them; False, and nothing is bound, if none of the allowed will do."""
        before = {cell.gang for of_pod in cells for cell in of_pod if cell.gang is not None}
        for other in before:
            if other.lazy:
                other.priority = OPPORTUNISTIC
                self._give_back(other)
        gang.cells = cells
        wanted = [cell for of_pod in cells for cell in of_pod]
        if not self.binding.bind(wanted, allowed):
            gang.cells = []
            return False
        gang.placed = [[cell.bound for cell in of_pod if cell.bound is not None] for of_pod in cells]
        held = [gpu.gang for gpus in gang.placed for gpu in gpus if gpu.gang is not None]
        gang.victims = list(dict.fromkeys(held))
        _hold(gang, gang.cells)
        if not gang.victims:
            _hold(gang, gang.placed)
        return True

    def _give_back(self, gang: Gang) -> None:
        """Let go of a gang's virtual GPUs."""
        for cell in (cell for cells in gang.cells for cell in cells):
            if cell.gang is gang:
                cell.gang = None
                self.binding.unbind(cell)
        gang.cells = []


def _hold(gang: Gang, cells: list[list[HivedCell]]) -> None:
    for cell in (cell for of_pod in cells for cell in of_pod):
        cell.gang = gang
