"""The replay of a traced schedule, by hand."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gpusched_baselines import (
    AsTraced,
    StsX,
    capacity_bound,
    hindsight_cost,
    make_policy,
    policy_descriptions,
    policy_names,
)
from gpusched_baselines.hindsight import RULES, with_known_needs
from gpusched_env import Scenario, load_scenario, make_instance, simulate
from gpusched_env.audit import audit
from gpusched_env.formats import load_instance, save_instance, write_run
from gpusched_env.model import Instance
from gpusched_env.simulator.policy import can_decide
from gpusched_env.workload import with_tenancy
from instances import random_instance
from refusals import refused
from run_files import audited, edited, loaded_again

HAND = """submission_s,start_s,duration_s,gpus
0,100,1000,4
10,50,200,8
20,60,50,2
"""


def replay(folder: Path, text: str, **values: object) -> Instance:
    """Replay on one V100 node of 8 GPUs; durations are true to a millionth of a second."""
    path = folder / "trace.csv"
    path.write_text(text, encoding="utf-8")
    scenario = Scenario(
        cluster={"nodes": 1, "gpu_types": ["V100"]},
        jobs={"applications": ["yolov3-voc-global64"]},
        trace={"path": str(path), "resolution_s": 1e-6},
    )
    return make_instance(scenario.replace(values), 0)


@pytest.mark.parametrize("rule", ["exact", "at-most", "elastic"])
def test_jobs_start_when_they_did_or_as_soon_as_their_gpus_are_free(rule, tmp_path):
    """The second has the whole node from 50 to 250 s; the others start then, though their starts were at 60 and 100."""
    result = simulate(replay(tmp_path, HAND, **{"trace.gpu_demand": rule}), AsTraced())
    assert result.start_s.tolist() == pytest.approx([250.0, 50.0, 250.0], abs=1e-5)
    assert result.completion_s.tolist() == pytest.approx([1250.0, 250.0, 300.0], abs=1e-5)
    assert [row["gpus"] for row in result.intervals().sort("job").to_dicts()] == [4, 8, 2]
    assert result.switches.tolist() == [0, 0, 0]


def test_the_type_of_the_durations_comes_first_and_then_the_one_whose_time_is_closest(tmp_path):
    """Eight GPUs each at one time on a V100, an A100 and a T4 node: the last two jobs get other types, of 8 and 4.

    They do so a minute after their time, until when they wait for the V100.
    """
    text = "submission_s,start_s,duration_s,gpus\n0,5,1000,8\n0,5,1000,8\n0,5,1000,4\n"
    instance = replay(tmp_path, text, **{"cluster.nodes": 3, "cluster.gpu_types": ["V100", "A100", "T4"]})
    traced = [instance.configurations[i] for i in instance.jobs.traced_config]
    assert [(c.gpu_type, c.gpus_per_node) for c in traced] == [("V100", 8), ("V100", 8), ("V100", 4)]
    rows = simulate(instance, AsTraced()).intervals().sort("job").to_dicts()
    began = [(row["configuration"], row["start_s"]) for row in rows]
    assert began == [("V100x8", 5.0), ("A100x8", 65.0), ("T4x4", 65.0)]
    rows = simulate(instance, AsTraced(patience_s=0.0)).intervals().sort("job").to_dicts()
    assert [row["start_s"] for row in rows] == [5.0, 5.0, 5.0]
    with refused("patience_s", -1.0):
        AsTraced(patience_s=-1.0)


@pytest.mark.parametrize("rule", ["exact", "elastic"])
def test_jobs_back_to_back_stay_on_their_type_though_those_before_them_end_a_moment_late(rule, tmp_path):
    """Two rows of fifty jobs fill a V100 node for 100 s each, blurred by half a second; an A100 and a T4 node idle."""
    rows = [f"{100 * (i // 2)},{100 * (i // 2)},100,4" for i in range(100)]
    values = {"cluster.nodes": 3, "cluster.gpu_types": ["V100", "A100", "T4"], "trace.resolution_s": 1.0}
    text = "\n".join(["submission_s,start_s,duration_s,gpus", *rows])
    instance = replay(tmp_path, text, **values, **{"trace.gpu_demand": rule})
    result = simulate(instance, AsTraced())
    assert set(result.intervals()["configuration"]) == {"V100x4"}
    late = result.start_s - instance.jobs.traced_start_s
    assert 0.5 < late.max() < 10.0


def test_a_demand_beyond_a_node_runs_on_as_many_as_are_offered(tmp_path):
    instance = replay(tmp_path, "submission_s,start_s,duration_s,gpus\n0,5,1000,16\n")
    result = simulate(instance, AsTraced())
    assert result.completion_s.tolist() == pytest.approx([2005.0], abs=1e-5)


def test_shares_run_as_shares(tmp_path):
    text = "submission_s,start_s,duration_s,gpus\n0,5,1000,0.5\n0,5,1000,1\n"
    instance = replay(tmp_path, text, **{"sharing.fractions": [0.5], "jobs.applications": ["lm-wikitext2-bs5"]})
    assert [instance.configurations[i].name for i in instance.jobs.traced_config] == ["V100x0.5", "V100x1"]


def test_without_start_times_it_is_an_error_that_names_them_so_it_stands_in_no_list_that_any_workload_runs(tmp_path):
    instance = replay(tmp_path, "submission_s,duration_s,gpus\n0,5,1\n")
    assert (instance.jobs.traced_start_s, instance.jobs.traced_config) == (None, None)
    with refused("as-traced: jobs.traced_start_s", None):
        simulate(instance, AsTraced())
    assert make_policy("as-traced") == AsTraced()
    assert "as-traced" not in policy_names()
    assert "as-traced" in policy_descriptions()
    assert not can_decide(AsTraced(), make_instance(load_scenario("tiny"), 0))


def test_what_was_traced_is_kept_in_files_and_passes_the_audit(tmp_path):
    instance = replay(tmp_path, HAND)
    assert loaded_again(instance, tmp_path) == instance
    assert audited(simulate(instance, AsTraced()), tmp_path / "run") == []
    plain = replay(tmp_path, "submission_s,duration_s,gpus\n0,5,1\n")
    save_instance(plain, tmp_path / "plain.json")
    assert not [name for name in json.loads((tmp_path / "plain.json").read_text())["jobs"] if "traced" in name]


@pytest.mark.parametrize(("column", "value"), [("traced_start_s", -1.0), ("traced_config", 99), ("traced_config", -1)])
def test_the_audit_and_the_reader_refuse_what_cannot_have_been(column, value, tmp_path):
    instance = replay(tmp_path, HAND)
    write_run(simulate(instance, AsTraced()), tmp_path / "run")
    path = tmp_path / "run" / "instance.json"
    with edited(path) as document:
        document["jobs"][column][0] = value
    with refused(f"{path}: jobs[0].{column}", value):
        load_instance(path)
    with refused(f"instance.json: jobs.{column}[0]", value):
        audit(tmp_path / "run")


def test_tenants_with_nodes_of_their_own_have_no_traced_schedule(tmp_path):
    values = {"tenants": [{"name": "a", "cells": {"V100": [8]}}]}
    instance = replay(tmp_path, HAND, **values)
    assert instance.jobs.traced_start_s is not None
    assert with_tenancy(instance, "private").jobs.traced_start_s is None
    assert np.array_equal(with_tenancy(instance, "quota").jobs.traced_start_s, instance.jobs.traced_start_s)


JOBS = st.lists(
    st.tuples(st.integers(0, 500), st.integers(0, 400), st.integers(1, 600), st.sampled_from([1, 2, 4, 8])),
    min_size=1,
    max_size=8,
)


@given(JOBS)
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_job_starts_early_none_is_moved_and_with_gpus_for_all_each_starts_when_it_did(tmp_path, jobs):
    rows = [f"{submitted},{submitted + wait},{ran},{gpus}" for submitted, wait, ran, gpus in sorted(jobs)]
    text = "\n".join(["submission_s,start_s,duration_s,gpus", *rows])
    for nodes in (1, len(jobs)):
        instance = replay(tmp_path, text, **{"cluster.nodes": nodes})
        result = simulate(instance, AsTraced())
        late = result.start_s - instance.jobs.traced_start_s
        assert np.all(late >= -1e-9)
        assert not result.switches.any()
        assert np.allclose(result.completion_s - result.start_s, [ran for *_, ran, _ in sorted(jobs)], atol=1e-3)
    assert np.allclose(late, 0.0)


@pytest.mark.parametrize("seed", range(6))
def test_it_lies_between_the_bound_and_its_first_policy_told_the_needs(seed):
    instance = random_instance(seed, jobs=12, kinds=seed % 2 == 1, span_s=400.0)
    first = simulate(with_known_needs(instance), StsX(), record=False).total_eur
    costs = [hindsight_cost(instance, evaluations) for evaluations in (1, len(RULES), 20)]
    assert costs[0] == first
    assert costs[0] >= costs[1] >= costs[2] >= capacity_bound(instance) * (1.0 - 1e-9)


def test_more_evaluations_find_more_and_the_same_seed_finds_the_same():
    instance = make_instance(load_scenario("slack").replace({"jobs.count": 40}), 3)
    assert hindsight_cost(instance, 30) < hindsight_cost(instance, 4)
    assert hindsight_cost(instance, 12, seed=5) == hindsight_cost(instance, 12, seed=5)


def test_every_job_that_is_told_its_need_needs_it_for_certain_and_no_evaluations_are_refused():
    instance = random_instance(2, jobs=5)
    known = with_known_needs(instance)
    assert known.jobs.max_epochs.tolist() == known.jobs.epochs_needed.tolist() == instance.jobs.epochs_needed.tolist()
    assert known.seed == instance.seed
    with refused("evaluations", 0, "a whole number >= 1"):
        hindsight_cost(random_instance(0), 0)
