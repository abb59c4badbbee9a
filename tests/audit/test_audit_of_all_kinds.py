"""Runs with shared GPUs, several nodes, interference and restarts: the audit agrees, and finds changes."""

from collections import Counter

import pytest

from compiled_policies import POLICIES
from crowded import Whatever, crowded
from gpusched_env import Result
from gpusched_env.audit import audit
from gpusched_env.formats.run_folder import write_run
from gpusched_env.simulator import layout as at
from gpusched_env.simulator import simulate
from instances import with_host_memory, with_switching
from run_files import audited, edited


def kinds_of(result: Result) -> Counter[str]:
    index = result.log[:, at.LOG_CONFIG].astype(int)
    return Counter(result.instance.configurations[c].kind for c in index)


def fewest(kinds: Counter[str]) -> int:
    return min(kinds[kind] for kind in ("single-node", "multi-node", "shared"))


@pytest.mark.parametrize("interference", [False, True])
@pytest.mark.parametrize("restart_s", [0.0, 5.0])
@pytest.mark.parametrize("preemption", [False, True])
def test_any_run_audits_clean(tmp_path, preemption, restart_s, interference):
    kinds: Counter[str] = Counter()
    for seed in range(8):
        instance = crowded(seed, restart_s, interference)
        result = simulate(instance, Whatever(preemption), seed=seed, review_s=20.0)
        assert audited(result, tmp_path / "run") == [], seed
        kinds += kinds_of(result)
    assert fewest(kinds) >= 6


@pytest.mark.parametrize("interference", [False, True])
@pytest.mark.parametrize("name", POLICIES)
def test_a_run_of_every_policy_audits_clean(tmp_path, name, interference):
    kinds: Counter[str] = Counter()
    for seed in range(4):
        result = simulate(crowded(seed, interference=interference), POLICIES[name], seed=seed)
        assert audited(result, tmp_path / "run") == [], seed
        kinds += kinds_of(result)
    assert kinds["single-node"] > 0
    assert kinds["shared"] + kinds["multi-node"] > 0 or name == "fill"  # which shares only where there is a model


@pytest.mark.parametrize("preemption", [False, True])
def test_any_run_whose_switches_cost_by_distance_audits_clean(tmp_path, preemption):
    kinds: Counter[str] = Counter()
    for seed in range(5):
        result = simulate(with_switching(crowded(seed), seed), Whatever(preemption), seed=seed, review_s=5.0)
        assert audited(result, tmp_path / "run") == [], seed
        kinds += kinds_of(result)
    assert fewest(kinds) >= 4


@pytest.mark.parametrize("seed", range(4))
def test_any_run_with_host_memory_audits_clean_and_one_without_is_found_out(tmp_path, seed):
    instance = with_host_memory(with_switching(crowded(seed), seed), seed)
    assert audited(simulate(instance, Whatever(), seed=seed, review_s=5.0), tmp_path / "run") == []
    path = tmp_path / "run" / "instance.json"
    with edited(path) as document:
        del document["host_memory"]["pool_gib"]
    assert any("ready_s" in difference.what for difference in audit(tmp_path / "run"))


@pytest.mark.parametrize("column", ["start_s", "resume_s", "restart_s"])
def test_a_run_whose_jobs_waited_for_less_than_they_should_is_found_out(tmp_path, column):
    write_run(simulate(with_switching(crowded(1), 1), Whatever(), seed=1, review_s=5.0), tmp_path / "run")
    path = tmp_path / "run" / "instance.json"
    with edited(path) as document:
        document["jobs"][column] = [seconds + 0.5 for seconds in document["jobs"][column]]
    found = [difference for difference in audit(tmp_path / "run") if "ready_s" in difference.what]
    assert len(found) > 3


def test_a_run_with_distances_is_found_out_if_its_instance_tells_none_apart(tmp_path):
    write_run(simulate(with_switching(crowded(1), 1), Whatever(), seed=1, review_s=5.0), tmp_path / "run")
    with edited(tmp_path / "run" / "instance.json") as document:
        del document["jobs"]["resume_s"]
    assert any("ready_s" in difference.what for difference in audit(tmp_path / "run"))
