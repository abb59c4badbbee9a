"""Record episodes of a policy as a Minari dataset, and read it back (extra `minari`).

Run `python examples/record_minari.py --track slack --policy edf --episodes 20`. MINARI_DATASETS_PATH names the folder.
"""

from __future__ import annotations

import argparse
from dataclasses import asdict

import gymnasium
import minari
import numpy as np
from minari.data_collector import EpisodeBuffer

from gpusched_baselines import make_policy
from gpusched_env.envs.rollout import asking_of
from gpusched_env.simulator import JobPolicy
from gpusched_env.workload import load_track


def episode(env: gymnasium.Env, policy: JobPolicy, seed: int) -> EpisodeBuffer:
    """Run the episode of a seed: T actions and rewards, T + 1 observations and action masks."""
    observation, info = env.reset(seed=seed)
    inner, seen, masks, steps, over = env.unwrapped, [observation], [info["action_mask"]], [], False
    while not over:
        choice = policy.choose(inner.view, inner.job)
        inner.view.apply(inner.job, choice)  # the node and the timer, which no action holds
        observation, reward, terminated, truncated, info = env.step(choice.config + 1)
        seen.append(observation)
        masks.append(info["action_mask"])
        steps.append((choice.config + 1, reward, terminated, truncated))
        over = terminated or truncated
    actions, *rest = map(list, zip(*steps, strict=True))
    return EpisodeBuffer(None, seed, None, np.array(seen), np.array(actions), *rest, {"action_mask": np.array(masks)})


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--track", default="slack")
    parser.add_argument("--policy", default="edf", help="a policy that decides job by job")
    parser.add_argument("--jobs", type=int, default=60, help="jobs of a workload")
    parser.add_argument("--episodes", type=int, default=20)
    args = parser.parse_args()
    policy, name, settings = make_policy(args.policy), f"{args.track}/{args.policy}-v0", {"jobs.count": args.jobs}
    place = {"scenario": args.track, "settings": settings}
    env = gymnasium.make("gpusched_env:gpusched_env/GpuClusterFlat-v0", **place, **asdict(asking_of(policy)))
    seeds = load_track(args.track).seeds("training")[: args.episodes]
    recorded = [episode(env, policy, seed) for seed in seeds]
    minari.create_dataset_from_buffers(name, recorded, env, algorithm_name=args.policy)
    dataset = minari.load_dataset(name)
    returns = [each.rewards.sum() for each in dataset.iterate_episodes()]
    print(f"{name}: {len(returns)} episodes, {dataset.total_steps} steps, mean return {np.mean(returns):.3f}")
