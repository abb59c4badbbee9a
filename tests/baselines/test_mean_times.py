"""Policies on expected instead of worst-case times, on a job for which the choices differ.

One node with two GPUs, 1 € per GPU and hour, no base power. An epoch takes 1 h on one GPU, 0.6 h on two, so one GPU is
cheaper. The job has at most 4 epochs, S is 1 on [0, 2) and ½ on [2, 4): it needs 3 in expectation.
"""

from dataclasses import replace

import numpy as np
import pytest

from first_rounds import begin_run
from gpusched_baselines import RandomGreedy, edf_mean, make_policy, random_greedy_mean
from gpusched_baselines.planning.cheapest import by_pressure, epochs_left
from gpusched_baselines.search.constructions import Constructions
from gpusched_env import ActiveJobs, Configuration, EpochDistribution, GpuType, Instance, Job, Node, simulate
from gpusched_env.simulator import layout as at
from instances import CERTAIN, HOUR, random_instance, three_jobs

ONE, TWO = Configuration("V", 1), Configuration("V", 2)
X1, X2 = range(2)


def instance(due_h: float, needed: float = 2.0) -> Instance:
    halves = EpochDistribution(np.array([0.0, 0.5, 1.0]), np.array([1.0, 0.5]))
    job = Job(0.0, due_h * HOUR, 0.001, 4.0, halves, needed, {ONE: HOUR, TWO: 0.6 * HOUR})
    gpu = GpuType("V", 1000.0, 0.0, 16.0)
    return Instance.from_jobs([gpu], [Node("V", 2)], [job], energy_price_eur_per_kwh=1.0, pue=1.0)


def held(policy, due_h: float) -> int:
    state = begin_run(instance(due_h), preemption=policy.preemption)
    policy.decide(state.view, np.random.default_rng(0))
    return int(state.view.jobs[0, at.CONFIG])


def test_edf_takes_one_gpu_where_only_the_worst_case_is_late():
    """At most 4 h, 3 h expected: due at 3.5 h the worst case asks for two GPUs. Due at 2.9 h so does the mean."""
    assert (held(make_policy("edf"), 3.5), held(edf_mean(), 3.5)) == (X2, X1)
    assert (held(make_policy("edf"), 4.0), held(edf_mean(), 4.0)) == (X1, X1)
    assert (held(make_policy("edf"), 2.9), held(edf_mean(), 2.9)) == (X2, X2)


def test_what_the_mean_chooses_is_late_if_the_worst_comes():
    """Four epochs on one GPU end at 4 h, half an hour late: 1.80 €. On two GPUs they end at 2.4 h."""
    unlucky = instance(3.5, needed=4.0)
    assert simulate(unlucky, edf_mean()).tardiness_eur == pytest.approx(1.8)
    assert simulate(unlucky, make_policy("edf")).tardiness_eur == 0.0


def test_random_greedy_on_means_takes_the_mean_for_pressure_choice_and_proxy():
    """One GPU. "sure" takes 3 h and is due at 4 h. "risky" takes at most 4 h, 2.2 h expected, and is due at 4.5 h.

    In the worst case risky has more pressure (4 - 4.5 h) than sure (3 - 4 h), in the mean less (2.2 - 4.5 h).
    """
    risk = EpochDistribution(np.array([0.0, 0.5, 1.0]), np.array([1.0, 0.1]))
    jobs = [
        Job(0.0, 4 * HOUR, 0.001, 3.0, CERTAIN, 3.0, {ONE: HOUR}),
        Job(0.0, 4.5 * HOUR, 0.001, 4.0, risk, 2.0, {ONE: HOUR}),
    ]
    two = Instance.from_jobs([GpuType("V", 1000.0, 0.0, 16.0)], [Node("V", 1)], jobs)
    served = {}
    for epochs in ("worst-case", "mean"):
        state = begin_run(two)
        RandomGreedy(constructions=0, epochs=epochs).decide(state.view, np.random.default_rng(0))
        served[epochs] = (state.view.jobs[:, at.CONFIG] >= 0).tolist()
    assert served == {"worst-case": [False, True], "mean": [True, False]}
    # Neither is late if it waits, by the mean, so the better round is the one that ends first: risky, after 2.2 h.
    state.begin_round(preemption=True)
    RandomGreedy(constructions=100, epochs="mean").decide(state.view, np.random.default_rng(0))
    assert (state.view.jobs[:, at.CONFIG] >= 0).tolist() == [False, True]


