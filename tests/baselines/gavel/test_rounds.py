"""Gavel's rounds, by hand, and properties of every run."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from first_rounds import begin_run
from gavel_demands import demand
from gpusched_baselines import Gavel, make_policy, policy_names
from gpusched_baselines.gavel import StepSpeeds
from gpusched_baselines.gavel.cost import LEAST, priced
from gpusched_baselines.gavel.gandiva import random_pairs
from gpusched_baselines.gavel.packed import TABLE, GavelPacked
from gpusched_baselines.gavel.pairs import JobPairs, packed_las
from gpusched_baselines.gavel.round import columns
from gpusched_baselines.registry import ablation_names
from gpusched_env import Configuration, GpuType, Instance, Job, Node, simulate
from gpusched_env.simulator import State
from gpusched_env.simulator import layout as at
from gpusched_reproductions.systems.gavel_workload import cluster, drawn_jobs, pair_slowdowns, throughputs
from instances import CERTAIN, random_instance
from refusals import refused

ONE = Configuration("V", 1)
NAMES = [name for name in policy_names() if name.startswith("gavel")]


def on_one_gpu(*jobs: tuple[float, float], configurations=(ONE,)) -> Instance:
    made = [
        Job(begin, 1e9, 1.0, 1.0, CERTAIN, 1.0, dict.fromkeys(configurations, seconds), application=str(j))
        for j, (begin, seconds) in enumerate(jobs)
    ]
    return Instance.from_jobs([GpuType("V", 100.0, 0.0, 16.0, 1)], [Node("V", 1)], made, configurations=configurations)


def two_thirds_to_the_second(demand, _rng):
    return np.array([[1 / 3], [2 / 3]])[demand.job]


def turns(instance: Instance, policy) -> list[int]:
    frame = simulate(instance, policy).intervals()
    rounds = []
    for job, start, end in zip(frame["job"], frame["start_s"], frame["end_s"], strict=True):
        rounds += [int(job)] * round((end - start) / 360.0)
    return rounds


def test_the_job_farthest_behind_its_share_runs_next():
    """Time got begins at 180 s each; x · all / own: 2/3, 4/3 | 4/3, 8/9 | 2/3, 4/3 | 8/9, 16/15 | 10/9, 20/21."""
    instance = on_one_gpu((0.0, 36_000.0), (0.0, 36_000.0))
    assert turns(instance, Gavel(two_thirds_to_the_second))[:5] == [1, 0, 1, 1, 0]


def steps_of(*seconds: float, configurations: int = 1) -> StepSpeeds:
    speed = 1.0 / np.array(seconds)
    return StepSpeeds(np.column_stack([speed] * configurations), np.tile(speed[:, None], (1, 1, len(speed))))


FEW_PAIRS = StepSpeeds(np.ones((2, 1)), np.ones((1, 1, 1)))


def half_to_each(demand, _rng):
    return np.full((len(demand.job), 1), 0.5)


def test_a_round_counts_as_the_time_of_the_whole_steps_in_it():
    """Steps of 200 and 90 s: rounds count 200 and 360 s; times got, in turn: 380, 540, 580, 900, 780, 980, 1260 s."""
    instance = on_one_gpu((0.0, 36_000.0), (0.0, 36_000.0))
    assert turns(instance, Gavel(half_to_each, reset_s=1e9))[:7] == [0, 1, 0, 1, 0, 1, 0]
    policy = Gavel(half_to_each, reset_s=1e9, steps=steps_of(200.0, 90.0))
    assert turns(instance, policy)[:7] == [0, 1, 0, 1, 0, 0, 1]


@pytest.mark.parametrize(("step_s", "expected_s"), [(100.0, 300.0), (90.0, 360.0), (400.0, 360.0)])
def test_three_steps_of_100_s_count_300_s_and_a_round_without_a_whole_step_counts_in_full(step_s, expected_s):
    state = begin_run(on_one_gpu((0.0, 36_000.0)), memory_columns=columns(1, 1))
    Gavel(half_to_each, steps=steps_of(step_s)).decide(state.view, np.random.default_rng(0))
    assert state.view.memory[0, 1] - 180.0 == pytest.approx(expected_s)


def test_a_round_counts_for_a_pair_as_the_longer_of_the_times_of_its_jobs():
    """Steps of 100 and 80 s: 300 and 320 s of 360."""
    both = (ONE, Configuration("V", 1, share=0.5))
    instance = on_one_gpu((0.0, 36_000.0), (0.0, 36_000.0), configurations=both)
    for steps, expected_s in ((None, 360.0), (steps_of(100.0, 80.0, configurations=2), 320.0)):
        policy = GavelPacked(steps=steps)
        state = begin_run(instance, memory_columns=policy.memory_columns(instance))
        policy.decide(state.view, np.random.default_rng(0))
        assert state.view.memory[0, columns(1, 1) + TABLE + 3] - 180.0 == pytest.approx(expected_s)


def test_speeds_of_steps_that_are_negative_or_too_few_are_refused():
    with refused("steps.alone", -1.0):
        StepSpeeds(np.array([[-1.0]]), np.zeros((1, 1, 1)))
    two = on_one_gpu((0.0, 36_000.0), (0.0, 36_000.0))
    for policy, field in ((Gavel(steps=steps_of(90.0)), "steps.alone"), (GavelPacked(steps=FEW_PAIRS), "steps.paired")):
        state = begin_run(two, memory_columns=policy.memory_columns(two))
        with refused(field):
            policy.decide(state.view, np.random.default_rng(0))


def test_a_job_that_arrives_in_a_round_waits_and_a_gpu_that_is_left_stays_idle_until_its_end():
    """Job 0 ends at 1,260 s, in the round to 1,440 s; job 1, submitted at 2 s, is in a program only then."""
    instance = on_one_gpu((1.0, 1259.0), (2.0, 100.0))
    result = simulate(instance, Gavel())
    begins = result.intervals()["start_s"].to_list()
    assert begins[0] == 1.0
    assert result.completion_s[0] == pytest.approx(1260.0)
    # Nothing runs at 1,260 s, so a round begins, but the next reset is due 1,920 s after the one at 1 s only.
    assert begins[-1] == pytest.approx(1260.0 + 2 * 360.0)


def test_shares_are_solved_for_at_most_so_often():
    asked = []

    def shares(demand, _rng):
        asked.append(len(demand.job))
        return np.ones((len(demand.job), 1)) / len(demand.job)

    instance = on_one_gpu(*[(100.0 * k + 1.0, 36_000.0) for k in range(30)])
    simulate(instance, Gavel(shares, reset_s=1000.0))
    assert asked[:4] == [1, 11, 22, 30]  # at 1, 1081, 2161 and 3241 s


def test_jobs_without_a_share_get_what_is_left_unless_they_must_not():
    instance = on_one_gpu((1.0, 3600.0), (1.0, 3600.0))

    def none_but_the_first(demand, _rng):
        return np.eye(len(demand.job))[:, :1]

    assert simulate(instance, Gavel(none_but_the_first)).completion_s.tolist() == [3601.0, 7201.0]
    with_two = replace(instance, nodes=(Node("V", 1), Node("V", 1)))
    assert simulate(with_two, Gavel(none_but_the_first)).completion_s.tolist() == [3601.0, 3601.0]

    begun = simulate(with_two, Gavel(none_but_the_first, idle_too=False, reset_s=1e6))
    # The program is not solved again before 1,000,000 s, so the second job has no share until then.
    assert begun.completion_s[0] == 3601.0
    assert begun.completion_s[1] > 1e6


@pytest.mark.parametrize("name", [*NAMES, *(n for name in NAMES for n in ablation_names(name))])
def test_every_name_is_that_of_its_policy(name):
    assert make_policy(name).name == name


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=8, deadline=None)
@given(seed=st.integers(0, 10_000), kinds=st.booleans(), restart_s=st.sampled_from([0.0, 7.5]))
def test_no_gpu_is_held_twice_every_job_ends_and_shares_are_shares(name, seed, kinds, restart_s):
    instance = random_instance(seed, jobs=8, restart_s=restart_s, kinds=kinds)
    gpus = np.array([c.gpus for c in instance.configurations])
    of_type = [np.array([c.gpu_type == v.name for c in instance.configurations]) for v in instance.gpu_types]
    most = [sum(n.gpus for n in instance.nodes if n.gpu_type == v.name) for v in instance.gpu_types]
    policy = make_policy(name)
    options = len(gpus) if name == "gavel:cost" else len(most)

    def look(state: State) -> None:
        held = state.view.jobs[state.view.active, at.CONFIG].astype(int)
        held = held[held >= 0]
        for mine, capacity in zip(of_type, most, strict=True):
            assert gpus[held][mine[held]].sum() <= capacity + 1e-9
        shares = state.view.memory[state.view.active, :options]
        assert np.all(shares >= 0.0)
        assert np.all(shares.sum(axis=1) <= 1.0 + 1e-9)

    result = simulate(instance, policy, on_round=look)
    assert np.all(np.isfinite(result.completion_s))


def test_a_run_with_too_little_memory_is_refused():
    instance = random_instance(1, types=1, nodes=1)
    state = begin_run(instance, memory_columns=3)
    with refused("memory_columns", 3):
        Gavel().decide(state.view, np.random.default_rng(0))


def elastic(due_in_s, weight=10.0, jobs=1, capacity=2.0):
    return demand(
        [[1, 1.8]] * jobs,
        [[1, 2]] * jobs,
        (capacity,),
        kind=[0, 0],
        rate=[[1, 2]] * jobs,
        left=[10.0] * jobs,
        due_in_s=[due_in_s] * jobs if np.isscalar(due_in_s) else due_in_s,
        tardiness=[weight] * jobs if np.isscalar(weight) else weight,
    )


def test_a_job_with_time_runs_as_slowly_as_it_may_where_it_is_cheapest_and_one_that_needs_more_speed_mixes():
    np.testing.assert_allclose(priced(elastic(20.0), 0.0), [[0.5, 0.0]], atol=1e-6)
    np.testing.assert_allclose(priced(elastic(30.0), 10.0), [[0.5, 0.0]], atol=1e-6)
    # x + y = 1 and x + 1.8 y = 10 / 8.
    np.testing.assert_allclose(priced(elastic(8.0), 0.0), [[0.6875, 0.3125]], atol=1e-6)


@pytest.mark.parametrize(("weight", "expected"), [(1.0, [0.0, 1.0]), (0.1, [1.0, 0.0])])
def test_a_job_that_must_be_late_runs_faster_only_if_that_is_worth_its_energy(weight, expected):
    """An epoch more costs 1 / 0.8 €; left for later it costs 1 € and ω / 1.8 €."""
    np.testing.assert_allclose(priced(elastic(-5.0, weight), 0.0), [expected], atol=1e-6)


def test_where_gpus_are_short_the_job_whose_tardiness_costs_least_gives_way_and_the_other_keeps_its_due_date():
    x = priced(elastic([10.0, 10.0], [1.0, 5.0], jobs=2, capacity=1.0), 0.0)
    np.testing.assert_allclose(x, [[0, 0], [1, 0]], atol=1e-6)


def test_even_a_job_that_is_due_in_ages_and_weighs_nothing_gets_a_little():
    x = priced(elastic(1e12, 0.0), 0.0)
    assert x[0] @ [1, 1.8] == pytest.approx(LEAST * 1.8, rel=1e-4)
    free = elastic(1e12, 0.0)
    free.rate[:] = 0.0
    assert priced(free, 0.0)[0] @ [1, 1.8] > 0.0


def pairs(slowdown, alone, application=None) -> JobPairs:
    alone = np.array(alone, dtype=float)
    own = np.arange(len(alone)) if application is None else np.array(application)
    return JobPairs(np.zeros(alone.shape, dtype=np.int64), alone, own, np.array(slowdown, dtype=float))


def test_two_jobs_share_the_gpu_if_they_slow_each_other_little_or_take_turns_and_those_that_do_not_fit_are_no_pair():
    """In turn each has half; together each runs at 0.8."""
    of = demand([[1], [1]], capacity=(1,))
    alone, packed = packed_las(of, pairs([[[1.25] * 2] * 2], [[1], [1]]))
    assert alone == pytest.approx(0.0, abs=1e-6)
    assert packed[0, 1, 0] == pytest.approx(1.0, abs=1e-6)
    assert np.count_nonzero(packed) == 1
    for slowdown in (2.5, np.inf):
        alone, packed = packed_las(demand([[1], [1]], capacity=(1,)), pairs([[[slowdown] * 2] * 2], [[1], [1]]))
        assert alone[:, 0] == pytest.approx([0.5, 0.5], abs=1e-5)
        assert packed.max() < 1e-5


@pytest.mark.parametrize("seed", range(4))
def test_the_optimum_is_that_of_the_linear_program(seed):
    rng = np.random.default_rng(seed)
    speed, kind = rng.uniform(0.5, 4.0, (3, 2)), np.array([0, 1, 1, 2, 2, 2])
    of, own = demand(speed[kind], capacity=(1, 2)), pairs(rng.uniform(1.0, 2.5, (2, 3, 3)), speed[kind], kind)
    alone, packed = packed_las(of, own)
    one, other = np.triu_indices(6, 1)
    columns = [(j, j, v) for j in range(6) for v in range(2)]
    columns += [(i, j, v) for i, j in zip(one, other, strict=True) for v in range(2)]
    rows, level, got = np.zeros((14, len(columns) + 1)), 1.0 / of.proportional, np.zeros(6)
    for c, (i, j, v) in enumerate(columns):
        for a, b in {(i, j), (j, i)}:
            fast = of.speed[a, v] if i == j else own.speed(np.array([a]), np.array([b]))[0, v]
            rows[a, c], rows[6 + a, c] = -fast * level[a], 1.0
            got[a] += fast * level[a] * (alone[i, v] if i == j else packed[i, j, v])
        rows[12 + v, c] = 1.0
    rows[:6, -1] = 1.0
    best = -linprog(-np.eye(len(columns) + 1)[-1], A_ub=rows, b_ub=[0] * 6 + [1] * 6 + [1, 2]).fun
    assert got.min() == pytest.approx(best, rel=1e-5)
    assert np.all(alone.sum(axis=1) + packed.sum(axis=(1, 2)) + packed.sum(axis=(0, 2)) <= 1.0 + 1e-9)


def test_random_pairs_stay_while_they_gain_and_are_drawn_only_where_there_are_too_few_gpus():
    own, rng = pairs([[[1.5] * 4] * 4], [[1]] * 4), np.random.default_rng(0)
    few = demand([[1]] * 4, capacity=(4,))
    alone, packed, partner = random_pairs(few, own, np.full(4, -1), rng)
    assert alone[:, 0] == pytest.approx([1.0] * 4)
    assert packed.sum() == 0.0
    many = demand([[1]] * 4, capacity=(2,))
    alone, packed, partner = random_pairs(many, own, partner, rng)
    assert sorted(partner) == [0, 1, 2, 3]
    assert packed.sum() == pytest.approx(2.0)
    assert np.array_equal(random_pairs(many, own, partner, rng)[2], partner)
    losing = pairs([[[2.5] * 4] * 4], [[1]] * 4)
    drawn = random_pairs(many, losing, np.array([1, 0, 3, 2]), np.random.default_rng(1))[2]
    assert not np.array_equal(drawn, [1, 0, 3, 2])


def test_slow_downs_are_those_of_whole_mini_batches():
    models = list(throughputs())
    a3c = next(i for i, (name, _) in enumerate(models) if name == "A3C")
    assert pair_slowdowns().min() >= 1.0
    assert pair_slowdowns()[0, a3c].min() < 1.3


@pytest.mark.parametrize("name", ["gavel:las-packed", "gandiva"])
def test_rounds_place_pairs_on_one_gpu(name):
    instance = cluster(drawn_jobs(0, 260, None, False), "gavel", pairs=True)
    result = simulate(instance, make_policy(name))
    rows = result.intervals()
    names = {configuration.name for configuration in instance.configurations if configuration.kind == "shared"}
    assert sum(name in names for name in rows["configuration"]) > 100
    assert np.isfinite(result.completion_s).all()
