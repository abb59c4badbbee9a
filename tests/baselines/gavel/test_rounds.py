"""Gavel's rounds, by hand, and properties of every run."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from first_rounds import begin_run
from gpusched_baselines import Gavel, make_policy, policy_names
from gpusched_baselines.registry import ablation_names
from gpusched_env import Configuration, GpuType, Instance, Job, Node, simulate
from gpusched_env.simulator import State
from gpusched_env.simulator import layout as at
from instances import CERTAIN, random_instance
from refusals import refused

ONE = Configuration("V", 1)
NAMES = [name for name in policy_names() if name.startswith("gavel")]


def on_one_gpu(*jobs: tuple[float, float]) -> Instance:
    made = [Job(begin, 1e9, 1.0, 1.0, CERTAIN, 1.0, {ONE: seconds}) for begin, seconds in jobs]
    return Instance.from_jobs([GpuType("V", 100.0, 0.0, 16.0, 1)], [Node("V", 1)], made)


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


def test_over_long_times_jobs_get_their_shares():
    instance = on_one_gpu((0.0, 360_000.0), (0.0, 360_000.0))
    assert np.mean(turns(instance, Gavel(two_thirds_to_the_second))[:300]) == pytest.approx(2 / 3, abs=0.01)


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
    options = len(gpus) if name == "gavel-cost" else len(most)

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
