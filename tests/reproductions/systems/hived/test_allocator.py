"""HiveD's allocator on two racks of two nodes of 4 GPUs, small enough to check by hand."""

from dataclasses import replace

import numpy as np
import pytest

from gpusched_env.cells import tree as at
from gpusched_reproductions.systems.hived.cells import (
    Allocation,
    Allocator,
    CellCluster,
    Chain,
    Piece,
    Request,
    VirtualCluster,
)
from gpusched_reproductions.systems.hived.cells.binding import NOBODY
from refusals import refused

WHOLE = (0, 1, 2, 3)


def cluster(pinned: str = "", **promised: tuple[int, ...]) -> CellCluster:
    """Make racks r0 and r1 of nodes named after them; cells by tenant; the first half of node r1a may be pinned."""
    chain = Chain("rack", "G", (1, 2, 4, 8), 4)
    pieces = [
        Piece("rack", tuple((f"r{r}{node}", gpu) for node in "ab" for gpu in range(4)), {"own": (0, 2)} if r else {})
        for r in range(2)
    ]
    tenants = {
        name: VirtualCluster(tuple(("rack", size) for size in sizes), ("own",) if name == pinned else ())
        for name, sizes in promised.items()
    }
    return CellCluster((chain,), tuple(pieces), tenants)


def nodes(answer: Allocation) -> list[str]:
    return [node for node, _ in answer.places]


def test_the_pods_of_a_gang_lie_in_one_rack_if_the_tenant_has_a_cell_of_a_rack():
    allocator = Allocator(cluster(a=(8,), b=(4, 4)))
    assert allocator.schedule("b", Request("b", (4,))).places == (("r0a", WHOLE),)
    assert nodes(allocator.schedule("a", Request("a", (4, 4)))) == ["r1a", "r1b"]
    assert nodes(allocator.schedule("c", Request("b", (2, 2)))) == ["r0b", "r0b"]


def test_a_gang_is_placed_whole_or_not_at_all():
    allocator = Allocator(cluster(a=(4, 4), b=(8,)))
    allocator.schedule("one", Request("a", (4,)))
    assert allocator.schedule("two", Request("a", (4, 4))) == Allocation()
    assert list(allocator.gangs) == ["one"]
    allocator.remove("one")
    assert len(nodes(allocator.schedule("two", Request("a", (4, 4))))) == 2


def test_what_ends_is_free_again_and_racks_merge():
    allocator = Allocator(cluster(a=(4, 2, 2), b=(8,)))
    tree = allocator.binding.physical.tree
    for name, size in (("x", 4), ("y", 2), ("z", 1)):
        allocator.schedule(name, Request("a", (size,)))
    assert int((tree[:, at.PLACE] >= 0).sum()) == 1  # the other rack
    for name in ("y", "x", "z"):
        allocator.remove(name)
    assert tree[tree[:, at.PLACE] >= 0, at.SIZE].tolist() == [8, 8]
    assert set(allocator.binding.physical.priority.tolist()) == {NOBODY}
    assert allocator.binding.virtual.bound.max() == -1


def test_opportunistic_gangs_run_where_nobody_does_and_make_room():
    allocator = Allocator(cluster(a=(8,), b=(8,)))
    assert nodes(allocator.schedule("o", Request("a", (4,), -1))) == ["r0a"]
    assert nodes(allocator.schedule("b", Request("b", (4,)))) == ["r1a"]
    assert nodes(allocator.schedule("p", Request("b", (3,), -1))) == ["r0b"]
    assert allocator.schedule("q", Request("b", (4, 4), -1)) == Allocation()
    wait = allocator.schedule("a", Request("a", (4, 4)))
    assert (wait.places, wait.victims) == ((), {"o", "p"})
    for name in ("o", "p"):
        allocator.remove(name)
    assert nodes(allocator.schedule("a", Request("a", (4, 4)))) == ["r0b", "r0a"]  # first where it preempts fewer


def test_a_lazy_gang_runs_on_as_an_opportunistic_one_where_there_is_room_for_both():
    allocator = Allocator(cluster(a=(4,), b=(4, 8)))
    allocator.schedule("low", Request("a", (4,), 1, lazy=True))
    assert nodes(allocator.schedule("high", Request("a", (4,), 2))) == ["r1a"]  # away from opportunistic gangs
    assert (allocator.gangs["low"].cells, nodes(allocator.schedule("low", Request("a", (4,), 1)))) == ([], ["r0a"])
    assert allocator.schedule("more", Request("a", (1,), 2)) == Allocation()


def test_lazy_preemption_is_reverted_if_it_leads_to_nothing():
    allocator = Allocator(cluster(a=(4, 4), b=(8,)))
    allocator.schedule("low", Request("a", (4,), 1, lazy=True))
    cells = allocator.gangs["low"].cells
    before = allocator.binding.physical.priority.tolist()
    assert allocator.schedule("high", Request("a", (4, 4), 2, suggested=frozenset({"r0a"}))) == Allocation()
    assert allocator.gangs["low"].cells == cells
    assert allocator.binding.physical.priority.tolist() == before


