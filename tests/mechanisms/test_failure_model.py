"""Outages and checkpoints as an instance, a file and a scenario have them: nothing here runs."""

from __future__ import annotations

import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpusched_env import InputError, Scenario, load_scenario, make_instance
from gpusched_env.mechanisms.failures.checkpoints import daly_interval_s, expected_factor, young_interval_s
from gpusched_env.mechanisms.failures.drawing import NodeClock, draw_outages
from gpusched_env.mechanisms.failures.model import NAME, Failures, Outage, read_outages
from gpusched_env.mechanisms.failures.slurm_events import expanded, read_events
from gpusched_env.workload import scenario_toml
from run_files import loaded_again

HOUR, DAY = 3600.0, 86400.0
ROOT = Path(__file__).parents[2]


def scenario(**settings: Any) -> Scenario:
    return Scenario(**{"mechanisms": [NAME], "jobs": {"count": 5}, "failures": {}} | settings)


def drawn(seed: int = 0, **table: object) -> Failures:
    """Return the failures of a cluster of 100 V100 and T4 nodes in turn, drawn with a table `[failures]`."""
    cluster = {"nodes": 100, "gpu_types": ["V100", "T4"]}
    return make_instance(scenario(cluster=cluster, failures=table), seed).of(Failures)


def test_intervals_between_checkpoints_by_hand():
    """Of 60 s, with ten hours between failures: √(2 · 60 · 36,000) s; Daly's is a little shorter."""
    assert young_interval_s(60.0, 36_000.0) == pytest.approx(2078.46, abs=0.01)
    part = 60.0 / 72_000.0
    assert daly_interval_s(60.0, 36_000.0) == pytest.approx(2078.461 * (1 + math.sqrt(part) / 3 + part / 9) - 60.0)
    assert daly_interval_s(100.0, 50.0) == 50.0  # longer than the time between failures
    assert young_interval_s(60.0, math.inf) == daly_interval_s(60.0, math.inf) == math.inf


@pytest.mark.parametrize(("between_min", "best_min"), [(1440.0, 117.0), (360.0, 57.0), (15.0, 9.1)])
def test_dalys_interval_is_the_one_that_he_gives(between_min, best_min):
    """Figures 3 to 5 of his paper: checkpoints of 5 minutes."""
    assert daly_interval_s(300.0, 60.0 * between_min) / 60.0 == pytest.approx(best_min, rel=0.01)


def test_the_expected_time_by_hand():
    """Work of δ, saved in C, takes M e^{R/M} (e^{(δ + C)/M} - 1) s: at δ + C = M, and R = 0, M (e - 1)."""
    assert expected_factor(90.0, 10.0, 100.0, 0.0) == pytest.approx(100.0 * (math.e - 1.0) / 90.0)
    assert expected_factor(90.0, 10.0, 100.0, 100.0) == pytest.approx(math.e * 100.0 * (math.e - 1.0) / 90.0)
    assert expected_factor(90.0, 10.0, math.inf, 5.0) == pytest.approx(100.0 / 90.0)
    assert expected_factor(math.inf, 10.0, math.inf, 5.0) == expected_factor(0.0, 0.0, math.inf, 5.0) == 1.0


@given(st.floats(1.0, 1e3), st.floats(1e4, 1e7), st.floats(0.0, 1e3))
def test_dalys_interval_costs_less_than_others(writing, between, restart):
    best = daly_interval_s(writing, between)
    cost = expected_factor(best, writing, between, restart)
    for factor in (0.5, 0.8, 1.25, 2.0):
        assert cost <= expected_factor(factor * best, writing, between, restart) * (1.0 + 1e-4)


def test_a_file_returns_the_same_failures(tmp_path):
    outages = (Outage(0, 5.0, 7.0, 9.0), Outage(1, 3.0, 3.0, math.inf))
    instance = make_instance(load_scenario("tiny"), 0)
    own = Failures(outages, (0.5,) * len(instance.gpu_types), 20.0, 600.0, "young", planned=False)
    again = loaded_again(instance.with_mechanisms(own), tmp_path).of(Failures)
    assert again == own
    assert [each.node for each in again.outages] == [1, 0]  # by the time at which they go down


