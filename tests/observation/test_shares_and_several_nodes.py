"""Masks and options where GPUs can be shared and jobs can take two nodes, worked out by hand.

Nodes 0 and 1 have four GPUs, node 2 has one. A GPU has 16 GiB. Jobs 0, 1 and 2 come at 0 and are asked in this order;
jobs 0 and 1 fit a quarter of a GPU, job 2 needs 5 GiB and does not. The most GPUs of any configuration are 8.
"""

from __future__ import annotations

import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from gpusched_env import EpochDistribution, GpuClusterEnv, Instance, Job, Node, Scenario, load_scenario
from gpusched_env.observation import OPTION_FEATURES
from instances import without_idle_power

ONE, TWO, HALF, QUARTER, BOTH = range(5)  # the configurations; actions are one more
PLACEABLE, GPUS, SHARE, LEFT, IN_USE = 0, 9, 10, 13, 14


def scenario() -> Scenario:
    settings = {
        "cluster.gpu_types": ("T4",),
        "cluster.nodes": 3,
        "jobs.gpu_counts": (1, 2),
        "jobs.node_counts": (1, 2),
        "sharing.fractions": (0.5, 0.25),
    }
    return load_scenario("tiny").replace(settings)


def start(preemption: bool = True) -> tuple[GpuClusterEnv, np.ndarray, np.ndarray]:
    """Begin an episode; give the rows of its options and its mask."""
    env = GpuClusterEnv(scenario(), preemption=preemption, job_order="submission", milestones=0)
    assert [c.name for c in env.configurations] == ["T4x1", "T4x2", "T4x0.5", "T4x0.25", "2*T4x4"]
    certain = EpochDistribution.from_masses([1.0])
    seconds = dict.fromkeys(env.configurations, 10.0)
    jobs = [Job(0.0, 100.0, 0.01, 10.0, certain, 10.0, seconds, memory_gib=gib) for gib in (4.0, 4.0, 5.0)]
    nodes = [Node("T4", 4), Node("T4", 4), Node("T4", 1)]
    instance = Instance.from_jobs(without_idle_power(env.instance.gpu_types), nodes, jobs, env.configurations)
    observation, info = env.reset(options={"instance": instance})
    return env, rows_of(observation), info["action_mask"]


def rows_of(observation: dict[str, np.ndarray]) -> np.ndarray:
    return observation["options"].reshape(-1, len(OPTION_FEATURES))


def act(env: GpuClusterEnv, configuration: int) -> tuple[np.ndarray, np.ndarray]:
    observation, _, _, _, info = env.step(configuration + 1)
    return rows_of(observation), info["action_mask"]


def test_the_features_tested_here_are_those_meant():
    assert OPTION_FEATURES[PLACEABLE] == "1 if it can be placed now"
    assert OPTION_FEATURES[GPUS] == "its GPUs / the most GPUs of any configuration"
    assert OPTION_FEATURES[SHARE] == "share of each GPU"
    assert OPTION_FEATURES[LEFT].startswith("GPUs left on the emptiest node of its type after it")
    assert OPTION_FEATURES[IN_USE] == "1 if it fits on a node that is in use"


def test_in_an_empty_cluster_all_can_be_placed_and_a_share_opens_a_gpu():
    """Of the four GPUs of a node, three are left after one GPU or a share; after both whole nodes, node 2's GPU."""
    _, rows, mask = start()
    assert mask.tolist() == [1, 1, 1, 1, 1, 1]
    assert rows[:, PLACEABLE].tolist() == [1, 1, 1, 1, 1]
    assert rows[:, GPUS].tolist() == [1 / 8, 2 / 8, 0.5 / 8, 0.25 / 8, 8 / 8]
    assert rows[:, SHARE].tolist() == [1, 1, 0.5, 0.25, 1]
    assert rows[:, LEFT].tolist() == [3 / 8, 2 / 8, 3 / 8, 3 / 8, 1 / 8]
    assert rows[:, IN_USE].tolist() == [0, 0, 0, 0, 0]


def test_a_share_that_joins_an_open_gpu_leaves_the_nodes_as_they_are():
    """Job 0 has half of the GPU of node 2, the fullest node: shares fit beside it, and both other nodes stay whole."""
    env, *_ = start()
    rows, mask = act(env, HALF)
    assert mask.tolist() == [1, 1, 1, 1, 1, 1]
    assert rows[:, LEFT].tolist() == [3 / 8, 2 / 8, 4 / 8, 4 / 8, 0]
    assert rows[:, IN_USE].tolist() == [0, 0, 1, 1, 0]


