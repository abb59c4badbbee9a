"""HiveD's public cases, and a file as they are told in; skipped where the cases are missing."""

from __future__ import annotations

import pytest
import yaml

from gpusched_reproductions.systems.hived import conformance
from gpusched_reproductions.systems.hived.cells import Answer
from gpusched_reproductions.systems.hived.conformance import Cases, read_cluster
from gpusched_reproductions.systems.hived.scheduler import Scheduler, as_found_healthy
from refusals import refused

needs_cases = pytest.mark.skipif(not conformance.DATA.is_dir(), reason=f"no public cases in {conformance.DATA}")

SMALL = """
physicalCluster:
  cellTypes:  # of one kind
    HALF:
      childCellType: G
      childCellNumber: 2
    NODE:
      childCellType: HALF
      childCellNumber: 2
      isNodeLevel: true
  physicalCells:
  - cellType: NODE
    cellAddress: n0
  - cellType: NODE
    cellAddress: n1
virtualClusters:
  A:
    virtualCells:
    - cellType: NODE
      cellNumber: 1
  B:
    virtualCells:
    - cellType: NODE.HALF
      cellNumber: 2
"""


@pytest.fixture
def small() -> Scheduler:
    """Make a scheduler of two nodes of 4 GPUs: a node for A, two halves for B."""
    return Scheduler(yaml.safe_load(SMALL))


def pod(cluster: str, gpus: int, gang: str, priority: int = 0, *, lazy: bool = False) -> dict[str, object]:
    """Make what a pod asks for."""
    informed = {"virtual_cluster": cluster, "gpus": gpus, "gang": gang, "priority": priority, "lazy_preemption": lazy}
    return informed | {"pinned_cell": "", "gpu_type": "G"}


def ask(scheduler: Scheduler, name: str, informed: dict[str, object]) -> Answer:
    """Schedule a pod that is alone in its gang."""
    return scheduler.schedule(name, informed, [[1, int(str(informed["gpus"]))]], None)


def test_halves_share_a_node_and_a_whole_one_stays_for_who_was_promised_it(small: Scheduler) -> None:
    first = ask(small, "b1", pod("B", 2, "g1"))
    second = ask(small, "b2", pod("B", 2, "g2"))
    assert first.node == second.node
    assert sorted(first.gpus + second.gpus) == [0, 1, 2, 3]
    assert ask(small, "b3", pod("B", 1, "g3")) == Answer()
    whole = ask(small, "a1", pod("A", 4, "g4"))
    assert (whole.gpus, whole.node != first.node) == ((0, 1, 2, 3), True)


def test_a_guaranteed_pod_drives_out_opportunistic_ones_only_where_it_must(small: Scheduler) -> None:
    opportunistic = ask(small, "l", pod("A", 4, "g1", -1))
    half = ask(small, "b", pod("B", 2, "g2"))
    assert half.node != opportunistic.node
    assert ask(small, "a", pod("A", 4, "g3")).victims == {"l"}


def test_what_ends_is_free_again_and_merges(small: Scheduler) -> None:
    ask(small, "b1", pod("B", 1, "g1"))
    ask(small, "b2", pod("B", 2, "g2"))
    small.remove("g1")
    small.remove("g2")
    assert {kind: len(cells) for kind, cells in small.binding.free["NODE"].items()} == {"NODE": 2, "HALF": 0, "G": 0}


@pytest.mark.parametrize(
    "change", [{"virtual_cluster": "C"}, {"priority": 1001}, {"pinned_cell": "p"}, {"gpu_type": "H"}, {"gpus": 3}]
)
def test_what_there_cannot_be_is_refused(small: Scheduler, change: dict[str, object]) -> None:
    with refused(*next(iter(change.items()))):
        small.schedule("x", pod("A", 1, "g") | change, [[1, 1]], None)


def test_nodes_that_were_bound_while_they_were_taken_for_bad_come_last() -> None:
    cells: list[object] = ["n0", "n1"]
    assert as_found_healthy(cells, 1) == ["n1", "n0"]  # type: ignore[arg-type]
    assert as_found_healthy(cells, 2) == ["n0", "n1"]  # type: ignore[arg-type]
    assert as_found_healthy(cells, 0) == ["n0", "n1"]  # type: ignore[arg-type]


@needs_cases
def test_every_pod_goes_where_hived_puts_it() -> None:
    informed, cases = read_cluster(), Cases.read(conformance.DATA / "cases.json")
    placed = conformance.in_order(informed, cases) | conformance.backtracking(informed, cases)
    assert placed == {name: cases.expected(name) for name in placed}
    assert len(placed) == 21


@needs_cases
def test_what_hived_refuses_is_refused() -> None:
    informed, cases = read_cluster(), Cases.read(conformance.DATA / "cases.json")
    assert conformance.refusals(informed, cases) == dict.fromkeys(["pod10", "pod11", "pod13", "pod14", "pod15"], True)
    assert conformance.refuses_too_much(informed)
