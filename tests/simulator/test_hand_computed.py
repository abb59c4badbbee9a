"""Three jobs on two nodes, worked out by hand for every policy.

One GPU type: 100 W base, 900 W a GPU, 1 €/kWh, PUE 1. So r(1) = 1.0 €/h and r(2) = 1.9 €/h. Node 0 has two GPUs, node 1
has one. An epoch takes 1 h on one GPU (x1) and 40 min on two (x2); alone on a node it costs 1.0 € and 1.2667 €.
All jobs are submitted at 0.

    job   max epochs   needed   S                        due      weight
    A     4            2        1 on [0,2), ½ on [2,4)   3.5 h    0.001 €/s
    B     2            2        1                        10 h     0.002 €/s
    C     2            2        1                        1.5 h    0.003 €/s
"""

import numpy as np
import pytest

from gpusched_baselines import (
    DispatchPolicy,
    LocalSearch,
    RandomGreedy,
    Sts,
    clairvoyant_bounds,
    make_policy,
    non_clairvoyant_bounds,
)
from gpusched_env import Result, simulate
from instances import HOUR, three_jobs


def run(name: str) -> Result:
    return simulate(three_jobs(), make_policy(name))


def check(result: Result, energy_eur: float, tardiness_eur: float, completion_h: list[float]) -> None:
    assert result.energy_eur == pytest.approx(energy_eur, abs=1e-9)
    assert result.tardiness_eur == pytest.approx(tardiness_eur, abs=1e-9)
    assert result.completion_s / HOUR == pytest.approx(completion_h, abs=1e-9)
    assert result.job_energy_eur.sum() == pytest.approx(energy_eur, abs=1e-9)


def test_fifo():
    """A: x1 would take 4 h > 3.5 h, so x2, on node 0, until 1⅓ h. B: x1, on node 1 (fewest free GPUs), until 2 h.

    C waits until 1⅓ h; it misses 1.5 h anyhow, so the fastest, x2 on node 0, until 2⅔ h: 4,200 s late, 12.60 €.
    Node 0: 2⅔ h at 1.9; node 1: 2 h at 1.0; together 7.0667 €.
    """
    check(run("fifo"), 8 / 3 * 1.9 + 2.0, 12.6, [4 / 3, 2.0, 8 / 3])


def test_edf():
    """C: x2 on node 0, until 1⅓ h. A: only x1 on node 1 fits (it would miss 3.5 h at worst), until 2 h.

    B: at 1⅓ h, x1 on node 0, until 3⅓ h. Node 0: 1⅓ h at 1.9 and 2 h at 1.0; node 1: 2 h at 1.0; 6.5333 €.
    """
    check(run("edf"), 4 / 3 * 1.9 + 2.0 + 2.0, 0.0, [2.0, 10 / 3, 4 / 3])


def test_priority():
    """C: x2 on node 0, until 1⅓ h. B: x1 on node 1, until 2 h. A: at 1⅓ h nothing meets 3.5 h at worst (x2: 4 h).

    So A takes the fastest, x2 on node 0, and needs two epochs of its four: until 2⅔ h, in time. 7.0667 €.
    """
    check(run("priority"), 8 / 3 * 1.9 + 2.0, 0.0, [8 / 3, 2.0, 4 / 3])


def test_greedy():
    """Pressures: C -⅙ h, A -⅚ h, B -8⅔ h. C: x2 on node 0. A: x1 on node 1. B waits.

    At 1⅓ h C is done; A (1⅓ of 4 epochs done) leads: x1 would end at 4 h, x2 at 3.11 h, so x2 on node 0, until
    1⅓ + ⅔·⅔ = 1.7778 h. B: x1 on node 1, until 3⅓ h; from 1.7778 h on it is asked again and keeps its node.
    Node 0: 1⅓ h and 4/9 h at 1.9; node 1: 3⅓ h at 1.0; 6.7111 €.
    """
    result = run("greedy")
    check(result, (4 / 3 + 4 / 9) * 1.9 + 10 / 3, 0.0, [16 / 9, 10 / 3, 4 / 3])
    assert result.switches.tolist() == [1, 0, 0]


@pytest.mark.parametrize(
    "policy",
    [
        make_policy("edf:preemptive"),  # due dates order these jobs as pressure does
        make_policy("greedy:fill"),  # no GPU of a node in use is idle
        RandomGreedy(),
        LocalSearch(constructions=0),  # whatever makes a round cheaper makes a job late that is not, or slower that is
        make_policy("local-search"),
    ],
    ids=lambda policy: policy.name,
)
def test_these_policies_do_as_greedy_here(policy):
    """A job has two configurations and two nodes. Random Greedy takes the best of either, in any order of the jobs.

    The best by the proxy at 0 has C on node 0, as Greedy has it. At 1⅓ h A must take x2, on node 0, and B x1, on node
    1, whoever goes first.
    """
    for seed in range(10):
        assert np.array_equal(simulate(three_jobs(), policy, seed=seed).log, run("greedy").log)


