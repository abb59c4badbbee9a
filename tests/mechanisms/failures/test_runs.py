"""Runs in which nodes fail: by hand, against Daly's formula, and through the audit."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from dataclasses import replace

import gymnasium
import numba
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from failing_nodes import HOUR, ONE, TWO, cluster
from gpusched_baselines import make_policy
from gpusched_env import (
    GpuClusterEnv,
    GpuClusterVectorEnv,
    InputError,
    Instance,
    load_scenario,
    make_instance,
    simulate,
)
from gpusched_env.audit import audit
from gpusched_env.mechanisms.failures.checkpoints import daly_interval_s, expected_factor
from gpusched_env.mechanisms.failures.model import NAME, Failures
from gpusched_env.mechanisms.failures.scenario import FailureTable
from gpusched_env.rendering.gantt import gantt_figure
from gpusched_env.rendering.timeline import Timeline
from gpusched_env.simulator import State
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.builds import FORCED
from gpusched_operations.html_report.gantt import gantt_view
from gpusched_operations.html_report.over_time import TimeAxis
from gpusched_operations.service.client import ServicePolicy
from instances import random_instance
from run_files import audited, csv_rows, edited
from vector_twins import check_made


@pytest.fixture(autouse=True)
def _smallest_build(monkeypatch):
    """Use the smallest builds, since no other test has one with this mechanism."""
    monkeypatch.setenv(FORCED, "")


def run(instance: Instance, policy: str = "edf"):
    return simulate(instance, make_policy(policy))


def lines(result) -> list[tuple[float, ...]]:
    """Return job, node, start, end [h] and epochs of each line."""
    table = result.intervals().sort("start_s", "job", "node")
    return [
        (row["job"], row["node"], row["start_s"] / HOUR, row["end_s"] / HOUR, row["epochs"]) for row in table.to_dicts()
    ]


def test_a_job_loses_its_work_since_the_last_checkpoint(tmp_path):
    """Cycles of an hour of work and 0.1 h: four end before 5.25 h. The rest takes 6.6 h, after 300 s of restart."""
    result = run(cluster([(0, 5.25, 5.25, 7.0)]))
    assert lines(result) == [
        (0, 0, 0.0, 5.25, pytest.approx(4.0)),
        (0, 1, 5.25, pytest.approx(5.25 + 1 / 12 + 6.6), 6.0),
    ]
    assert result.switches.tolist() == [1]
    assert audited(result, tmp_path / "run") == []


def test_a_job_without_a_node_waits_for_the_repair(tmp_path):
    result = run(cluster([(0, 5.25, 5.25, 7.0)], nodes=1))
    assert lines(result)[1][2:4] == (7.0, pytest.approx(7.0 + 1 / 12 + 6.6))
    assert result.switches.tolist() == [2]  # a pause, and a new start
    assert audited(result, tmp_path / "run") == []


@pytest.mark.parametrize(("notice_h", "kept"), [(0.1, 5.25 / 1.1), (0.099, 4.0)])
def test_notice_as_long_as_a_checkpoint_saves_the_work(notice_h, kept, tmp_path):
    result = run(cluster([(0, 5.25 - notice_h, 5.25, 7.0)]))
    assert lines(result)[0][2:] == (0.0, 5.25, pytest.approx(kept))
    assert audited(result, tmp_path / "run") == []


def test_no_job_starts_on_a_node_that_is_announced_to_leave():
    """The second job comes when node 1 has been announced, and waits for node 0 until 4.4 h."""
    jobs = [(0.0, 4.0, ONE), (2.0, 1.0, ONE)]
    assert lines(run(cluster([(1, 1.0, 9.0, 10.0)], *jobs)))[1][:3] == (1, 0, pytest.approx(4.4))
    assert lines(run(cluster([], *jobs)))[1][:3] == (1, 1, 2.0)


def test_a_node_that_only_empties_stops_no_job():
    jobs = [(0.0, 4.0, ONE), (0.0, 4.0, ONE), (2.0, 1.0, ONE)]
    result = run(cluster([(1, 1.0, 6.0, 6.0)], *jobs))
    both, last = pytest.approx(4.4), pytest.approx(5.5)
    assert [line[:4] for line in lines(result)] == [(0, 0, 0.0, both), (1, 1, 0.0, both), (2, 0, both, last)]


def test_a_job_on_two_nodes_stops_with_either_and_lets_the_other_go(tmp_path):
    jobs = [(0.0, 4.0, TWO), (2.0, 1.0, ONE)]
    result = run(cluster([(1, 3.0, 3.0, 50.0)], *jobs, nodes=2))
    assert lines(result)[2][:3] == (1, 0, 3.0)
    assert lines(result)[3][2] == 50.0
    assert audited(result, tmp_path / "run") == []


def test_nodes_may_never_come_back():
    result = run(cluster([(0, 1.5, 1.5, math.inf)]))
    assert {line[1] for line in lines(result)[1:]} == {1}


def test_a_spare_node_has_no_job_until_it_takes_a_place(tmp_path):
    result = run(cluster([(1, 0.0, 0.0, 3.0)], (0.0, 4.0, ONE), (0.0, 1.0, ONE)))
    assert [line[:3] for line in lines(result)] == [(0, 0, 0.0), (1, 1, 3.0)]
    assert audited(result, tmp_path / "run") == []


def test_charts_and_frames_hatch_nodes_while_they_are_down():
    """Node 0 is down from 5.25 to 7 h: the chart of the run has it, a frame only what has begun."""
    result = run(cluster([(0, 5.25, 5.25, 7.0), (1, 50.0, 50.0, 60.0)]))
    assert Timeline.of(result).down_times() == [(0, 5.25 * HOUR, 7.0 * HOUR)]
    lasting = Timeline.of(run(cluster([(0, 5.25, 5.25, math.inf)])))
    assert lasting.down_times() == [(0, 5.25 * HOUR, lasting.now_s)]
    figure = gantt_figure(result)
    assert "node down" in [text.get_text() for text in figure.legends[0].get_texts()]
    hatched = [each for each in figure.axes[0].collections if each.get_hatch() == "xxxx"]
    assert [path.vertices[:2, 0].tolist() for path in hatched[0].get_paths()] == [[5.25, 7.0]]
    assert Timeline.of(State(result.instance)).down_times() == []
    view = gantt_view(Timeline.of(result), TimeAxis.of([Timeline.of(result)]))
    assert "node down" in [boxes.look["name"] for boxes in view.boxes]


def test_with_no_failures_and_free_checkpoints_runs_are_the_same_to_the_last_bit():
    instance = random_instance(3, jobs=12, restart_s=20.0)
    rates = (0.0,) * len(instance.gpu_types)
    for policy in ("edf", "sts-x"):
        with_, without = (run(own, policy) for own in (instance.with_mechanisms(Failures((), rates, 0.0)), instance))
        assert with_.log.tobytes() == without.log.tobytes()
        assert with_.total_eur == without.total_eur


def test_planned_times_have_what_failures_cost_on_average():
    """On two nodes of one failure each in a day, saved every hour of work: Daly's formula with 12 h."""
    for planned, failures_h in ((True, 12.0), (False, math.inf)):
        board = State(cluster([], (0.0, 1.0, TWO), per_day=1.0, planned=planned)).hidden
        assert board.tau[0, 1] == pytest.approx(HOUR * expected_factor(HOUR, 360.0, failures_h * HOUR, 300.0))