def test_without_lazy_preemption_the_gang_of_lower_priority_ends():
    allocator = Allocator(cluster(a=(4,), b=(4, 8)))
    allocator.schedule("low", Request("a", (2,), 1))
    assert allocator.schedule("high", Request("a", (4,), 2)).victims == {"low"}
    assert allocator.schedule("higher", Request("a", (4,), 3), preempt=False).victims == {"low"}
    assert set(allocator.gangs) == {"low", "high"}
    allocator.remove("high")
    assert set(allocator.gangs) == {"low"}
    allocator.remove("low")
    assert allocator.schedule("next", Request("a", (4,), 0)).places == (
        ("r1a", WHOLE),
    )  # the rack that is free longest


def test_a_pinned_cell_is_nobody_elses_and_its_nodes_can_be_left_out():
    allocator = Allocator(cluster("a", a=(4,), b=(8,), c=(2,)))
    assert nodes(allocator.schedule("b", Request("b", (4, 4)))) == ["r0a", "r0b"]
    assert allocator.schedule("c", Request("c", (2,))).places == (("r1a", (2, 3)),)
    elsewhere = Request("a", (1,), pinned="own", suggested=frozenset({"r1b"}))
    assert allocator.schedule("a", elsewhere) == Allocation()
    assert allocator.schedule("a", replace(elsewhere, suggested=None)).places == (("r1a", (0,)),)
    assert allocator.schedule("d", replace(elsewhere, sizes=(2,), suggested=None)) == Allocation()


def test_a_larger_cell_is_split_for_a_suggested_node_only_if_what_is_promised_still_fits():
    """Of rack r0 a node is free, but r1b is suggested: r1 may be split unless it is all that is left for b's rack."""
    for others, places in (((4,), (("r1b", WHOLE),)), ((8,), ())):
        allocator = Allocator(cluster(a=(4, 4), b=others))
        allocator.schedule("one", Request("a", (4,)))
        second = Request("a", (4,), suggested=frozenset({"r1b"}))
        assert allocator.schedule("two", second).places == places


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"tenant": "c"}, "tenant"),
        ({"priority": 1001}, "priority"),
        ({"priority": -2}, "priority"),
        ({"pinned": "own"}, "pinned"),
        ({"gpu_type": "H"}, "gpu_type"),
        ({"gpu_type": "H", "priority": -1}, "gpu_type"),
        ({"sizes": ()}, "sizes"),
        ({"sizes": (0, 1)}, "sizes"),
    ],
)
def test_what_there_cannot_be_is_refused(change, field):
    request = replace(Request("b", (1,), gpu_type="G"), **change)  # type: ignore[arg-type]
    with refused(field, change[field]) if field != "sizes" else refused(field):
        Allocator(cluster("a", a=(4,), b=(8,))).schedule("x", request)


def test_clusters_that_cannot_be_are_refused():
    with refused("promised", allowed="cells that fit into"):
        cluster(a=(8, 4), b=(4, 2))
    with refused("b.pinned", "other"):
        replace(cluster(a=(8,)), tenants={"b": VirtualCluster((), ("other",))})
    with refused("b.promised", "node"):
        replace(cluster(a=(8,)), tenants={"b": VirtualCluster((("node", 4),))})
    with refused("c.sizes", [2, 4]):
        Chain("c", "G", (2, 4), 4)
    with refused("c.node", 3):
        Chain("c", "G", (1, 2, 4), 3)
    with refused("gang", "x"):
        Allocator(cluster(a=(8,))).remove("x")


def test_no_gang_within_what_its_tenant_was_promised_ever_waits():
    """Any cell that a tenant does not use can be had at once, whatever others came and went, and are preempted."""
    rng = np.random.default_rng(4)
    for _ in range(20):
        allocator = Allocator(cluster(a=(8, 2, 1), b=(2, 2, 1)))
        idle = {"a": [8, 2, 1], "b": [2, 2, 1]}
        held = dict[str, tuple[str, int]]()
        for step in range(25):
            tenant = "ab"[int(rng.integers(2))]
            if held and rng.random() < 0.4:
                name = list(held)[int(rng.integers(len(held)))]
                owner, size = held.pop(name)
                allocator.remove(name)
                idle[owner].append(size)
            elif rng.random() < 0.3:
                allocator.schedule(f"o{step}", Request(tenant, (int(rng.integers(1, 4)),), -1))
            elif idle[tenant]:
                size = max(idle[tenant])
                idle[tenant].remove(size)
                held[f"g{step}"] = tenant, size
                request = Request(tenant, (4, 4) if size == 8 else (size,))
                answer = allocator.schedule(f"g{step}", request)
                for victim in answer.victims:
                    assert allocator.gangs[victim].request.priority == -1
                    allocator.remove(victim)
                assert allocator.schedule(f"g{step}", request).places