def test_random_greedy_fill():
    """At 0 Greedy's round is the best by the proxy: 2.9 €/h until C ends at 1⅓ h, 3.8667, no job late.

    At 1⅓ h, for A (2⅔ epochs left at worst) and B (2 left), Greedy's round has the proxy 2.9 · 1.7778 = 5.1556. A on x1
    on node 1 beside B on x2 on node 0: 2.9 · 1⅓ = 3.8667. Both on x1 on node 0: 1.9 · 2 = 3.8, the best. With
    many constructions the last is found: A needs ⅔ epoch more, until 2 h; B stays until 3⅓ h, and gets the second
    GPU when A has gone, since idle GPUs go to the job that gains speed: 1⅓ epochs left at 2 h, until 2.8889 h.
    (Then x1 alone would be cheaper by the proxy, but no construction leaves a GPU idle that speeds up a job.)
    Node 0: 1⅓ + ⅔ h at 1.9, then 8/9 h at 1.9; node 1: 1⅓ h at 1.0.
    """
    constructions_of_a_round = 8  # nodes · jobs · most GPUs, at 1⅓ h
    assert constructions_of_a_round < RandomGreedy().constructions
    outcomes = {round(simulate(three_jobs(), RandomGreedy(fill=True), seed=seed).energy_eur, 6) for seed in range(40)}
    best = round((4 / 3 + 2 / 3 + 8 / 9) * 1.9 + 4 / 3, 6)
    greedy = round((4 / 3 + 4 / 9) * 1.9 + 10 / 3, 6)
    assert {best, greedy} <= outcomes


def test_edf_mean():
    """C: x2 on node 0. A: only x1 on node 1 fits; it expects 3 h and thinks itself in time. Then as EDF."""
    check(run("edf:mean"), 4 / 3 * 1.9 + 2.0 + 2.0, 0.0, [2.0, 10 / 3, 4 / 3])


def test_fifo_on_mean_times_takes_the_cheap_configuration_that_may_be_late():
    """A expects 3 epochs, so x1 is in time for it: on node 1. B: x1 on node 0. C: x1 is left, until 2 h: 5.40 €."""
    result = simulate(three_jobs(), DispatchPolicy("fifo-mean", "submission", epochs="mean"))
    check(result, 2.0 * 1.9 + 2.0 * 1.0, 5.4, [2.0, 2.0, 2.0])


def test_random_greedy_fill_on_mean_times_without_constructions():
    """At 0 as Greedy: C on x2 on node 0, A on x1 on node 1. At 1⅓ h A, 1⅓ epochs done, expects ⅔ + ½ · 2 = 1⅔ more.

    On x1 it would end at 3 h, in time (at worst at 4 h, so Greedy gives it x2). It stays; B takes x1 on node 0 and the
    idle GPU, until 2⅔ h. Node 0: 2⅔ h at 1.9; node 1: until A ends at 2 h.
    """
    result = simulate(three_jobs(), RandomGreedy(constructions=0, epochs="conditional-mean", fill=True))
    check(result, 8 / 3 * 1.9 + 2.0, 0.0, [2.0, 8 / 3, 4 / 3])


@pytest.mark.parametrize("name", ["random-greedy:mean", "random-greedy:conditional-mean"])
def test_random_greedy_mean(name):
    """At 0 as Greedy. At 1⅓ h A, 1⅓ epochs done, needs 3 - 1⅓ more by the fixed mean, and as many by the other.

    On x1 it ends at 3 h, in time, and stays on node 1; B takes x1 on node 0. Then as EDF on mean times.
    """
    result = simulate(three_jobs(), make_policy(name))
    check(result, 4 / 3 * 1.9 + 2.0 + 2.0, 0.0, [2.0, 10 / 3, 4 / 3])


def test_random_greedy_fill_on_mean_times():
    """At 1⅓ h the proxies are, by the mean: A on x1 beside B on x2, as above, 2.9 · 1⅓ = 3.8667; A on x2 on node 0 and
    B on x1, 2.9 · 10/9 = 3.2222; both on x1 on node 0, 1.9 · 1⅔ = 3.1667, the best.

    With the last A ends at 2 h, and B, 1⅓ epochs left, gets the second GPU until 2.8889 h, or goes to node 1 by chance.
    With the one before it goes on as Greedy: 6.7111 €.
    """
    policy = RandomGreedy(epochs="conditional-mean", fill=True)
    outcomes = {round(simulate(three_jobs(), policy, seed=seed).energy_eur, 6) for seed in range(40)}
    stays, moves = round((2.0 + 8 / 9) * 1.9 + 4 / 3, 6), round(2.0 * 1.9 + 4 / 3 + 4 / 3, 6)
    greedy = round((4 / 3 + 4 / 9) * 1.9 + 10 / 3, 6)
    assert {stays, greedy} <= outcomes <= {stays, moves, greedy}


