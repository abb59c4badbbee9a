"""Train an agent that decides job by job with MaskablePPO: it imitates a policy, and then learns by itself.

Run `python examples/train_maskable_ppo.py`; it needs the extra `agents`. sb3:runs/maskable/learnt.zip is then a policy.
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path

import numpy as np
import torch
from sb3_contrib import MaskablePPO

from gpusched_agents import SchedulerVecEnv, make_any_policy, make_sb3_vec_env, save_sb3
from gpusched_baselines import make_policy
from gpusched_env import make_instance, simulate
from gpusched_env.workload import load_track

ID, ENVS, ROLLOUT, EPOCHS, BATCH = "gpusched_env:gpusched_env/Slack-v0", 8, 64, 4, 256
TRAINING = 100_000  # the first training seed of a track
POLICY = {"net_arch": [256, 256], "activation_fn": torch.nn.ReLU}
LEARNING = {"n_steps": 256, "batch_size": 256, "n_epochs": 4, "clip_range": 0.1, "target_kl": 0.02, "gamma": 0.999}


def imitate(model: MaskablePPO, envs: SchedulerVecEnv, expert: str, decisions: int) -> None:
    """Learn the expert's action in the states that the model reaches (DAgger: Ross, Gordon and Bagnell, 2011)."""
    choose, seen, generator = make_policy(expert).choose, envs.reset(), np.random.default_rng(TRAINING)
    optimizer = torch.optim.Adam(model.policy.parameters(), lr=1e-3)
    for done in range(0, decisions, ENVS * ROLLOUT):
        observations, labels, masks = [], [], []
        for _ in range(ROLLOUT):
            observations.append(seen)
            masks.append(envs.action_masks())
            pairs = zip(envs.vector.views, envs.vector.jobs.tolist(), strict=True)
            labels.append(np.array([choose(view, job).config + 1 for view, job in pairs]))
            own, _ = model.predict(seen, deterministic=True, action_masks=masks[-1])
            taught = generator.random(ENVS) < (0.5 if done < 0.2 * decisions else 0.0)
            seen, *_ = envs.step(np.where(taught, labels[-1], own))
        known = {name: torch.as_tensor(np.concatenate([one[name] for one in observations])) for name in seen}
        actions, allowed = torch.as_tensor(np.concatenate(labels)), np.concatenate(masks)
        optimizer.param_groups[0]["lr"] = 1e-3 * (1.0 - 0.9 * done / decisions)
        for _ in range(EPOCHS):
            for batch in np.array_split(generator.permutation(len(actions)), max(1, len(actions) // BATCH)):
                part = {name: array[batch] for name, array in known.items()}
                chances = model.policy.get_distribution(part, action_masks=allowed[batch])
                loss = -chances.log_prob(actions[batch]).mean()
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()


def main() -> None:
    """Print the mean cost [€] of EDF, of STS-X, of the imitator and of the agent in the end on the test workloads."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--expert", default="sts-x", help="a policy that decides job by job")
    parser.add_argument("--imitated", type=int, default=400_000, help="decisions of the imitation")
    parser.add_argument("--steps", type=int, default=100_000, help="decisions of MaskablePPO")
    parser.add_argument("--seeds", type=int, default=20, help="test workloads")
    parser.add_argument("--out", type=Path, default=Path("runs/maskable"))
    args = parser.parse_args()
    torch.set_num_threads(1)  # the networks are small: more threads only wait for each other
    envs = make_sb3_vec_env(ID, ENVS)
    model = MaskablePPO("MultiInputPolicy", envs, 1e-4, seed=TRAINING, policy_kwargs=POLICY, device="cpu", **LEARNING)
    args.out.mkdir(parents=True, exist_ok=True)
    imitate(model, envs, args.expert, args.imitated)
    save_sb3(model, args.out / "imitated.zip")
    save_sb3(model.learn(args.steps), args.out / "learnt.zip")
    warnings.simplefilter("ignore")  # both archives are our own
    track = load_track("slack")
    instances = [make_instance(track.scenario, seed) for seed in track.seeds("test")[: args.seeds]]
    for name in ("edf", "sts-x", f"sb3:{args.out}/imitated.zip", f"sb3:{args.out}/learnt.zip"):
        costs = [simulate(instance, make_any_policy(name), record=False).total_eur for instance in instances]
        print(f"{name:40}{np.mean(costs):8.2f}", flush=True)


if __name__ == "__main__":
    main()
