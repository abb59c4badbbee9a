"""PufferLib's emulation of Gymnasium environments on the ids of tracks."""

import gymnasium
import numpy as np
import pytest

INSTALL = "PufferLib is not installed: pip install pufferlib (it compiles), or pip install --no-deps pufferlib-core"
pytestmark = pytest.mark.filterwarnings("default")
SMALL = {"settings": {"jobs.count": 5}}


@pytest.fixture
def emulation():
    pytest.importorskip("pufferlib", reason=INSTALL)
    return pytest.importorskip("pufferlib.emulation", reason=INSTALL)


@pytest.mark.parametrize("env_id", ["gpusched_env:gpusched_env/Slack-v0", "gpusched_env:gpusched_env/SlackFlat-v0"])
def test_an_emulated_environment_shows_the_same_numbers_and_pays_the_same(emulation, env_id):
    plain = gymnasium.make(env_id, **SMALL)
    env = emulation.GymnasiumPufferEnv(env_creator=gymnasium.make, env_args=[env_id], env_kwargs=SMALL)
    (emulated, _), (observation, info) = env.reset(seed=1_000), plain.reset(seed=1_000)
    rng, over = np.random.default_rng(0), False
    while not over:
        np.testing.assert_array_equal(emulated.ravel(), gymnasium.spaces.flatten(plain.observation_space, observation))
        action = rng.choice(np.flatnonzero(info["action_mask"]))
        emulated, paid, done, _, _ = env.step(action)
        observation, reward, over, _, info = plain.step(action)
        assert (paid, done) == (pytest.approx(reward), over)


def test_its_vector_environment_ends_episodes_and_begins_new_ones(emulation):
    vector = pytest.importorskip("pufferlib.vector", reason=INSTALL)

    def make(buf=None, seed=0):
        settings = {
            "env_args": ["gpusched_env:gpusched_env/SlackFlat-v0"],
            "env_kwargs": SMALL,
            "buf": buf,
            "seed": seed,
        }
        return emulation.GymnasiumPufferEnv(env_creator=gymnasium.make, **settings)

    envs = vector.make(make, num_envs=2, backend=vector.Serial)
    envs.reset(seed=1_000)
    rng, ended, returns = np.random.default_rng(0), 0, 0.0
    for _ in range(300):
        observations, rewards, terminals, _, _ = envs.step(rng.integers(envs.single_action_space.n, size=2))
        assert np.abs(observations).max() <= 1.0
        ended += int(terminals.sum())
        returns += float(rewards.sum())
    envs.close()
    assert ended > 2
    assert returns < 0.0