def test_policies_see_what_is_down_and_announced_and_not_what_comes():
    state = State(cluster([(0, 1.0, 1.0, 2.0), (1, 1.0, 5.0, 6.0), (0, 4.0, 4.0, 5.0)], nodes=3))
    while state.advance() and state.board.clock[at.NOW] < HOUR:
        state.begin_round(False)
        state.commit_round()
    board = state.board
    assert board.outages[:, 0].tolist() == [1.0, 0.0, 0.0]
    assert board.outages[:, 1].tolist() == [np.inf, 5.0 * HOUR, np.inf]
    assert board.nodes[:, at.USABLE].tolist() == [0, 0, 1]
    assert not hasattr(board, "timeline")


def test_the_lost_time_is_that_of_dalys_formula_and_his_interval_is_best():
    """10⁵ h of work on two nodes that each fail every 10 h on average and are soon repaired: within 2 %."""
    between, writing, restart, work_h = 10.0, 60.0, 300.0, 1e5
    table = FailureTable(per_1000_node_days=24_000.0 / between, repair_h=1 / 60, horizon_days=1.5 * work_h / 24)
    outages = table.model(cluster([]), np.random.default_rng(0)).outages
    best, lost = daly_interval_s(writing, between * HOUR), {}
    for factor in (0.5, 0.75, 0.95, 1.0, 1.05, 1.5, 2.0):
        instance = cluster([], (0.0, work_h, ONE)).without(NAME)
        own = Failures(outages, (24.0 / between,), writing, factor * best)
        result = simulate(instance.with_mechanisms(own), make_policy("edf"), record=False)
        lost[factor] = 1.0 - work_h * HOUR / result.completion_s[0]
        formula = 1.0 - 1.0 / expected_factor(factor * best, writing, between * HOUR, restart)
        assert lost[factor] == pytest.approx(formula, rel=0.02)
    assert min(lost, key=lost.__getitem__) in (0.95, 1.0, 1.05)


