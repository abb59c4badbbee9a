"""Tenants of a trace: names, by which results are told apart."""

import pytest

from gpusched_baselines import make_policy
from gpusched_env import Tenants, make_instance, simulate
from gpusched_env.audit import audit
from gpusched_env.formats import write_run
from gpusched_env.workload import Scenario, with_tenancy
from gpusched_experiments.report.metrics import group_metrics
from refusals import refused
from run_files import loaded_again

ROWS = ("submission_s,duration_s,gpus,tenant", "0,600,1,vision", "60,1200,2,a/b", "120,300,1,vision", "180,60,1,")


@pytest.fixture
def instance(tmp_path):
    (tmp_path / "jobs.csv").write_text("\n".join(ROWS) + "\n")
    return make_instance(Scenario(trace={"path": str(tmp_path / "jobs.csv"), "format": "generic"}), 0)


def test_jobs_are_their_tenants_of_the_trace(instance):
    assert [tenant.name for tenant in Tenants.of(instance).tenants] == ["vision", "a/b", "nobody*"]
    assert instance.jobs.tenant.tolist() == [0, 1, 0, 2]
    assert Tenants.of(instance).tenancy == "none"


def test_results_are_told_apart_by_them_and_a_recorded_run_audits_clean(instance, tmp_path):
    result = simulate(instance, make_policy("edf"))
    groups = group_metrics(result)
    assert [(group.kind, group.name, group.jobs) for group in groups] == [
        ("tenant", "vision", 2), ("tenant", "a/b", 1), ("tenant", "nobody*", 1),
    ]  # fmt: skip
    assert sum(group.energy_eur for group in groups) == pytest.approx(result.energy_eur)
    write_run(result, tmp_path / "run")
    assert not audit(tmp_path / "run")
    assert loaded_again(instance, tmp_path) == instance


def test_names_are_no_promise_of_gpus(instance):
    with refused("tenants[0].cells", []):
        with_tenancy(instance, "quota")
