"""Evaluate agents on a real Slurm: one that ships, and one that Stable-Baselines3 trains in the simulator first.

Slurm runs on this machine, with made-up GPUs and made-up trainings at 600 times their speed; it needs the packages
slurmctld, slurmd, munge (`bash scripts/install_slurm.sh`). Run `python examples/evaluate_on_slurm.py --jobs 4`. It is
slow: four jobs take about a minute.
"""

from __future__ import annotations

import argparse
import tempfile
from dataclasses import asdict
from typing import TYPE_CHECKING

import gymnasium
from sb3_contrib import MaskablePPO

from gpusched_agents.any_policy import make_any_policy
from gpusched_env import InputError, Result, rollout
from gpusched_env.envs.rollout import asking_of
from gpusched_operations.live.emulated import EmulatedCluster

if TYPE_CHECKING:
    from typing import Any

LIVE = "gpusched_operations:gpusched_env/LiveSlurm-v0"


def evaluate_model(model: MaskablePPO, seed: int, **settings: Any) -> Result:
    """Run an episode on Slurm with a model that was trained on a flat environment."""
    env = gymnasium.make(LIVE, flat=True, **settings)
    observation, info = env.reset(seed=seed)
    over = False
    while not over:
        action, _ = model.predict(observation, action_masks=info["action_mask"], deterministic=True)
        observation, _, terminated, truncated, info = env.step(action)
        over = terminated or truncated
    result = env.unwrapped.result("ppo", seed)
    env.close()
    return result


def evaluate_policy(name: str, seed: int, **settings: Any) -> Result:
    """Run an episode on Slurm with a reference policy or a shipped agent."""
    policy = make_any_policy(name)
    env = gymnasium.make(LIVE, **asdict(asking_of(policy)), **settings)
    result, _ = rollout(env, policy, seed=seed)
    env.close()
    return result


def main() -> None:
    """Compare them on the same jobs."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--jobs", type=int, default=4, help="jobs of the workload")
    parser.add_argument("--steps", type=int, default=2_000, help="steps of the training in the simulator")
    parser.add_argument("--seed", type=int, default=0, help="seed of the workload")
    args = parser.parse_args()
    settings = {"jobs.count": args.jobs, "arrivals.lambda_s": 1500.0}
    simulated = gymnasium.make("gpusched_env:gpusched_env/GpuClusterFlat-v0", scenario="tiny", settings=settings)
    model = MaskablePPO("MlpPolicy", simulated, n_steps=256, seed=0).learn(args.steps)
    print(f"{'agent':16}{'energy €':>10}{'tardiness €':>13}{'mean completion h':>19}{'switches':>10}")
    with tempfile.TemporaryDirectory() as folder, EmulatedCluster(folder, "v100:8x1,a100:8x1,t4:4x1") as slurm:
        live = {"scenario": "tiny", "settings": settings, "conf": slurm}
        for r in (evaluate_policy("agent:default", args.seed, **live), evaluate_model(model, args.seed, **live)):
            hours = r.mean_completion_s / 3600.0
            print(f"{r.policy:16}{r.energy_eur:10.2f}{r.tardiness_eur:13.2f}{hours:19.2f}{r.switches.sum():10d}")


if __name__ == "__main__":
    try:
        main()
    except (InputError, gymnasium.error.Error) as error:
        raise SystemExit(f"error: {error}") from None
