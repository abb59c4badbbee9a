"""Run a random policy of TorchRL with masks on a track."""

import torch
from torchrl.data import Binary
from torchrl.envs import ActionMask, GymEnv, TransformedEnv, check_env_specs
from torchrl.envs.libs.gym import default_info_dict_reader

base = GymEnv("gpusched_env:gpusched_env/SlackFlat-v0", categorical_action_encoding=True, settings={"jobs.count": 5})
mask = Binary(base.action_spec.space.n, dtype=torch.int8)
base.set_info_dict_reader(default_info_dict_reader(["action_mask"], spec={"action_mask": mask}))
env = TransformedEnv(base, ActionMask())
check_env_specs(env)
episode = env.rollout(1_000)
allowed = episode["action_mask"].gather(1, episode["action"].unsqueeze(1))
print(bool(episode["next", "done"][-1]), bool(allowed.all()))