def failing(seed: int, kind: str = "random") -> Instance:
    """Return a small instance in which nodes fail about ten times until its last due date."""
    if kind == "random":
        instance = random_instance(seed, jobs=12, nodes=5, restart_s=20.0 * (seed % 4))
    else:
        instance = make_instance(load_scenario(f"track:{kind}").replace({"jobs.count": 20}), seed)
    days, rng = float(instance.jobs.due_s.max()) / 86400.0, np.random.default_rng(seed)
    spot = {"spot_types": [instance.gpu_types[0].name], "spot_h": 2.4 * days, "spot_notice_s": 300.0 * days}
    checkpoints = {"checkpoint_s": rng.uniform(0.0, 200.0 * days), "interval_s": None if seed % 3 else 800.0 * days}
    rates = {"per_1000_node_days": 10_000.0 / days, "repair_h": days, "horizon_days": 4 * days}
    table = FailureTable(**rates, **checkpoints, **(spot if seed % 2 else {}))
    return instance.with_mechanisms(table.model(instance, rng))


@pytest.mark.parametrize("kind", ["random", "whole-nodes", "limits"])
@pytest.mark.parametrize("seed", range(4))
def test_the_audit_agrees_with_runs_of_all_kinds(kind, seed, tmp_path):
    for policy in ("edf", "sts-x"):
        result = run(failing(seed, kind), policy)
        assert audited(result, tmp_path / policy) == []
        assert len(result.intervals()) > len(result.instance.jobs)


def test_a_job_that_a_failure_stops_between_decisions_waits_for_the_next_one(tmp_path):
    """It is stopped at 5.25 h; the next decision is at 5.5 h."""
    result = run(replace(cluster([(0, 5.25, 5.25, 5.3)], nodes=1), decision_interval_s=HOUR / 2))
    assert lines(result)[1][2] == 5.5
    assert result.switches.tolist() == [2]
    assert audited(result, tmp_path / "run") == []


def test_a_job_that_ends_when_its_node_goes_down_has_ended(tmp_path):
    """Half an epoch without checkpoints before it, of an hour each: it is not lost."""
    result = run(cluster([(0, 0.5, 0.5, 2.0)], (0.0, 0.5, ONE), writing_s=0.0))
    assert lines(result) == [(0, 0, 0.0, 0.5, 0.5)]
    assert audited(result, tmp_path / "run") == []


def test_what_does_not_have_its_state_refuses_it():
    instance = failing(1)
    with pytest.raises(InputError, match="which a request does not have"):
        ServicePolicy("", "edf", instance)
    vector = GpuClusterVectorEnv(2, instance=[instance, instance])
    vector.reset()
    with pytest.raises(InputError, match="which a checkpoint does not have"):
        vector.get_state()
    tuned, own = (simulate(instance, make_policy(name)) for name in ("sts-x:tuned", "sts-x"))
    assert tuned.log.tobytes() == own.log.tobytes()


