"""An interval of decision rounds: rounds at its multiples, and everything else at its own time."""

import gymnasium
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpusched_baselines import make_policy
from gpusched_env import GpuClusterEnv, GpuClusterVectorEnv, Instance, Job, load_scenario, make_instance, simulate
from gpusched_env.errors import InputError
from gpusched_env.model import Configuration, EpochDistribution, GpuType, Node
from gpusched_env.simulator import layout as at
from run_files import loaded_again

CERTAIN = EpochDistribution.certain()
KILOWATT = GpuType("V", gpu_power_w=1000.0, node_base_power_w=0.0, memory_gib=16.0, max_gpus_per_node=1)


def one_gpu(jobs: list[Job], interval_s: float) -> Instance:
    return Instance.from_jobs(
        [KILOWATT],
        [Node("V", 1)],
        jobs,
        [Configuration("V", 1)],
        energy_price_eur_per_kwh=1.0,
        pue=1.0,
        decision_interval_s=interval_s,
    )


def job(submission_s: float, epochs: float) -> Job:
    return Job(submission_s, 10_000.0, 0.0, epochs, CERTAIN, epochs, {Configuration("V", 1): 100.0})


def test_a_job_starts_at_the_next_multiple_and_ends_when_it_ends(tmp_path):
    """Jobs of 100 s and 200 s come at 10 s and 20 s; rounds are at 60 s, 180 s: the first ends at 160 s."""
    result = simulate(one_gpu([job(10.0, 1.0), job(20.0, 2.0)], 60.0), make_policy("edf"))
    assert result.start_s.tolist() == [60.0, 180.0]
    assert result.completion_s.tolist() == [160.0, 380.0]
    assert result.energy_eur == pytest.approx(300.0 / 3600.0)  # the GPU is off from 160 s to 180 s
    instance = one_gpu([job(0.0, 1.0)], 30.0)
    assert loaded_again(instance, tmp_path).decision_interval_s == 30.0


@pytest.mark.parametrize("interval_s", [-1.0, np.nan, np.inf, True])
def test_it_is_a_time_from_zero_on(interval_s):
    with pytest.raises(InputError, match="decision_interval_s"):
        one_gpu([job(0.0, 1.0)], interval_s)


@settings(deadline=None)  # the first run may compile
@given(
    interval_s=st.sampled_from([1.0, 7.5, 60.0, 1000.0]),
    seed=st.integers(0, 20),
    name=st.sampled_from(["edf", "sts", "sts-x"]),
)
def test_no_round_is_off_the_multiples(interval_s, seed, name):
    instance = make_instance(load_scenario("tiny").replace({"decision_interval_s": interval_s, "jobs.count": 12}), seed)
    times = []
    result = simulate(instance, make_policy(name), on_round=lambda state: times.append(state.board.clock[at.NOW]))
    assert np.allclose(np.remainder(times, interval_s), 0.0)
    starts = result.log[:, at.LOG_START]
    assert np.allclose(np.remainder(starts, interval_s), 0.0)


@pytest.mark.parametrize("scenario", ["pairs", "hosts"])
def test_a_job_is_as_fast_as_it_should_be_as_soon_as_a_neighbour_ends(scenario):
    """With an interval far below the time of an epoch the result is nearly that with a round at every event."""
    base = load_scenario(f"track:{scenario}").replace({"jobs.count": 25})
    costs = []
    for interval_s in (0.0, 0.001):
        instance = make_instance(base.replace({"decision_interval_s": interval_s}), 3)
        costs.append(simulate(instance, make_policy("edf")).total_eur)
    assert costs[1] == pytest.approx(costs[0], rel=1e-3)


def test_the_environment_and_vector_environment_have_the_same_rounds():
    """Every decision is at a multiple of the interval, in an environment and in its vector twin alike."""
    scenario = load_scenario("tiny").replace({"decision_interval_s": 120.0, "jobs.count": 10})
    single = gymnasium.make("gpusched_env/GpuCluster-v0", scenario=scenario)
    several = gymnasium.make_vec("gpusched_env/GpuCluster-v0", 2, scenario=scenario)
    seen, info = single.reset(seed=7)
    batch, infos = several.reset(seed=[7, 8])
    times, done = [], False
    while not done:
        for part in seen:
            np.testing.assert_array_equal(seen[part], batch[part][0])
        times.append(single.unwrapped.view.clock[at.NOW])
        action = int(np.flatnonzero(info["action_mask"])[-1])
        other = int(np.flatnonzero(infos["action_mask"][1])[0])
        seen, _, done, _, info = single.step(action)
        if not done:
            batch, *_, infos = several.step(np.array([action, other]))
    assert len(times) > 10
    assert np.remainder(times, 120.0).max() == 0.0


def late_before_it_can_start() -> Instance:
    """A job that comes at 10 s, is due at 20 s and starts at the first round, 300 s: 280 s late by then."""
    late = Job(10.0, 20.0, 0.01, 1.0, CERTAIN, 1.0, {Configuration("V", 1): 1000.0})
    return one_gpu([late], 300.0)


def costs_until_the_end(env: gymnasium.Env, act: object) -> tuple[np.ndarray, np.ndarray]:
    """Run an episode of one environment, or of the first of a vector; return rewards and costs of each step."""
    env.reset(seed=0)
    rewards, costs, over = [], [], False
    while not over:
        _, reward, ended, _, info = env.step(act)
        over, reward = (ended, reward) if np.ndim(ended) == 0 else (ended[0], reward[0])
        rewards.append(reward)
        costs.append([float(np.ravel(info[name])[0]) for name in ("energy_eur", "tardiness_eur")])
    return np.array(rewards), np.array(costs)


@pytest.mark.parametrize("reward", [None, "vector"])
def test_what_accrues_before_the_first_decision_is_in_the_first_reward(reward):
    """1 kW for 1,000 s at 1 €/kWh, and 280 + 1,000 s late at 0.01 €/s, in both environments."""
    one = GpuClusterEnv(instance=late_before_it_can_start(), reward=reward)
    rewards, costs = costs_until_the_end(one, 1)
    assert costs.sum(axis=0) == pytest.approx([1000.0 / 3600.0, 12.8])
    assert costs[0, 1] >= 2.8
    assert rewards.reshape(len(costs), -1).sum(axis=1) == pytest.approx(-costs.sum(axis=1))
    many = GpuClusterVectorEnv(2, instance=late_before_it_can_start(), reward=reward)
    many.reset(seed=0)
    many.step(np.array([1, 1]))  # and a reset in the middle of an episode
    for again in range(2):
        in_many, _ = costs_until_the_end(many, np.array([1, 1]))
        assert np.array_equal(in_many, rewards), again
