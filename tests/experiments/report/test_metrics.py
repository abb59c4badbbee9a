"""How jobs and machines metrics: by hand, and as what must hold of any run."""

from dataclasses import replace

import numpy as np
import pytest

from gpusched_baselines import AntMan, make_policy
from gpusched_env import Configuration, EpochDistribution, GpuType, Instance, Job, Node, Tenants, simulate
from gpusched_env.mechanisms.prices.model import PriceSeries
from gpusched_env.model import Tenant
from gpusched_experiments.report.metrics import Billing, RunMetrics, busy_s, group_metrics, slowdowns
from gpusched_experiments.report.run_summary import RunSummary
from gpusched_experiments.report.store import Place, Store, stored_values
from gpusched_experiments.report.usage import JobTimes, Usage
from guaranteed_and_opportunistic import guaranteed_and_opportunistic
from instances import by_utilisation, random_instance, three_jobs

CERTAIN = EpochDistribution.certain()


def one_after_the_other() -> Instance:
    """Make two jobs of 100 s and 300 s that come at once, the second late, and two nodes of one GPU; one job fits."""
    gpus = (
        GpuType("V", gpu_power_w=100.0, node_base_power_w=100.0, memory_gib=20.0, max_gpus_per_node=1),
        GpuType("W", gpu_power_w=100.0, node_base_power_w=100.0, memory_gib=1.0, max_gpus_per_node=1),
    )
    configurations = (Configuration("V", 1), Configuration("W", 1))
    seconds = {configurations[0]: 1.0}
    jobs = [
        Job(0.0, 100.0, 0.001, 100.0, CERTAIN, 100.0, seconds, 10.0, "a"),
        Job(0.0, 200.0, 0.001, 300.0, CERTAIN, 300.0, seconds, 10.0, "a", opportunistic=True),
    ]
    return Instance.from_jobs(
        gpus, [Node("V", 1), Node("W", 1)], jobs, configurations, energy_price_eur_per_kwh=0.5, pue=2.0
    )


def test_metrics_by_hand():
    """200 W for 400 s at PUE 2 are 160 kJ; completions of 100 and 400 s; GPU and node V busy all the time, W never."""
    result = simulate(one_after_the_other(), make_policy("edf"))
    metrics = RunMetrics.of(result)
    assert metrics.energy_kwh == pytest.approx(200.0 * 400.0 * 2.0 / 3.6e6)
    assert (metrics.waiting_s, metrics.median_completion_s, metrics.makespan_s) == (50.0, 250.0, 400.0)
    assert (metrics.p95_completion_s, metrics.p99_completion_s) == (pytest.approx(385.0), pytest.approx(397.0))
    assert slowdowns(result).tolist() == [1.0, pytest.approx(400.0 / 300.0)]
    assert (metrics.busy_gpus, metrics.busy_nodes) == (0.5, 0.5)
    guaranteed, opportunistic = group_metrics(result)
    assert (guaranteed.kind, guaranteed.name, guaranteed.jobs, guaranteed.late_jobs) == ("class", "guaranteed", 1, 0)
    assert (opportunistic.late_jobs, opportunistic.waiting_s, opportunistic.tardiness_eur) == (1, 100.0, 0.2)
    assert guaranteed.energy_eur + opportunistic.energy_eur == pytest.approx(result.energy_eur)
    job = Job(0.0, 100.0, 0.001, 2.0, CERTAIN, 2.0, {Configuration("V", 1): 1.0}, 1.0, "a")
    instance = replace(one_after_the_other())
    both = [job, replace(job)]
    instance = Instance.from_jobs(instance.gpu_types, instance.nodes, both, instance.configurations)
    assert slowdowns(simulate(instance, make_policy("edf"))).tolist() == [1.0, 1.0]
    result = simulate(replace(one_after_the_other(), energy_price_eur_per_kwh=0.0), make_policy("edf"))
    assert np.isnan(RunMetrics.of(result).energy_kwh)
    result = simulate(guaranteed_and_opportunistic(), make_policy("antman"))
    assert len(np.unique(result.log[:, 0])) == 2
    assert RunMetrics.of(result).busy_gpus == pytest.approx(1.0)
    assert RunMetrics.of(result).busy_gpus == pytest.approx(Usage.of(result).held)
    # GPU 0 of node 0 is held from 0 to 120 s, GPU 0 of node 1 from 0 to 30 s, two whole GPUs of node 1 for 10 s.
    instance = random_instance(4, jobs=4, nodes=2, types=1, span_s=10.0, kinds=True)
    share = next(i for i, c in enumerate(instance.configurations) if c.share < 1.0)
    whole = next(i for i, c in enumerate(instance.configurations) if (c.gpus_per_node, c.nodes, c.share) == (2, 1, 1.0))
    held = (
        (0, share, 0, 100, 0),
        (0, share, 10, 20, 0),
        (0, share, 50, 120, 0),
        (1, share, 0, 30, 0),
        (1, whole, 5, 15, -1),
    )
    log = np.array([(0, node, config, start, start, end, 1.0, slot) for node, config, start, end, slot in held], float)
    result = replace(simulate(instance, make_policy("edf")), log=log)
    assert busy_s(result) == (120.0 + 30.0 + 2 * 10.0, 120.0 + 30.0)


