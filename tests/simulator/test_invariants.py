"""Properties that hold for every policy on every instance."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compiled_policies import POLICIES
from gpusched_baselines import RandomGreedy, clairvoyant_bound, make_policy
from gpusched_env import Instance, Result, simulate
from gpusched_env.model.rates import cost_rate_eur_per_h
from gpusched_env.simulator import layout as at
from instances import random_instance

cases = st.builds(
    random_instance,
    st.integers(0, 10_000),
    jobs=st.integers(1, 15),
    nodes=st.integers(2, 5),
    types=st.integers(1, 2),
    span_s=st.sampled_from([0.0, 500.0, 20_000.0]),
    restart_s=st.sampled_from([0.0, 7.5]),
    kinds=st.booleans(),
    interference=st.booleans(),
)


def busy_gpus(result: Result) -> list[tuple[int, float, float, int]]:
    """List (node, start, end, busy GPUs) for every stretch between two boundaries of the run's intervals.

    A shared GPU counts once, whichever jobs are on it; at no time may shares sum beyond it.
    """
    frame = result.intervals()
    times = np.unique(np.concatenate([frame["start_s"], frame["end_s"]]))
    node, start, end, gpus, gpu = (frame[c].to_numpy() for c in ("node", "start_s", "end_s", "gpus", "gpu"))
    share = np.array([result.instance.configurations[int(c)].share for c in ordered_configurations(result)])
    stretches = []
    for begin, finish in itertools.pairwise(times):
        inside = (start <= begin) & (end >= finish)
        for n in range(len(result.instance.nodes)):
            here = inside & (node == n)
            shared = [share[here & (gpu == g)].sum() for g in np.unique(gpu[here & (gpu >= 0)])]
            assert max(shared, default=0.0) <= 1.0 + 1e-9
            stretches.append((n, begin, finish, int(gpus[here & (gpu < 0)].sum()) + len(shared)))
    return stretches


def ordered_configurations(result: Result) -> np.ndarray:
    """Return the configuration of every row of `intervals()`."""
    order = np.lexsort((result.log[:, at.LOG_NODE], result.log[:, at.LOG_JOB], result.log[:, at.LOG_START]))
    return result.log[order, at.LOG_CONFIG]


@pytest.mark.parametrize("name", POLICIES)
@settings(max_examples=25, deadline=None)
@given(instance=cases, seed=st.integers(0, 3))
def test_every_run_keeps_the_rules(name: str, instance: Instance, seed: int):
    result = simulate(instance, POLICIES[name], seed=seed)
    frame = result.intervals()
    assert np.all(np.isfinite(result.completion_s))

    # No GPU is oversubscribed, and energy is the sum of rate times time.
    rates = cost_rate_eur_per_h(instance)
    bill = 0.0
    for node, start, end, busy in busy_gpus(result):
        assert busy <= instance.nodes[node].gpus
        bill += rates[instance.type_of_node[node], busy] * (end - start) / 3600.0
    assert result.energy_eur == pytest.approx(bill, rel=1e-9, abs=1e-12)

    # Attributions sum to the bill; tardiness is ω · max(0, C - d).
    assert result.job_energy_eur.sum() == pytest.approx(result.energy_eur, rel=1e-9, abs=1e-12)
    late = np.maximum(0.0, result.completion_s - instance.jobs.due_s)
    tardiness = instance.jobs.tardiness_weight_eur_per_s * late
    assert result.job_tardiness_eur == pytest.approx(tardiness, rel=1e-9, abs=1e-9)
    assert result.tardiness_eur == pytest.approx(tardiness.sum(), rel=1e-9, abs=1e-9)

    # Progress never exceeds the epochs needed, and reaches them at completion.
    for job in range(len(instance.jobs)):
        own = frame.filter(frame["job"] == job).unique("start_s", keep="first", maintain_order=True)
        done = own["epochs"].cum_sum().to_numpy()
        needed = instance.jobs.epochs_needed[job]
        assert np.all(np.diff(done) >= -1e-9 * needed)
        assert np.all(done <= needed * (1 + 1e-9))
        assert done[-1] == pytest.approx(needed, rel=1e-9)
        assert own["end_s"][-1] == result.completion_s[job]
        assert own["start_s"][0] >= instance.jobs.submission_s[job]
        assert np.all(own["start_s"].to_numpy()[1:] >= own["end_s"].to_numpy()[:-1])

    # No run undercuts the clairvoyant bound.
    assert result.total_eur >= clairvoyant_bound(instance) * (1 - 1e-9)


@settings(max_examples=20, deadline=None)
@given(instance=cases)
def test_a_restart_overhead_costs_time_after_each_change(instance: Instance):
    result = simulate(instance, POLICIES["sts"])
    frame = result.intervals()
    for job in range(len(instance.jobs)):
        own = frame.filter(frame["job"] == job).unique("start_s", keep="first", maintain_order=True)
        waits = (own["ready_s"] - own["start_s"]).to_numpy()
        lengths = (own["end_s"] - own["start_s"]).to_numpy()
        assert waits[0] == 0.0
        assert waits[1:] == pytest.approx(np.minimum(instance.jobs.restart_s[job], lengths[1:]), abs=1e-6)


def test_running_jobs_keep_their_node_when_nothing_better_comes():
    instance = random_instance(3, jobs=4, nodes=4, span_s=10.0)
    result = simulate(instance, make_policy("edf"))
    assert result.switches.sum() == 0


def test_the_log_grows_as_needed():
    instance = random_instance(1, jobs=40, nodes=3)
    result = simulate(instance, RandomGreedy(constructions=50), review_s=5.0)
    assert len(result.log) > 4 * len(instance.jobs)
    assert result.log[:, at.LOG_EPOCHS].sum() == pytest.approx(instance.jobs.epochs_needed.sum())
