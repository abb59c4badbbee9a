"""Stable-Baselines3 and sb3-contrib train on the ids of tracks, by their names alone."""

import gymnasium
import numpy as np
import pytest

torch = pytest.importorskip("torch", reason='pip install "gpusched-env[agents]"')
sb3 = pytest.importorskip("stable_baselines3", reason='pip install "gpusched-env[agents]"')
contrib = pytest.importorskip("sb3_contrib", reason='pip install "gpusched-env[agents]"')
env_util = pytest.importorskip("stable_baselines3.common.env_util", reason='pip install "gpusched-env[agents]"')

FLAT = "gpusched_env:gpusched_env/SlackFlat-v0"
ADAPTATION = "gpusched_env:gpusched_env/SlackAdaptation-v0"
OF_AN_EPISODE = ("invalid_actions", "total_energy_eur", "total_tardiness_eur")
SMALL = {"settings": {"jobs.count": 5}}
STEPS = {"n_steps": 64, "batch_size": 64, "n_epochs": 2}
ON_FLAT = {
    "PPO": (sb3.PPO, STEPS),
    "A2C": (sb3.A2C, {}),
    "DQN": (sb3.DQN, {"learning_starts": 50, "buffer_size": 500}),
    "MaskablePPO": (contrib.MaskablePPO, STEPS),
}
OFF_POLICY = {"learning_starts": 50, "buffer_size": 500}
ON_ADAPTATION = {
    "PPO": (sb3.PPO, STEPS),
    "A2C": (sb3.A2C, {}),
    "SAC": (sb3.SAC, OFF_POLICY),
    "TD3": (sb3.TD3, OFF_POLICY),
}


@pytest.fixture(autouse=True)
def one_thread():
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def train(algorithm, env_id, settings, keywords=()):
    """Return the model after some hundred steps, and the episodes that it has ended."""
    envs = env_util.make_vec_env(
        env_id, n_envs=2, seed=1_000, env_kwargs=SMALL, monitor_kwargs={"info_keywords": keywords}
    )
    model = algorithm("MlpPolicy", envs, seed=0, device="cpu", **settings)
    model.learn(256)
    return model, list(model.ep_info_buffer)


@pytest.mark.parametrize("name", ON_FLAT)
def test_an_algorithm_trains_on_the_flat_id_of_a_track_and_learns_the_same_again(name):
    algorithm, settings = ON_FLAT[name]
    model, episodes = train(algorithm, FLAT, settings, OF_AN_EPISODE)
    scale = gymnasium.make(FLAT).unwrapped.reward_scale
    assert len(episodes) > 1
    for episode in episodes:
        cost = episode["total_energy_eur"] + episode["total_tardiness_eur"]
        assert episode["r"] == pytest.approx(-cost / scale, rel=1e-4, abs=1e-5)
    # Only MaskablePPO looks for masks, and it finds them by itself.
    assert (sum(episode["invalid_actions"] for episode in episodes) == 0) == (name == "MaskablePPO")
    again, same = train(algorithm, FLAT, settings, OF_AN_EPISODE)
    assert [(one["r"], one["l"]) for one in same] == [(one["r"], one["l"]) for one in episodes]
    observation = gymnasium.make(FLAT, **SMALL).reset(seed=3)[0]
    assert np.array_equal(
        model.predict(observation, deterministic=True)[0], again.predict(observation, deterministic=True)[0]
    )


@pytest.mark.parametrize("name", ON_ADAPTATION)
def test_an_algorithm_trains_on_the_adaptation_id_of_a_track_and_learns_the_same_again(name):
    algorithm, settings = ON_ADAPTATION[name]
    _, episodes = train(algorithm, ADAPTATION, settings)
    assert len(episodes) > 1
    assert all(np.isfinite(episode["r"]) for episode in episodes)
    _, same = train(algorithm, ADAPTATION, settings)
    assert [(one["r"], one["l"]) for one in same] == [(one["r"], one["l"]) for one in episodes]