def test_constructions_on_means_prefer_what_the_mean_prefers():
    """S is cheap, and in time for 3 epochs, not for 4; F is costly. By the mean constructions take S, as Greedy does,
    but for one in twenty that passes on: then there are two different ones.
    """
    types = [GpuType("F", 1000.0, 0.0, 16.0), GpuType("S", 100.0, 0.0, 16.0)]
    halves = EpochDistribution(np.array([0.0, 0.5, 1.0]), np.array([1.0, 0.5]))
    seconds = {Configuration("F", 1): 0.5 * HOUR, Configuration("S", 1): HOUR}
    job = Job(0.0, 3.5 * HOUR, 0.001, 4.0, halves, 2.0, seconds)
    two_types = Instance.from_jobs(types, [Node("F", 1), Node("S", 1)], [job])
    found = []
    for seed in range(200):
        state = begin_run(two_types)
        made = Constructions.of(state.view, np.random.default_rng(seed), 1, size=2, epochs="mean", fill=True)
        found.append(len(made.costs))
    assert 0 < found.count(2) < 30


def test_where_all_is_certain_means_change_nothing():
    for seed in range(5):
        made = random_instance(seed, kinds=True)
        fixed = {"distribution": np.zeros(len(made.jobs), dtype=np.int64), "distributions": (CERTAIN,)}
        sure = replace(made, jobs=replace(made.jobs, **fixed, epochs_needed=made.jobs.max_epochs))
        worst, mean = RandomGreedy(constructions=10), RandomGreedy(constructions=10, epochs="mean")
        np.testing.assert_array_equal(simulate(sure, worst).log, simulate(sure, mean).log)
        np.testing.assert_array_equal(simulate(sure, make_policy("edf")).log, simulate(sure, edf_mean()).log)


def test_the_names_say_which_it_is():
    assert (edf_mean().name, random_greedy_mean().name) == ("edf:mean", "random-greedy:mean")
    assert (edf_mean().epochs, random_greedy_mean().epochs) == ("mean", "mean")
    for name in ("edf:conditional-mean", "random-greedy:conditional-mean"):
        assert make_policy(name).epochs == "conditional-mean"


A, B, C = range(3)


@pytest.mark.parametrize(("done", "expected"), [(0.0, 3.0), (1.0, 2.0), (2.0, 2.0), (3.0, 1.0), (4.0, 0.0)])
def test_the_conditional_mean_is_given_the_epochs_done(done, expected):
    """After one epoch 1 + ½ · 2 = 2 are expected; after two, which half of the jobs survive, again 2."""
    view = begin_run(three_jobs()).view
    view.board.jobs[A, at.EPOCHS] = done
    assert epochs_left(view, np.array([A]), "conditional-mean").tolist() == [expected]
    assert epochs_left(view, np.array([A]), "worst-case").tolist() == [4.0 - done]


@pytest.mark.parametrize(("done", "left"), [(0.0, 3.0), (1.0, 2.0), (2.5, 0.5), (3.0, 1.0), (3.5, 0.5)])
def test_the_published_mean_is_fixed_and_all_the_rest_once_it_is_passed(done, left):
    """A needs three epochs of four in the mean, for any epochs done; after three of them the fourth is assumed."""
    view = begin_run(three_jobs()).view
    view.board.jobs[A, at.EPOCHS] = done
    assert epochs_left(view, np.array([A]), "mean").tolist() == [left]


def test_the_jobs_come_in_the_order_asked_and_the_mean_is_what_rules_see():
    view = begin_run(three_jobs()).view
    assert epochs_left(view, np.array([C, A]), "mean").tolist() == [2.0, 3.0]
    view = begin_run(random_instance(4, span_s=0.0)).view
    active = ActiveJobs(view, view.active)
    assert epochs_left(view, view.active, "conditional-mean") == pytest.approx(active.expected_epochs_left, rel=1e-12)
    assert epochs_left(view, view.active, "worst-case") == pytest.approx(active.epochs_left, rel=1e-12)


def test_the_pressure_reckons_with_the_mean():
    """A needs 3 · ⅔ h on two GPUs and is due at 3.5 h; B and C need 1⅓ h."""
    view = begin_run(three_jobs()).view
    slack = by_pressure("mean")(ActiveJobs(view, view.active))
    assert slack / HOUR == pytest.approx([3.5 - 2.0, 10.0 - 4 / 3, 1.5 - 4 / 3])