def test_in_a_full_cluster_only_a_share_fits_that_has_room_on_an_open_gpu_and_memory():
    """Job 1 has nodes 0 and 1; job 2 fits the other half of node 2's GPU, but no quarter: too much memory."""
    env, *_ = start()
    act(env, HALF)
    rows, mask = act(env, BOTH)
    assert mask.tolist() == [1, 0, 0, 1, 0, 0]
    assert rows[:, PLACEABLE].tolist() == [0, 0, 1, 0, 0]
    assert rows[:, LEFT].tolist() == [0, 0, 0, 0, 0]
    assert rows[:, IN_USE].tolist() == [0, 0, 1, 0, 0]
    assert rows[QUARTER].tolist() == [0.0] * len(OPTION_FEATURES)


def test_one_node_that_is_in_use_is_no_whole_one():
    """Job 1 has a GPU of node 0: one whole node is left, and GPUs fit on node 0 beside it."""
    env, *_ = start()
    act(env, HALF)
    rows, mask = act(env, ONE)
    assert mask.tolist() == [1, 1, 1, 1, 0, 0]
    assert rows[:, PLACEABLE].tolist() == [1, 1, 1, 0, 0]
    assert rows[[ONE, TWO, HALF], LEFT].tolist() == [3 / 8, 2 / 8, 4 / 8]
    assert rows[:, IN_USE].tolist() == [1, 1, 1, 0, 0]


@pytest.mark.parametrize(("held", "fits"), [(QUARTER, 1), (HALF, 1), (ONE, 0)])
def test_a_share_fits_beside_shares_and_not_on_a_whole_gpu(held: int, fits: int):
    """Job 0 has `held` on node 2, and job 1 both other nodes: half a GPU fits beside a share."""
    env, *_ = start()
    act(env, held)
    assert act(env, BOTH)[1].tolist() == [1, 0, 0, fits, 0, 0]


def test_a_gpu_that_is_shared_by_two_halves_is_full():
    """Jobs 0 and 1 have both halves of the GPU of node 2: a share of job 2 opens another GPU, of node 0."""
    env, *_ = start()
    act(env, HALF)
    rows, mask = act(env, HALF)
    assert mask.tolist() == [1, 1, 1, 1, 0, 1]
    assert rows[[ONE, TWO, HALF, BOTH], LEFT].tolist() == [3 / 8, 2 / 8, 3 / 8, 0]
    assert rows[:, IN_USE].tolist() == [0, 0, 0, 0, 0]


@pytest.mark.parametrize("preemption", [True, False])
def test_observations_stay_in_their_space_whatever_is_shared_and_taken(preemption: bool):
    kinds = {"cluster.nodes": 6, "jobs.count": 25, "jobs.node_counts": (1, 2)}
    shares = {"sharing.fractions": (0.5, 0.25), "due_dates.slack": 0.1}
    env = GpuClusterEnv(load_scenario("tiny").replace(kinds | shares), preemption=preemption)
    chosen = set()
    for seed in range(4):
        rng = np.random.default_rng(seed)
        observation, info = env.reset(seed=seed)
        over = False
        while not over:
            assert env.observation_space.contains(observation)
            action = any_action(env, info["action_mask"], rng)
            if info["action_mask"][action]:
                chosen.add(env.configurations[action - 1].kind if action > 0 else "wait")
            observation, _, over, _, info = env.step(action)
        assert env.observation_space.contains(observation)
    assert chosen == {"wait", "single-node", "shared", "multi-node"}


def any_action(env: GpuClusterEnv, mask: np.ndarray, rng: np.random.Generator) -> int:
    """Choose a kind and then one of its configurations; one time in four any action, allowed or not."""
    by_kind: dict[str, list[int]] = {}
    for action in np.flatnonzero(mask).tolist():
        by_kind.setdefault(env.configurations[action - 1].kind if action > 0 else "wait", []).append(action)
    if rng.random() < 0.25:
        return int(rng.integers(len(mask)))
    return int(rng.choice(by_kind[rng.choice(sorted(by_kind))]))


def test_the_checker_of_gymnasium_finds_nothing():
    check_env(GpuClusterEnv(scenario(), render_mode="ansi"), skip_render_check=True)
