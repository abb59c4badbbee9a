"""MO-Gymnasium's own `make` and wrappers on an environment with vector rewards."""

import numpy as np
import pytest

mo_gymnasium = pytest.importorskip("mo_gymnasium", reason="MO-Gymnasium is not installed: pip install mo-gymnasium")

ENV = "gpusched_env:gpusched_env/GpuClusterFlat-v0"


def test_its_wrappers_weigh_and_record_the_vectors():
    given = {"scenario": "tiny", "reward": "vector"}
    weights = np.array([1.0, 2.0, 0.0])
    plain = mo_gymnasium.make(ENV, **given)
    weighed = mo_gymnasium.wrappers.LinearReward(mo_gymnasium.make(ENV, **given), weight=weights)
    recorded = mo_gymnasium.wrappers.MORecordEpisodeStatistics(mo_gymnasium.make(ENV, **given))
    rng, rewards, over = np.random.default_rng(0), [], False
    _, info = plain.reset(seed=0)
    for env in (weighed, recorded):
        env.reset(seed=0)
    while not over:
        action = int(rng.choice(np.flatnonzero(info["action_mask"])))
        _, reward, terminated, truncated, info = plain.step(action)
        rewards.append(reward)
        assert weighed.step(action)[1] == pytest.approx(weights @ reward)
        last = recorded.step(action)[4]
        over = terminated or truncated
    np.testing.assert_allclose(last["episode"]["r"], np.sum(rewards, axis=0), rtol=1e-5)


def test_its_vector_environment_takes_them():
    envs = mo_gymnasium.wrappers.vector.MOSyncVectorEnv(
        [lambda: mo_gymnasium.make(ENV, scenario="tiny", reward="vector") for _ in range(2)]
    )
    envs.reset(seed=0)
    assert envs.step(np.zeros(2, dtype=np.int64))[1].shape == (2, 3)