def test_outages_are_read_from_a_table(tmp_path):
    path = tmp_path / "outages.csv"
    path.write_text("node,noticed_h,down_h,up_h\n3,1,2,4\n0,,5,\n", encoding="utf-8")
    assert read_outages(path) == [Outage(3, 3600.0, 7200.0, 14400.0), Outage(0, 18000.0, 18000.0, math.inf)]
    assert drawn(outages_file=str(path)).outages == tuple(read_outages(path))
    own = f'mechanisms = ["{NAME}"]\n[failures]\noutages_file = "outages.csv"\n'
    (tmp_path / "own.toml").write_text(f'base = "tiny"\n{own}', encoding="utf-8")
    assert load_scenario(tmp_path / "own.toml").table(NAME).outages_file == str(path)
    for text in ("node,down_h\n3,2\n", "", "node,noticed_h,down_h,up_h\n1,,5\n"):
        path.write_text(text, encoding="utf-8")
        with pytest.raises(InputError, match="columns node, noticed_h, down_h, up_h"):
            read_outages(path)
    with pytest.raises(InputError, match=r"outages_file = .*nowhere.*a file that exists"):
        drawn(outages_file=str(tmp_path / "nowhere"))


EVENTS = """Cluster|NodeName|TimeStart|TimeEnd|State|Reason|User
c||2026-01-01T00:00:00|Unknown||Cluster registered TRES|
c|gpu01|2025-12-31T20:00:00|2026-01-01T01:00:00|DOWN*|Not responding|slurm
c|gpu01|2026-01-01T02:00:00|2026-01-01T05:00:00|DRAIN|maintenance|root
c|gpu01|2026-01-01T05:00:00|Unknown|DOWN|broken|root
c|gpu02|2025-12-31T20:00:00|2025-12-31T23:00:00|DOWN|before|root
c|gpu03|2026-01-01T03:00:00|Unknown|DRAINED|broken|root
c|cpu01|2026-01-01T00:30:00|2026-01-01T09:00:00|DOWN|other|root
"""


CENTURY_H = 100.0 * 365.0 * 24.0


def test_slurms_events_are_outages(tmp_path):
    """gpu01 is down until 1 h, empties from 2 to 5 h, and stays down; gpu03 takes no job from 3 h on."""
    (tmp_path / "events.txt").write_text(EVENTS)
    hours = [
        (node, *(time / HOUR for time in times))
        for node, *times in read_events(tmp_path / "events.txt", ["gpu[01-03]"], "2026-01-01T00:00:00")
    ]
    assert hours == [(0, 0, 0, 1), (0, 2, 5, 5), (2, 3, CENTURY_H, CENTURY_H), (0, 5, 5, math.inf)]
    table = {"outages_file": str(tmp_path / "events.txt"), "outages_begin": "2026-01-01T00:00:00"}
    own = scenario(cluster={"nodes": 3}, failures=table | {"outages_nodes": ["gpu[01-03]"]})
    assert len(make_instance(own, 0).of(Failures).outages) == 4
    for names, begin, words in (
        (["gpu[01-02]"], "2026-01-01", "3 names, one for each node"),
        (["a", "b", "c"], "2026-01-01", "names of nodes that have events"),
        (["gpu[01-03]"], "yesterday", r"outages_begin.*2026-01-31T12:00:00"),
        (["gpu[3-1]"], "2026-01-01", r"such as gpu01 or gpu\[01-16,20\]"),
        (["gpu[01-03", "x"], "2026-01-01", "such as gpu01"),
        (["gpu[1-999999999]"], "2026-01-01", "at most 100000 nodes"),
        (["gpu[01-03]"], "2026-01-01T00:00:00+01:00", "without a time zone"),
        (["gpu01", "gpu[1-2]", "gpu01"], "2026-01-01", "each name once"),
    ):
        with pytest.raises(InputError, match=words):
            make_instance(own.replace({"failures.outages_nodes": names, "failures.outages_begin": begin}), 0)
    path = tmp_path / "events.txt"
    path.write_bytes(EVENTS.encode() + b'c|gpu02|2026-01-01T01:00:00|2026-01-01T02:00:00|MAINT|"\xfc\n')
    assert len(read_events(path, ["gpu[01-03]"], "2026-01-01")) == 5
    at_once = "2026-01-01T02:00:00"
    path.write_text(
        f"{EVENTS}c|gpu02|{at_once}|2026-01-01T05:00:00|IDLE+POWERED_DOWN\nc|gpu02|{at_once}|{at_once}|DOWN\n"
    )
    of_second = [
        [time / HOUR for time in times] for node, *times in read_events(path, ["gpu[01-03]"], "2026-01-01") if node
    ]
    assert of_second[:2] == [[2, 2, 2], [2, 5, 5]]
    for text, words in (
        (EVENTS + "c|gpu02\n", "TimeStart = None"),
        (EVENTS + "c|gpu02|2026-01-01T01:00:00|Unknown\n", "State = None.*gpu02"),
        (EVENTS + "c|gpu01|2026-01-01T06:00:00|Unknown|DOWN|again|root\n", r"TimeStart.*06:00.*last event of gpu01"),
        ("NodeName|TimeStart\ngpu01|2026-01-01T01:00:00\n", "columns NodeName, TimeStart, TimeEnd, State"),
        ("node,noticed_h,down_h,up_h\n", r"outages_nodes.*nothing, unless .*events of Slurm"),
    ):
        path.write_text(text)
        with pytest.raises(InputError, match=words):
            make_instance(own, 0)
    with pytest.raises(InputError, match=r"outages_begin.*nothing, without outages_file"):
        drawn(outages_begin="2026-01-01")
    assert expanded(["gpu[01-03,7]x", "last"]) == ["gpu01x", "gpu02x", "gpu03x", "gpu7x", "last"]


