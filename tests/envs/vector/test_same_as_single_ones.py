"""Every array that the vector environment returns is that of gymnasium's over N single ones, bit for bit."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from gymnasium.vector import AutoresetMode
from hypothesis import given, settings
from hypothesis import strategies as st

from gpusched_env import load_scenario, make_instance
from gpusched_env.simulator import layout as at
from instances import with_switching
from refusals import refused
from vector_twins import Twins, all_kinds, assert_same, few_jobs, helped, priced, profiled, random_actions

MODES = list(AutoresetMode)
HOST_MEMORY = {"switching.model": "pipelined", "switching.pool_gib": 0.5, "switching.gpus_per_link": 2}
SIZES = [
    few_jobs(2, 3),
    few_jobs(1, 2),
    few_jobs(4, 5),
    few_jobs(3, 2, **{"epochs.family": "two-point", "epochs.library_size": 2}),
]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("scenarios", "settings_"),
    [
        pytest.param([few_jobs()], {}, id="one"),
        pytest.param(SIZES, {}, id="sizes"),
        pytest.param([all_kinds(), all_kinds(2, 6)], {"consolidation": True}, id="all kinds"),
        pytest.param([helped()], {}, id="helped"),
        pytest.param([few_jobs(6, **HOST_MEMORY)], {"shared_features": True}, id="host memory"),
        pytest.param([profiled()], {}, id="profiled"),
        pytest.param([priced()], {}, id="prices"),
        pytest.param([few_jobs(4)], {"preemption": False, "job_order": "due", "milestones": 0}, id="no preemption"),
        pytest.param([few_jobs(6, 3), few_jobs(2)], {"job_features": 3}, id="rows"),
        pytest.param([all_kinds(3)], {"due_date_timers": True, "milestones": 1, "reward_scale": 7.0}, id="timers"),
    ],
)
def test_steps_are_those_of_single_environments_through_several_episodes(mode, scenarios, settings_):
    twins = Twins(scenarios, 5, mode, **settings_)
    infos = twins.reset(seed=7)
    twins.play(120, np.random.default_rng(0), infos)
    assert twins.episodes >= 5


@settings(max_examples=10, deadline=None)
@given(
    mode=st.sampled_from(MODES),
    scenario=st.sampled_from([few_jobs(2), few_jobs(5), all_kinds(3, 4), *SIZES]),
    envs=st.integers(1, 3),
    preemption=st.booleans(),
    job_order=st.sampled_from(["pressure", "submission", "due", "weight"]),
    milestones=st.integers(0, 5),
    timers=st.booleans(),
    idle_review_s=st.sampled_from([900.0, 3600.0]),
    rows=st.integers(0, 4),
    seed=st.integers(0, 1000),
)
def test_whatever_the_settings_are(
    mode, scenario, envs, preemption, job_order, milestones, timers, idle_review_s, rows, seed
):
    twins = Twins(
        [scenario],
        envs,
        mode,
        preemption=preemption,
        job_order=job_order,
        milestones=milestones,
        due_date_timers=timers,
        consolidation=timers,
        idle_review_s=idle_review_s,
        job_features=rows,
    )
    infos = twins.reset(seed=seed)
    twins.play(40, np.random.default_rng(seed), infos)


def test_a_seed_for_each_environment_and_none_for_some():
    twins = Twins([few_jobs()], 3)
    twins.reset(seed=[5, 9, 5])
    infos = twins.reset(seed=[3, None, 4])
    twins.play(60, np.random.default_rng(1), infos)
    twins.reset()
    assert twins.native.np_random_seed == twins.sync.np_random_seed == (3, 9, 4)


def test_an_instance_is_replayed_in_all_environments_and_then_the_scenario_goes_on():
    twins = Twins([few_jobs()], 3)
    twins.reset(seed=1)
    infos = twins.reset(options={"instance": make_instance(few_jobs(6, 4), 99)})
    assert [instance.seed for instance in twins.native.instances] == [99] * 3
    twins.play(250, np.random.default_rng(2), infos)
    assert twins.episodes > 3


def test_switches_that_cost_by_distance_are_those_of_single_environments():
    twins = Twins([all_kinds()], 2, AutoresetMode.DISABLED, preemption=True, consolidation=True, due_date_timers=True)
    twins.reset(seed=1)
    twins.reset(options={"instance": with_switching(make_instance(all_kinds(10, 5), 99), 99)})
    rng = np.random.default_rng(2)
    for _ in range(400):
        twins.step(random_actions(twins.native.action_masks(), rng))
        if twins.ended.any():
            break
    assert all(instance.jobs.resume_s is not None for instance in twins.native.instances)
    assert twins.episodes > 0


def test_sums_over_the_jobs_of_a_round_do_not_outlive_the_episode():
    """Both episodes are at the first job of their first round, with five jobs at once."""
    twins = Twins([few_jobs()], 2)
    for seed in (1, 2):
        instance = make_instance(few_jobs(5), seed)
        together = replace(instance.jobs, submission_s=np.zeros(5))
        infos = twins.reset(options={"instance": replace(instance, jobs=together)})
    assert infos["time_s"].tolist() == [0.0, 0.0]


def test_an_instance_for_each_environment():
    instances = [make_instance(scenario, 40 + i) for i, scenario in enumerate(SIZES)]
    twins = Twins([few_jobs()], 4)
    mine, infos = twins.native.reset(seed=3, options={"instance": instances})
    twins.sync.reset(seed=3)
    singles = [env.reset(seed=3 + i, options={"instance": instances[i]}) for i, env in enumerate(twins.sync.envs)]
    for i, (observation, info) in enumerate(singles):
        assert_same({key: rows[i] for key, rows in mine.items()}, observation)
        assert_same(infos["action_mask"][i], info["action_mask"])
    twins.play(100, np.random.default_rng(3), infos)
    mixed = [None, instances[1], None, None]
    twins.native.reset(options={"instance": mixed})
    assert twins.native.instances[1] is instances[1]


def test_a_reset_of_some_leaves_the_others_where_they_are():
    twins = Twins([few_jobs()], 4, AutoresetMode.DISABLED)
    infos = twins.reset(seed=0)
    infos = twins.play(7, np.random.default_rng(4), infos)
    mask = np.array([True, False, False, True])
    options = {"reset_mask": mask}
    infos = twins.reset(seed=[11, 12, 13, 14], options=options)
    assert options["reset_mask"] is mask
    assert infos["_job"].tolist() == mask.tolist()
    twins.play(40, np.random.default_rng(5), infos)


def test_a_reward_of_your_own_is_asked_for_every_step_of_every_environment():
    calls: list[tuple[float, float]] = []

    def reward(energy_eur: float, tardiness_eur: float) -> float:
        calls.append((energy_eur, tardiness_eur))
        return -2.0 * energy_eur - np.sqrt(tardiness_eur)

    twins = Twins([few_jobs(2)], 3, reward=reward)
    infos = twins.reset(seed=0)
    twins.play(80, np.random.default_rng(6), infos)
    assert twins.episodes
    assert all(isinstance(value, float) for call in calls for value in call)
    assert len(calls) == 2 * (3 * 80 - twins.episodes + int(twins.ended.sum()))


def test_a_reward_that_is_no_number_is_named():
    env = Twins([few_jobs()], 2, reward=lambda energy_eur, tardiness_eur: float("nan")).native  # noqa: ARG005
    env.reset(seed=0)
    with refused("reward", float("nan")):
        env.step(np.zeros(2, int))


def test_what_a_step_returned_is_never_written_again():
    env = Twins([few_jobs(2)], 3, AutoresetMode.SAME_STEP).native
    rng, kept = np.random.default_rng(7), []
    env.reset(seed=0)
    for _ in range(60):
        stepped = env.step(random := np.array([rng.integers(env.single_action_space.n) for _ in range(3)]))
        assert random.flags.writeable
        kept.append((stepped, _copy(stepped)))
    for stepped, copied in kept:
        assert_same(stepped, copied)
    last = kept[-1][0]
    arrays = [*last[0].values(), *last[1:4], *(a for a in last[4].values() if isinstance(a, np.ndarray))]
    assert not any(np.shares_memory(a, b) for i, a in enumerate(arrays) for b in arrays[:i])


def test_larger_nodes_come_while_shared_gpus_are_in_use():
    """The columns of shared GPUs move apart then, in the middle of the other environments' rounds."""
    small, large = (
        few_jobs(5, 3, **{"cluster.gpus_per_node": gpus, "jobs.gpu_counts": [1, 2], "sharing.fractions": [0.5, 0.25]})
        for gpus in (2, 4)
    )
    twins = Twins([small], 4, AutoresetMode.DISABLED)
    infos = twins.play(20, np.random.default_rng(9), twins.reset(seed=3))
    assert any((view.nodes[:, at.NODE_COLUMNS :] > 0).any() for view in twins.native.views)
    mask = np.array([False, True, False, False])
    infos = twins.reset(options={"instance": make_instance(large, 5), "reset_mask": mask})
    twins.play(80, np.random.default_rng(10), infos)


def test_a_large_scenario_step_by_step():
    twins = Twins([load_scenario("default"), load_scenario("default").replace({"cluster.nodes": 120})], 3)
    twins.play(150, np.random.default_rng(8), twins.reset(seed=0))


def _copy(value):
    if isinstance(value, dict):
        return {key: _copy(part) for key, part in value.items()}
    if isinstance(value, tuple):
        return tuple(_copy(part) for part in value)
    if isinstance(value, np.ndarray) and value.dtype == np.object_:
        copied = np.full(len(value), None)
        copied[:] = [_copy(part) for part in value]
        return copied
    return value.copy() if isinstance(value, np.ndarray) else value
