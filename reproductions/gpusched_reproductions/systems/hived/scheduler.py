"""HiveD's scheduler in small: packing within virtual clusters, and buddy binding to physical cells.

A model of what the paper and the project's pages describe, for its public cases: gangs, pinned cells, racks, priorities
and lazy preemption. Nodes do not fail in it, and of the nodes that Kubernetes suggests there is a mask.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Any

from gpusched_env.errors import InputError
from gpusched_env.model.tenant import feasible
from gpusched_reproductions.systems.hived.binding import Binding
from gpusched_reproductions.systems.hived.forest import Forest, VirtualCluster
from gpusched_reproductions.systems.hived.packing import HIGHEST, OPPORTUNISTIC, Answer, Gang, Pod, choose_gpus, pack

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpusched_reproductions.systems.hived.forest import Cell


class Scheduler:
    """A cluster with its virtual clusters, and the pods that it runs.

    Args:
        told: The configuration, `physicalCluster` and `virtualClusters`.

    Raises:
        InputError: The virtual clusters do not fit into the cluster.
    """

    def __init__(self, told: Mapping[str, Any]) -> None:
        self.forest = Forest(told["physicalCluster"])
        self.clusters = {name: VirtualCluster.of(vc, self.forest) for name, vc in told["virtualClusters"].items()}
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

    def schedule(self, name: str, told: Mapping[str, Any], sizes: list[list[int]], allowed: set[str] | None) -> Answer:
        """Place a pod, and with the first of a gang all others.

        Args:
            name: Name of the pod.
            told: What it asks for.
            sizes: Pods of its gang and GPUs of each.
            allowed: Names of the nodes that may be used; None for all.

        Raises:
            InputError: It asks for what there cannot be.
        """
        self._check(told, sizes)
        gang = self.gangs.get(told["gang"])
        if gang is None:
            each = sorted(gpus for count, gpus in sizes for _ in range(count))
            gang = Gang(each, told["priority"], bool(told["lazy_preemption"]))
            place = self._lend if gang.priority == OPPORTUNISTIC else self._guarantee
            if not place(gang, told, allowed):
                return Answer()
            self.gangs[told["gang"]] = gang
        index = next(i for i, gpus in enumerate(gang.sizes) if gpus == told["gpus"] and i not in gang.pods)
        gang.pods[index] = name
        if gang.victims:
            return Answer(victims=frozenset(pod for victim in gang.victims for pod in victim.pods.values()))
        cells = gang.placed[index]
        return Answer(cells[0].node.address, tuple(int(cell.address) for cell in cells))

    def remove(self, name: str) -> None:
        """End a gang, by its name: its GPUs and cells are free again."""
        gang = self.gangs.pop(name)
        for gpu in (gpu for gpus in gang.placed for gpu in gpus):
            if gpu.pod is not None and gpu.pod.gang is gang:
                gpu.pod = None
        self._give_back(gang)

    def _check(self, told: Mapping[str, Any], sizes: list[list[int]]) -> None:
        if told["virtual_cluster"] not in self.clusters:
            raise InputError("virtual_cluster", told["virtual_cluster"], f"one of {', '.join(self.clusters)}")
        vc = self.clusters[told["virtual_cluster"]]
        if not OPPORTUNISTIC <= told["priority"] <= HIGHEST:
            raise InputError("priority", told["priority"], f"{OPPORTUNISTIC} to {HIGHEST}")
        if told["pinned_cell"] and told["pinned_cell"] not in vc.pinned:
            raise InputError("pinned_cell", told["pinned_cell"], f"one of {', '.join(vc.pinned)}")
        if told["gpus"] not in [gpus for _, gpus in sizes]:
            raise InputError("gpus", told["gpus"], "GPUs of a pod of the gang")
        guaranteed = told["priority"] > OPPORTUNISTIC and not told["pinned_cell"]
        if guaranteed and not any(chain in vc.promised for chain in self._chains(told["gpu_type"])):
            raise InputError("gpu_type", told["gpu_type"], "a type that the virtual cluster has")

    def _chains(self, gpu_type: str) -> list[str]:
        """List the chains of a GPU type, or all without one, by falling name."""
        of_type = [chain for chain in self.forest.tops if gpu_type in ("", self.forest.levels(chain)[-1])]
        return sorted(of_type, reverse=True)

    def _lend(self, gang: Gang, told: Mapping[str, Any], allowed: set[str] | None) -> bool:
        """Place an opportunistic gang on GPUs that nobody holds, away from guaranteed pods."""
        for chain in self._chains(told["gpu_type"]):
            nodes = [cell for cell in self.physical[chain] if allowed is None or cell.address in allowed]
            chosen = pack(nodes, gang.sizes, OPPORTUNISTIC, across=False)
            if chosen is not None:
                gang.placed = choose_gpus(chosen, gang.sizes, OPPORTUNISTIC)
                _hold(gang, gang.placed)
                return True
        return False

    def _guarantee(self, gang: Gang, told: Mapping[str, Any], allowed: set[str] | None) -> bool:
        """Place a gang in its virtual cluster, without preemption if that is possible, and bind its cells."""
        vc = self.clusters[told["virtual_cluster"]]
        views = [told["pinned_cell"]] if told["pinned_cell"] else self._chains(told["gpu_type"])
        for view in (name for name in views if name in vc.views):
            for threshold in (OPPORTUNISTIC, gang.priority):
                chosen = pack(vc.views[view], gang.sizes, threshold, across=True)
                if chosen is None:
                    continue
                cells = choose_gpus(chosen, gang.sizes, threshold)
                if self._settle(gang, cells, allowed):
                    return True
        return False

    def _settle(self, gang: Gang, cells: list[list[Cell]], allowed: set[str] | None) -> bool:
        """Let a gang hold virtual GPUs, and bind them; False, and nothing is bound, if none of the allowed will do."""
        before = {cell.pod.gang for of_pod in cells for cell in of_pod if cell.pod is not None}
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
        held = [gpu.pod.gang for gpus in gang.placed for gpu in gpus if gpu.pod is not None]
        gang.victims = list(dict.fromkeys(held))
        _hold(gang, gang.cells)
        if not gang.victims:
            _hold(gang, gang.placed)
        return True

    def _give_back(self, gang: Gang) -> None:
        """Let go of a gang's virtual GPUs."""
        for cell in (cell for cells in gang.cells for cell in cells):
            if cell.pod is not None and cell.pod.gang is gang:
                cell.pod = None
                self.binding.unbind(cell)
        gang.cells = []


def _hold(gang: Gang, cells: list[list[Cell]]) -> None:
    for index, of_pod in enumerate(cells):
        for cell in of_pod:
            cell.pod = Pod(gang, index)
