"""HiveD's public cases and the answers of its program; skipped where they are missing."""

import copy
from dataclasses import replace
from itertools import islice
from pathlib import Path

import numpy as np
import pytest

from gpusched_baselines import HiveD
from gpusched_env.errors import InputError
from gpusched_env.workload import builtin_applications, with_tenancy
from gpusched_reproductions.systems.hived import affinity, anomaly, conformance, episodes, philly
from gpusched_reproductions.systems.hived.anomaly import Backfill
from gpusched_reproductions.systems.hived.configuration import cluster_of, read_cluster
from gpusched_reproductions.systems.hived.conformance import Cases, Pods
from refusals import refused

ROOT = Path(__file__).parents[4]
PLACES = [folder / "shared" / "data" / "hived" for folder in (ROOT.parent, ROOT.parent.parent)]
DATA = next((place for place in PLACES if place.is_dir()), PLACES[0])
needs_cases = pytest.mark.skipif(not DATA.is_dir(), reason=f"no public cases in {DATA}")

SMALL = """
physicalCluster:
  cellTypes:
    HALF: {childCellType: G, childCellNumber: 2}
    NODE: {childCellType: HALF, childCellNumber: 2, isNodeLevel: true}
    RACK: {childCellType: NODE, childCellNumber: 2}
  physicalCells:
  - cellType: RACK
    cellChildren:
    - cellAddress: n0
    - cellAddress: n1
      cellChildren:
      - pinnedCellId: own
        cellChildren: [{cellAddress: 3}, {cellAddress: 2}]
      - cellChildren: [{cellAddress: 1}, {cellAddress: 0}]
virtualClusters:
  A:
    virtualCells: [{cellType: RACK.NODE, cellNumber: 1}]
    pinnedCells: [{pinnedCellId: own}]
"""


def test_a_configuration_names_nodes_gpus_and_pinned_cells(tmp_path):
    (tmp_path / "cluster.yaml").write_text(SMALL, encoding="utf-8")
    cluster = cluster_of(read_cluster(tmp_path / "cluster.yaml"))
    assert [(c.name, c.gpu_type, c.sizes, c.node) for c in cluster.chains] == [("RACK", "G", (1, 2, 4, 8), 4)]
    assert [number for _, number in cluster.pieces[0].gpus] == [0, 1, 2, 3, 3, 2, 1, 0]
    assert cluster.pieces[0].pinned == {"own": (4, 2)}
    assert cluster.tenants["A"].promised == (("RACK", 4),)
    with refused("promised", allowed="cells that fit into"):
        cluster_of(read_cluster_with(tmp_path, SMALL.replace("cellNumber: 1", "cellNumber: 2")))
    with refused("physicalCells[0].cellType", "RUCK"):
        cluster_of(read_cluster_with(tmp_path, SMALL.replace("- cellType: RACK", "- cellType: RUCK")))


def read_cluster_with(folder: Path, text: str) -> dict[str, object]:
    (folder / "other.yaml").write_text(text, encoding="utf-8")
    found: dict[str, object] = read_cluster(folder / "other.yaml")
    return found


@pytest.fixture
def config() -> dict[str, object]:
    found: dict[str, object] = read_cluster(DATA / "cluster.yaml")
    return found


@pytest.fixture
def cases() -> Cases:
    return Cases.read(DATA / "cases.json")


@needs_cases
def test_every_pod_goes_where_hived_puts_it(config, cases):
    answers = list(conformance.pod_answers(config, cases))
    assert answers == [(pod, cases.expected(pod)) for pod, _ in answers]
    assert [pod for pod, answer in answers if answer == "waits"] == ["pod7", "pod30", "pod32", "pod41"]
    assert len(answers) == 33


@needs_cases
def test_a_preemptor_that_is_preempted_itself_lets_go_of_what_it_reserved(config, cases):
    pods = Pods(config, cases)
    for pod in ("pod28", "pod29", "pod31"):
        pods.ask(pod)
    assert set(pods.allocator.gangs) == {"group19", "group20", "group22"}
    assert pods.ask("pod33") == "after group19"
    assert set(pods.allocator.gangs) == {"group19", "group24"}
    pods.allocator.remove("group19")
    assert pods.ask("pod34") == cases.expected("pod34")
    assert set(pods.allocator.gangs) == {"group25"}
    assert pods.ask("pod35") == "after group25"
    pods.allocator.remove("group26")
    assert set(pods.allocator.gangs) == {"group25"}


