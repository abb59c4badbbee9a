"""TorchRL's `GymEnv` on the ids of tracks."""

import gymnasium
import numpy as np
import pytest

torch = pytest.importorskip("torch", reason='pip install "gpusched-env[agents]"')
torchrl = pytest.importorskip("torchrl.envs", reason="TorchRL is not installed: pip install torchrl")
default_info_dict_reader = pytest.importorskip("torchrl.envs.libs.gym").default_info_dict_reader
Binary = pytest.importorskip("torchrl.data").Binary

pytestmark = pytest.mark.filterwarnings("default")
FLAT = "gpusched_env:gpusched_env/SlackFlat-v0"
SMALL = {"settings": {"jobs.count": 5}}


@pytest.mark.parametrize("env_id", [FLAT, "gpusched_env:gpusched_env/Slack-v0"])
def test_its_checker_finds_nothing_wrong(env_id):
    torchrl.check_env_specs(torchrl.GymEnv(env_id, **SMALL))


def test_its_rollout_is_that_of_gymnasium_and_its_masks_keep_it_from_what_cannot_be_placed():
    base, plain = torchrl.GymEnv(FLAT, categorical_action_encoding=True, **SMALL), gymnasium.make(FLAT, **SMALL)
    mask = Binary(int(plain.action_space.n), dtype=torch.int8)
    base.set_info_dict_reader(default_info_dict_reader(["action_mask"], spec={"action_mask": mask}))
    env = torchrl.TransformedEnv(base, torchrl.ActionMask())
    torch.manual_seed(0)
    rolled = env.rollout(1_000, auto_reset=False, tensordict=env.reset(seed=1_000))
    assert rolled["next", "terminated"].sum() == 1
    observations, rewards = [plain.reset(seed=1_000)[0]], []
    for action in rolled["action"].tolist():
        observation, reward, *_, info = plain.step(action)
        observations.append(observation)
        rewards.append(reward)
    np.testing.assert_array_equal(rolled["observation"].numpy(), observations[:-1])
    np.testing.assert_allclose(rolled["next", "reward"].squeeze(1).numpy(), rewards, rtol=1e-6)
    assert info["invalid_actions"] == 0