@pytest.mark.parametrize("seed", range(3))
def test_what_must_hold_of_any_run(seed):
    instance = random_instance(seed, jobs=20, nodes=4, types=2, span_s=300.0, kinds=True, restart_s=3.0)
    result = simulate(instance, make_policy("greedy"), seed=seed)
    metrics = RunMetrics.of(result)
    assert 0.0 < metrics.busy_gpus <= metrics.busy_nodes * max(n.gpus for n in instance.nodes) <= 8.0
    assert metrics.busy_nodes <= 1.0 + 1e-12
    assert 0.0 <= metrics.waiting_s <= result.mean_completion_s
    assert metrics.median_completion_s <= metrics.p95_completion_s <= metrics.p99_completion_s <= metrics.makespan_s
    assert metrics.slowdown >= 1.0


def test_with_prices_by_period_kwh_and_kg_are_those_of_the_meter():
    """Nodes of 200 W for 400 s, at a PUE of 2; a kWh emits 100 g, from 100 s on 300 g, whatever a scenario says."""
    series = PriceSeries(np.array([0.0, 100.0]), np.array([1.0, 3.0]), g_per_kwh=np.array([100.0, 300.0]))
    result = simulate(one_after_the_other().with_mechanisms(series), make_policy("edf"))
    run = RunSummary.of(result, 0, 0.0, float("nan"), Billing(co2_g_per_kwh=380.0))
    assert run.metrics.energy_kwh == pytest.approx(200.0 * 400.0 * 2.0 / 3.6e6)
    assert run.co2_kg == pytest.approx(200.0 * 2.0 / 3.6e6 * (100.0 * 0.1 + 300.0 * 0.3))
    assert run.energy_eur == pytest.approx(200.0 * 2.0 / 3.6e6 * (100.0 * 1.0 + 300.0 * 3.0))


def test_a_finished_run_reads_back_from_the_store_as_it_was(tmp_path):
    instance = one_after_the_other().with_mechanisms(Tenants((Tenant("\u00e9\u2028|"), Tenant("b"))))
    result = simulate(instance, make_policy("edf"), seed=3)
    run = RunSummary.of(result, 3, 0.0, float("nan"), Billing(co2_g_per_kwh=380.0))
    assert run.co2_kg == pytest.approx(0.38 * run.metrics.energy_kwh)
    store = Store(tmp_path / "cells.csv")
    store.append("a", Place((), "edf", 3), run.stored())
    store.append("b", Place((), "edf", 4), replace(run, seed=4).stored())
    with store.path.open("a", encoding="utf-8") as file:
        file.write("c,agent:\u00e9")  # as a killed command leaves it
    store.path.write_bytes(store.path.read_bytes()[:-1])  # in the middle of a letter
    found = stored_values(store.path)
    read = {
        key: RunSummary.from_dict({**found[key], "policy": "edf", "seed": seed}) for key, seed in (("a", 3), ("b", 4))
    }
    assert repr(read) == repr({"a": run, "b": replace(run, seed=4)})
    again = Store(store.path)
    again.append("c", Place((), "edf", 5), run.stored())
    assert list(stored_values(store.path)) == ["a", "b", "c"]
    again.keep({"b"})
    assert list(stored_values(store.path)) == ["b"]


def test_the_usage_of_two_jobs_on_a_gpu_by_hand():
    """The guaranteed job ends at 1,030 s, the other at 1,482.8125 s: 500 + 800 s of work, 10 and 5 of 20 GiB."""
    result = simulate(guaranteed_and_opportunistic(), AntMan())
    usage = Usage.of(result)
    assert usage.makespan_s == pytest.approx(1482.8125)
    assert usage.computing == pytest.approx(1300.0 / 1482.8125)
    assert usage.memory == pytest.approx((10.0 * 1030.0 + 5.0 * 1482.8125) / (20.0 * 1482.8125))
    assert usage.held == pytest.approx(1.0)
    times = JobTimes.by_label(result)
    assert times["guaranteed"] == JobTimes(1, pytest.approx(1030.0), 0.0, pytest.approx(1.03), pytest.approx(1.03))
    assert times["opportunistic"].stretch == pytest.approx(1.4828125)
    result = simulate(three_jobs(), make_policy("edf"))
    usage = Usage.of(result)
    assert usage.computing == pytest.approx(usage.held)
    assert set(JobTimes.by_label(result)) == {"guaranteed"}


@pytest.mark.parametrize("name", ["edf", "antman", "fill"])
def test_no_more_is_used_than_is_held_and_no_more_held_than_there_is(name):
    for seed in range(4):
        instance = by_utilisation(random_instance(seed, jobs=20, kinds=True))
        instance = replace(instance, jobs=replace(instance.jobs, opportunistic=np.arange(20) % 2 == 0))
        result = simulate(instance, make_policy(name))
        usage, times = Usage.of(result), JobTimes.by_label(result)
        assert 0.0 < usage.computing <= usage.held + 1e-9 <= 1.0 + 2e-9
        assert times["guaranteed"].jobs + times["opportunistic"].jobs == 20
        assert times["guaranteed"].stretch >= 1.0 - 1e-9