@needs_cases
def test_preemption_begins_only_on_suggested_nodes_and_ends_when_they_are_not_any_more(config, cases):
    pods = Pods(config, cases)
    nodes = {node for piece in pods.allocator.cluster.pieces for node, _ in piece.gpus}
    assert pods.ask("pod27", nodes - {"0.0.3.1"}) == "waits"
    pods.ask("pod27", nodes)
    assert pods.ask("pod33", nodes, preempt=False) == "after group18"
    assert pods.ask("pod33", nodes - {"0.0.3.1"}) == "waits"
    assert "group24" not in pods.allocator.gangs
    assert pods.ask("pod33", nodes) == "after group18"
    assert "group24" in pods.allocator.gangs
    assert pods.ask("pod33", nodes - {"0.0.3.1"}) == "waits"
    assert "group24" not in pods.allocator.gangs


@needs_cases
def test_lazy_preemption_that_leads_to_nothing_is_reverted(config, cases):
    pods = Pods(conformance.backtracking(config), cases)
    for pod, suggested in conformance.BACKTRACKING.items():
        pods.ask(pod, suggested)
    assert [len(gang.cells) for gang in pods.allocator.gangs.values()] == [2, 1]


@needs_cases
def test_larger_cells_are_split_as_in_hiveds_test_with_bad_nodes_as_nodes_that_are_not_suggested(config, cases):
    """Pods 44 to 46: 0.0.3.3 is bad from the second on, and 0.0.4.3 from the third on, which then waits."""
    clusters = config["virtualClusters"]
    own = clusters["VC1"]["virtualCells"]
    own[0]["cellNumber"], own[2]["cellNumber"], own[3]["cellNumber"] = 4, 0, 0
    clusters["VC2"]["virtualCells"][2] = {"cellType": "4-DGX2-V100-NODE.2-DGX2-V100-NODE", "cellNumber": 1}
    pods = Pods(config, cases)
    assert pods.ask("pod44", {"0.0.3.2", "0.0.3.3", "0.0.4.2", "0.0.4.3"}) == cases.expected("pod44")
    assert pods.ask("pod45", {"0.0.3.2", "0.0.4.2", "0.0.4.3"}) == cases.expected("pod45")
    assert pods.ask("pod46", {"0.0.3.2", "0.0.4.0", "0.0.4.1", "0.0.4.2"}) == cases.expected("pod46") == "waits"


@needs_cases
def test_what_hived_refuses_is_refused(config, cases):
    for first in (group[0] for group in cases.refused):  # its gangs have no such pods, or ask for what there cannot be
        with pytest.raises(InputError):
            Pods(config, cases).ask(first)
    other = copy.deepcopy(config)
    cells = other["virtualClusters"]["VC1"]["virtualCells"]
    cells[0]["cellType"], cells[1] = "CT1-NODE", {"cellType": "CT1-NODE.CT1", "cellNumber": 2}
    with refused("promised", allowed="cells that fit into"):
        cluster_of(other)


@needs_cases
@pytest.mark.parametrize("mode", conformance.MODES)
def test_random_requests_are_answered_as_by_hiveds_program(mode, config):
    cluster = cluster_of(config)
    of_mode = (e for e in episodes.read(DATA / "random_episodes.jsonl.gz") if e["Mode"] == mode)
    steps = [step for n, each in enumerate(islice(of_mode, 12)) for step in episodes.replay(each, cluster, n)]
    assert [step for step in steps if step.ours != step.published] == []
    assert len(steps) > 150


@pytest.mark.parametrize("text", ["", "[1]\n", "{", '{"Mode": "one"}\n'])
def test_what_is_no_episode_is_refused(text, tmp_path):
    (tmp_path / "a.jsonl").write_text(text, encoding="utf-8")
    with refused("files", allowed="episodes"):
        episodes.read(tmp_path / "a.jsonl")


def trace() -> philly.TenantTrace:
    """Make two tenants with a node each: one that sends single GPUs, and one that needs its whole node."""
    return philly.TenantTrace(
        submission_s=np.array([0.0, 0.0, 60.0, 90.0]),
        duration_s=np.array([600.0, 600.0, 600.0, 120.0]),
        gpus=np.array([1, 1, 8, 4]),
        tenant=np.array([0, 0, 1, 0]),
        names=("small", "large"),
        promised=(8, 8),
    )


