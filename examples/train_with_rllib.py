"""Train PPO of RLlib with masks on a track (`pip install "ray[rllib]"` asks for Gymnasium 1.2.2; 1.4 works)."""

from typing import Any

import gymnasium
import numpy as np
import ray
from gymnasium import spaces
from ray.rllib.algorithms.ppo import PPOConfig
from ray.rllib.core.rl_module.rl_module import RLModuleSpec
from ray.rllib.examples.rl_modules.classes.action_masking_rlm import ActionMaskingTorchRLModule
from ray.tune.registry import register_env


class MaskedObservation(gymnasium.ObservationWrapper):
    """Shows the mask beside the observation."""

    def __init__(self, env: gymnasium.Env) -> None:
        super().__init__(env)
        mask = spaces.Box(0.0, 1.0, (int(env.action_space.n),), np.float32)
        self.observation_space = spaces.Dict({"observations": env.observation_space, "action_mask": mask})

    def observation(self, observation: Any) -> dict[str, Any]:
        """Return both."""
        return {"observations": observation, "action_mask": self.unwrapped.action_masks().astype(np.float32)}


def make_cluster(settings: dict[str, Any]) -> gymnasium.Env:
    """Make the environment for these arguments."""
    return MaskedObservation(gymnasium.make("gpusched_env:gpusched_env/SlackFlat-v0", **settings))


ray.init("local", num_cpus=1, include_dashboard=False, log_to_driver=False)
register_env("gpu-cluster", make_cluster)
config = (
    PPOConfig()
    .environment("gpu-cluster", env_config={"settings": {"jobs.count": 5}})
    .env_runners(num_env_runners=0)  # in this process; else in so many others
    .rl_module(
        rl_module_spec=RLModuleSpec(module_class=ActionMaskingTorchRLModule, model_config={"fcnet_hiddens": [64, 64]})
    )
    .training(train_batch_size=200, minibatch_size=100, num_epochs=1)
)
algorithm = config.build_algo()
result = algorithm.train()["env_runners"]
print(result["num_episodes"] > 1, result["episode_return_mean"] < 0.0)
algorithm.stop()
ray.shutdown()
