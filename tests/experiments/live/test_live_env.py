"""The live environment shows and pays what the simulated one does, step by step, where a simulated run is the cluster."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from gpusched_env import GpuClusterEnv, Tenant, load_scenario, make_instance
from gpusched_experiments.live.env import LiveEnv
from instances import by_utilisation, random_instance, with_switching
from limited import with_power_limits
from simulated_cluster import SimulatedCluster

if TYPE_CHECKING:
    from gpusched_env import Instance


def assert_alike(one: Any, other: Any, said: str) -> None:
    """Compare observations: float32 numbers, which both computed from times that may differ in the last bit."""
    assert one.keys() == other.keys()
    for name in one:
        assert one[name].dtype == other[name].dtype
        np.testing.assert_allclose(other[name], one[name], rtol=0.0, atol=1e-6, err_msg=f"{said}: {name}")


def run_both(instance: Instance, seed: int, **settings: Any) -> tuple[GpuClusterEnv, LiveEnv]:
    """Take the same steps in both; every observation, mask, reward and info is the same."""
    simulated = GpuClusterEnv(instance=instance, **settings)
    live = LiveEnv(SimulatedCluster(), instance=instance, **settings)
    assert (simulated.observation_space, simulated.action_space) == (live.observation_space, live.action_space)
    rng = np.random.default_rng(seed)
    (seen, info), (seen_live, info_live) = simulated.reset(seed=0), live.reset(seed=0)
    over, steps = False, 0
    while True:
        said = f"step {steps}"
        assert_alike(seen, seen_live, said)
        assert info.keys() <= info_live.keys()
        for name, value in info.items():
            np.testing.assert_allclose(info_live[name], value, rtol=1e-9, atol=1e-9, err_msg=f"{said}: {name}")
        np.testing.assert_array_equal(live.action_masks(), simulated.action_masks())
        if over:
            return simulated, live
        allowed = np.flatnonzero(info["action_mask"])
        action = int(rng.choice(allowed) if rng.random() < 0.9 else rng.integers(simulated.action_space.n))
        seen, reward, terminated, truncated, info = simulated.step(action)
        seen_live, reward_live, *ends, info_live = live.step(action)
        steps += 1
        assert reward_live == pytest.approx(reward, rel=1e-9, abs=1e-9), said
        assert ends == [terminated, truncated], said
        over = terminated or truncated


WAYS = [
    {},
    {"milestones": 0, "job_order": "due"},
    {"preemption": False},
    {"due_date_timers": True, "consolidation": True, "milestones": 3},
]


@pytest.mark.parametrize("settings", WAYS)
@pytest.mark.parametrize("seed", range(2))
def test_every_step_is_that_of_the_simulated_environment(seed, settings):
    instance = random_instance(seed, jobs=8, span_s=1500.0, restart_s=20.0)
    simulated, live = run_both(instance, seed, **settings)
    assert simulated.view.now_s > 0.0
    assert live.cluster.answers