def test_a_quota_does_not_help_who_needs_a_whole_node_and_cells_do():
    shared = philly.shared_cluster(trace())
    private = anomaly.alone(trace(), shared)
    assert private.delay_min.tolist() == [0.0] * 4
    spread = anomaly.outcome(trace(), shared, Backfill("emptiest", emptiest=True))
    assert spread.delay_min.tolist() == [0.0, 0.0, 9.0, 0.0]
    assert spread.refused == 3  # at 60, 90 and 210 s
    packed = anomaly.outcome(trace(), shared, Backfill("best fit", emptiest=False))
    assert (packed.delay_min.tolist(), packed.refused) == ([0.0] * 4, 0)
    cells = anomaly.outcome(trace(), with_tenancy(shared, "cells"), HiveD())
    assert cells.completion_s.tolist() == private.completion_s.tolist()


def test_the_price_of_affinity_is_the_delay_of_who_needs_a_whole_node(monkeypatch):
    """The larger tenant waits 9 min on the emptiest nodes, whatever is promised here, and never with best fit."""
    monkeypatch.setattr(affinity, "read_trace", lambda _path, **_settings: trace())
    measured = affinity.run(True)
    assert [check.ours for check in measured.checks] == [9.0, 0.0, 9.0, 0.0, 1.3, 1.3]
    assert {check.kind for check in measured.checks} == {"own formula"}
    assert [line.name for line in measured.chart.rows[0][0].series] == [anomaly.WAITS, anomaly.FITS]


@pytest.mark.parametrize(
    ("curve", "least"),
    [({1.3: 99.0, 2.0: 5.0}, 1.3), ({1.3: 101.0, 2.0: 5.0}, 2.0), ({1.3: 9.0, 2.0: 101.0}, np.inf)],
)
def test_so_much_is_enough_from_which_on_no_delay_is_long(curve, least):
    assert affinity.enough(curve) == least


def test_a_job_that_spreads_waits_for_nobody_and_is_slower():
    shared = philly.with_spread(philly.shared_cluster(trace()), "V100")
    spread = anomaly.outcome(trace(), shared, Backfill("any nodes", emptiest=True))
    assert spread.delay_min.tolist() == [0.0] * 4
    seconds = spread.completion_s - trace().submission_s
    # Eight GPUs of both nodes from 60 s on: slower by one of the measured factors for eight. The others as on one node.
    factors = [each.spread_factor.get(("V100", 8), 0.0) for each in builtin_applications().values()]
    assert seconds[2] / 600.0 in [pytest.approx(max(1.0, factor)) for factor in factors if factor > 0.0]
    assert seconds[[0, 1, 3]].tolist() == [600.0, 600.0, 120.0]


def test_cells_below_a_node_sum_to_what_was_promised():
    cells = [[(cell.gpus, cell.count) for cell in philly.cells_of(gpus)] for gpus in (63, 8, 7, 1)]
    assert cells == [[(8, 7), (4, 1), (2, 1), (1, 1)], [(8, 1)], [(4, 1), (2, 1), (1, 1)], [(1, 1)]]


def test_tenants_whose_cells_split_a_node_run_as_on_private_nodes():
    # Both have a half, a quarter and an eighth: one node of eight and one of which six GPUs are promised.
    asked = replace(trace(), gpus=np.array([4, 2, 4, 1]), promised=(7, 7))
    shared = philly.shared_cluster(asked)
    assert len(shared.nodes) == 2
    cells = anomaly.outcome(asked, with_tenancy(shared, "cells"), HiveD())
    assert cells.completion_s.tolist() == anomaly.alone(asked, shared).completion_s.tolist()


def test_lending_costs_guaranteed_jobs_nothing():
    opportunistic = np.array([True, True, False, False])
    shared = philly.shared_cluster(trace())
    instance = with_tenancy(replace(shared, jobs=replace(shared.jobs, opportunistic=opportunistic)), "cells")
    assert anomaly.outcome(trace(), instance, HiveD()).delay_min[~opportunistic].tolist() == [0.0, 0.0]


@pytest.mark.skipif(not philly.TRACE.is_file(), reason=f"no public trace in {philly.TRACE}")
def test_the_largest_virtual_clusters_of_philly_have_the_gpus_that_they_were_promised():
    found = philly.read_trace(philly.TRACE, quick=False)
    assert (len(found.tenant), sum(found.promised), len(found.names)) == (68_503, 619, 11)
    assert sum(philly.read_trace(philly.TRACE, quick=True, headroom=2.0).promised) == 949