@pytest.mark.parametrize(
    ("outages", "words"),
    [
        ([(0, 5.0, 4.0, 9.0)], "noticed_s.*at most 4 s"),
        ([(0, 5.0, 6.0, 5.5)], "up_s.*at least 6 s"),
        ([(0, 1.0, 2.0, 9.0), (0, 8.0, 10.0, 12.0)], "from 9 s on, when node 0 is up again"),
        ([(-1, 1.0, 2.0, 3.0)], "node"),
        ([(0, 1.0, 2.0)], "the numbers node, noticed_s, down_s, up_s"),
    ],
)
def test_wrong_outages_are_refused(outages, words):
    with pytest.raises(InputError, match=words):
        Failures(tuple(outages), (1.0,))


def test_outages_may_be_given_by_any_order():
    rows = [(0, 10.0, 10.0, 20.0), (0, 5.0, 10.0, 10.0), (0, 1.0, 2.0, 5.0)]
    assert Failures(tuple(rows), (1.0,)) == Failures(tuple(reversed(rows)), (1.0,))


def test_what_an_instance_can_not_have_with_failures_is_refused():
    instance = make_instance(load_scenario("tiny"), 0)
    types = (1.0,) * len(instance.gpu_types)
    with pytest.raises(InputError, match="a node of the instance, below"):
        instance.with_mechanisms(Failures(((99, 0.0, 0.0, 1.0),), types))
    with pytest.raises(InputError, match="one for each GPU type"):
        instance.with_mechanisms(Failures((), (*types, 1.0)))
    with pytest.raises(InputError, match=r"planned.*true or false"):
        Failures((), types, planned="yes")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="at most 30 times 86400 s"):
        instance.with_mechanisms(Failures((), types, 30.0, 1e7))
    with pytest.raises(InputError, match="shares of GPUs"):
        make_instance(load_scenario("sharing"), 0).with_mechanisms(Failures((), types))


def test_nodes_fail_as_often_as_the_table_has_it():
    """100 nodes for 1,000 days, 10 failures of 1,000 node-days: 1,000 are expected, with √1,000 of deviation."""
    own = drawn(per_1000_node_days=10.0, repair_h=0.001, horizon_days=1000.0)
    assert len(own.outages) == pytest.approx(1000, abs=4 * math.sqrt(1000))
    assert own.per_node_day == (0.01, 0.01)
    of_gpus = drawn(per_1000_node_days=0.0, per_1000_gpu_days=10.0, repair_h=0.001, horizon_days=1000.0)
    assert of_gpus.per_node_day == (0.08, 0.04)  # 8 and 4 GPUs
    regular = drawn(per_1000_node_days=10.0, shape=8.0, repair_h=0.001, horizon_days=1000.0)
    first = {each.node: each.down_s for each in reversed(regular.outages)}
    assert np.std(list(first.values())) < 0.25 * 100 * DAY  # a Weibull distribution with shape 8 varies by 15 %


def test_lemons_fail_more_often():
    own = drawn(per_1000_node_days=10.0, lemons=0.2, lemon_factor=10.0, repair_h=0.001, horizon_days=1000.0)
    counts = np.bincount([each.node for each in own.outages], minlength=100)
    assert 10 <= np.sum(counts > 50) <= 32
    assert own.per_node_day == pytest.approx((0.028, 0.028))