def test_the_audit_finds_wrong_epochs_a_node_that_was_down_and_another_rule(tmp_path):
    result = run(cluster([(0, 5.25, 5.25, 7.0)]))
    assert audited(result, tmp_path / "run") == []
    with csv_rows(tmp_path / "run" / "intervals.csv") as rows:
        rows[0]["epochs"] = "4.5"
    assert {each.what for each in audit(tmp_path / "run")} == {"epochs done in the interval"}
    assert audited(result, tmp_path / "down") == []
    with edited(tmp_path / "down" / "instance.json") as document:
        document["mechanisms"][NAME]["node"][0] = 1
    assert "end, not after node 1 goes down [s]" in {each.what for each in audit(tmp_path / "down")}
    assert audited(result, tmp_path / "rule") == []
    with edited(tmp_path / "rule" / "instance.json") as document:
        document["mechanisms"][NAME]["checkpoint_s"] = 180.0
    assert any("epochs" in each.what for each in audit(tmp_path / "rule"))


def test_environments_have_features_of_failures_alone_and_side_by_side():
    """The second one has half of the outages: the two are not confused."""
    first, parameters = failing(1), {"features": (NAME,), "flat": True}
    own = first.of(Failures)
    instances = [first, first.with_mechanisms(replace(own, outages=own.outages[::2]))]
    env, vector = (
        GpuClusterEnv(instance=instances[0], **parameters),
        GpuClusterVectorEnv(2, instance=instances, **parameters),
    )
    assert [name.partition(":")[0] for name in env.feature_names[-4:]] == ["failures"] * 4
    seen, info = env.reset()
    many, infos = vector.reset()
    rows, cost, over = [], 0.0, False
    while not over:
        np.testing.assert_array_equal(many[0], seen)
        rows.append(seen[-4:])
        actions = [int(np.flatnonzero(mask)[-1]) for mask in (info["action_mask"], infos["action_mask"][1])]
        seen, reward, over, _, info = env.step(actions[0])
        many, rewards, *_, infos = vector.step(actions)
        cost -= reward
        assert rewards[0] == reward
    assert cost == pytest.approx(env.result().total_eur)
    assert np.all((np.max(rows, axis=0) > 0.0) & (np.max(rows, axis=0) <= 1.0))


@pytest.mark.parametrize("name", ["gpusched_env/GpuCluster-v0", "gpusched_env/GpuClusterFlat-v0"])
def test_the_checkers_find_nothing_in_the_environments_of_the_track(name):
    checker = pytest.importorskip("stable_baselines3.common.env_checker")
    place = {"scenario": "failures", "settings": {"jobs.count": 5}}
    check_env(gymnasium.make(name, **place).unwrapped, skip_render_check=True)
    checker.check_env(gymnasium.make(name, **place), warn=True)


@pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="NUMBA_DISABLE_JIT is set")
def test_python_gives_the_same_bits(tmp_path):
    program = (
        "import json, sys; from pathlib import Path; from gpusched_baselines import make_policy;"
        "from gpusched_env import load_instance, simulate;"
        "runs = [simulate(load_instance(path), make_policy('edf')) for path in sys.argv[1:]];"
        "print(json.dumps([[run.total_eur, run.completion_s.tolist()] for run in runs]))"
    )
    from gpusched_env.formats import save_instance  # noqa: PLC0415

    paths = [tmp_path / f"{seed}.json" for seed in range(4)]
    for seed, path in enumerate(paths):
        save_instance(failing(seed), path)
    results = [
        json.loads(
            subprocess.run(
                [sys.executable, "-c", program, *map(str, paths)], env=os.environ | {"NUMBA_DISABLE_JIT": value},
                capture_output=True, text=True, check=True,
            ).stdout
        )
        for value in ("0", "1")
    ]  # fmt: skip
    assert results[0] == results[1]


def test_make_vec_of_the_track_is_the_compiled_environment_and_ends_as_the_single_one():
    check_made("failures", {"jobs.count": 5})