def test_local_search_with_fill():
    """Until 2 h as Random Greedy with `fill`. If A ends then, B is alone, 1⅓ epochs left, and gets both GPUs of
    node 0, since no construction leaves a GPU idle that speeds it up: 8/9 · 1.9 = 1.6889 €, 6.8222 € in all.

    Local Search moves B to x1, with time to spare, for 1⅓ · 1.0 €: 2 h at 1.9 and 1⅓ h at 1.0 on node 0, and node 1
    until 1⅓ h. Or, if A ended before, it goes on as Greedy.
    """
    policy = LocalSearch(fill=True)
    outcomes = {round(simulate(three_jobs(), policy, seed=seed).energy_eur, 6) for seed in range(40)}
    best = round(2.0 * 1.9 + 4 / 3 + 4 / 3, 6)
    greedy = round((4 / 3 + 4 / 9) * 1.9 + 10 / 3, 6)
    assert {best, greedy} <= outcomes
    assert round((2.0 + 8 / 9) * 1.9 + 4 / 3, 6) not in outcomes


def test_path_relinking():
    """The guidance, in h/€: C on x2 and A on x1, as Greedy, 2 / 2.5333 + 4 / 5.8 = 1.4791. A on x2 and B on x1,
    4 / 5.0667 + 2 / 2.0 = 1.7895. All three on x1, with C alone on node 1, 4 / 5.6 + 2 / 1.9 + 2 / 7.4 = 2.0372;
    with A alone there 4 / 5.8 + 2 / 1.9 + 2 / 7.3 = 2.0163; with B alone 4 / 5.6 + 2 / 2.0 + 2 / 7.3 = 1.9883.

    So three jobs that run are better than two, even if C is late. From any two of the elite all three come about, as
    jobs that fit are placed when a path ends. All end at 2 h, C half an hour late.
    """
    for seed in range(10):
        result = simulate(three_jobs(), make_policy("path-relinking"), seed=seed)
        check(result, 2.0 * 1.9 + 2.0 * 1.0, 5.4, [2.0, 2.0, 2.0])


def test_sts():
    """C must save 0.5 h: x1 for half an epoch, then x2 (timer at 0.5 h). A must save 0.5 h: x1 for 2.5 epochs.

    B has time: x1 throughout. By pressure: C on node 1, A and B on node 0, all on x1. At 0.5 h C goes on with x2 on
    node 0; A keeps x1, on node 1; B finds no GPU and is paused. C ends at 1.5 h, in time to the second. B resumes with
    x1 on node 0. A ends at 2 h, before its own timer. B, with 1.5 epochs to go at 1.5 h, ends at 3 h.
    0.5 h at 1.9 + 1.0, 1 h at 1.9 + 1.0, 0.5 h at 1.0 + 1.0, 1 h at 1.0: 6.35 €.
    """
    result = run("sts")
    check(result, 1.5 * 2.9 + 0.5 * 2.0 + 1.0, 0.0, [2.0, 3.0, 1.5])
    # A: 0.5 h at half of 1.9, then 1.5 h alone; C: 0.5 h alone, then 1 h at 1.9; B: the rest.
    assert result.job_energy_eur == pytest.approx([0.475 + 1.5, 0.475 + 1.5, 0.5 + 1.9], abs=1e-9)
    assert result.switches.tolist() == [1, 2, 1]


def test_sts_with_the_published_rank_is_the_same_here_since_there_is_one_gpu_type():
    assert np.array_equal(run("sts").log, simulate(three_jobs(), Sts("published")).log)


def test_bounds():
    """Least rates: x1 in the full node 0, 1.9/2 = 0.95 €/h; x2 1.9 €/h. Per epoch 0.95 € and 1.2667 €.

    Clairvoyant. A, B: two epochs on x1, 1.90 €. C: must save 0.5 h, each hour for 0.95 €: 1.90 + 0.475 = 2.375 €.
    Non-clairvoyant. A: x1 for 2.5 epochs, then x2: 2·0.95 + ½·(0.5·0.95 + 1.5·1.2667) = 3.0875 €. B, C as before.
    """
    assert clairvoyant_bounds(three_jobs()) == pytest.approx([1.9, 1.9, 2.375])
    assert non_clairvoyant_bounds(three_jobs()) == pytest.approx([3.0875, 1.9, 2.375])