def test_spot_nodes_leave_with_notice_and_others_fail_without():
    own = drawn(per_1000_node_days=10.0, spot_types=["T4"], spot_h=48.0, spot_notice_s=120.0, horizon_days=100.0)
    noticed = {(each.node % 2, round(each.down_s - each.noticed_s)) for each in own.outages}
    assert noticed == {(0, 0), (1, 0), (1, 120)}
    assert own.per_node_day == pytest.approx((0.01, 0.51))
    with pytest.raises(InputError, match=r"failures\.spot_types.*V100, T4"):
        drawn(spot_types=["A100"])


def in_use(places: int, spares: int, per_hour: float, repairs_per_hour: float) -> float:
    """Return the mean number of nodes in use: of a birth and death process by the number of nodes in repair.

    Nodes in use fail, each at its rate; all that have failed are repaired at the same time.
    """
    using = np.minimum(places, np.arange(places + spares, -1, -1))
    ratios = per_hour * using[:-1] / (repairs_per_hour * np.arange(1, places + spares + 1))
    weights = np.concatenate([[1.0], np.cumprod(ratios)])
    return float(weights @ using / weights.sum())


def clocks(count: int, seed: int = 0) -> list[NodeClock]:
    """Return nodes that fail after 20 h on average, and are repaired in 10 h."""
    streams = np.random.default_rng(seed).spawn(count)
    return [NodeClock(n, 20 * HOUR, 1.0, 10 * HOUR, math.inf, HOUR, rng) for n, rng in enumerate(streams)]


@pytest.mark.parametrize("spares", [0, 1, 3])
def test_spare_nodes_keep_as_many_in_use_as_a_birth_and_death_process(spares):
    end = 50_000 * HOUR
    made = [o._replace(up_s=min(end, o.up_s)) for o in draw_outages(clocks(6), spares, 0.0, 0.0, end)]
    down = sum(each.up_s - each.down_s for each in made)
    expected = in_use(6 - spares, spares, 1 / 20, 1 / 10)
    assert 6 - down / end == pytest.approx(expected, rel=0.01)


@given(st.integers(0, 2), st.floats(0.0, 20.0), st.integers(0, 99))
def test_never_are_more_nodes_in_use_than_there_are_places(spares, spare_h, seed):
    made = [*draw_outages(clocks(4, seed), spares, spare_h * HOUR, 0.0, 1000 * HOUR)]
    model = Failures(tuple(made), (1.2,))  # refuses outages of a node that overlap
    times = sorted({time for each in model.outages for time in (each.down_s, each.up_s) if time < math.inf})
    for time in times:
        assert sum(each.down_s <= time < each.up_s for each in model.outages) >= spares
    assert {each.node for each in model.outages if each.down_s == 0.0} == set(range(4 - spares, 4))


def test_a_spare_node_takes_the_place_of_one_that_is_down():
    """Of one node and a spare one each outage but the last ends half an hour after the other node's begins."""
    own = drawn(spares=49, spare_s=1800.0, per_1000_node_days=100.0, horizon_days=30.0)
    spare, first = ([o for o in own.outages if o.node in nodes] for nodes in (range(2, 100), range(2)))
    began = {each.down_s for each in own.outages if each.down_s > 0.0}
    assert {each.up_s - 1800.0 for each in own.outages if each.up_s < math.inf} == began
    assert {each.node for each in spare if each.down_s == 0.0} == set(range(2, 100))
    assert len(first) == 2
    with pytest.raises(InputError, match=r"failures\.spares.*below 50, the nodes of V100"):
        drawn(spares=50)


def test_other_seeds_draw_other_outages_and_the_jobs_stay():
    own = scenario(failures={"per_1000_node_days": 500.0})
    first, again, other = (make_instance(own, seed) for seed in (0, 0, 1))
    assert first.of(Failures) == again.of(Failures) != other.of(Failures)
    without = make_instance(Scenario(jobs={"count": 5}), 0)
    np.testing.assert_array_equal(first.jobs.seconds_per_epoch, without.jobs.seconds_per_epoch)
    assert 'mechanisms = ["gpusched_env.mechanisms.failures"]' in scenario_toml(own)


def test_runs_without_failures_load_nothing_of_them():
    program = (
        "import sys, gpusched_env as g; from gpusched_env.simulator import State;"
        "State(g.make_instance(g.load_scenario('tiny'), 0));"
        "print([name for name in sys.modules if 'failures' in name])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_no_other_file_of_the_packages_names_it():
    paths = [path for folder in ("gpusched_env", "baselines", "agents") for path in (ROOT / folder).rglob("*.py")]
    named = {path.parent.name for path in paths if "mechanisms.failures" in path.read_text(encoding="utf-8")}
    assert named == {"failures"}
