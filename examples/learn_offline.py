"""Learn from recorded episodes with d3rlpy: behaviour cloning (BC) and conservative Q-learning (CQL), discrete.

Run `python examples/learn_offline.py --track slack --jobs 60 --steps 2500`; episodes are recorded once, and read
again by later runs. d3rlpy asks for gymnasium 1.0.0 exactly, and runs with 1.4, so install it alone:

pip install -c constraints.txt '.[agents,minari]' structlog dataclasses-json scikit-learn colorama gym
pip install --no-deps d3rlpy==2.8.1
"""

from __future__ import annotations

import argparse
import logging
import os
from pathlib import Path

import d3rlpy
import minari
import numpy as np
import structlog
import torch
from scipy.stats import t

from gpusched_agents import evaluate
from gpusched_baselines import make_policy
from gpusched_env import make_instance, simulate
from gpusched_env.envs.registration import track_id
from gpusched_env.workload import load_track
from gpusched_experiments.recording.dataset import record
from gpusched_experiments.recording.plan import recording_of

RECORDED = ("sts-x", "edf", "random")
COMMON = {"batch_size": 256, "learning_rate": 1e-3}
ALGORITHMS = {
    "BC": d3rlpy.algos.DiscreteBCConfig(**COMMON, beta=0.0),
    "CQL": d3rlpy.algos.DiscreteCQLConfig(**COMMON, gamma=0.99, target_update_interval=500),
}


class GreedyModel:
    """Takes the action with the best score among those that can be placed."""

    def __init__(self, algorithm: d3rlpy.algos.DiscreteBC | d3rlpy.algos.DiscreteCQL) -> None:
        modules = algorithm.impl.modules
        self.scores = getattr(modules, "imitator", None) or modules.q_funcs[0]

    def predict(self, observation: np.ndarray, *_: object, action_masks: np.ndarray) -> tuple[int, None]:
        """Return the action, as models of Stable-Baselines3 do."""
        with torch.no_grad():
            found = self.scores(torch.from_numpy(observation[None]))
        scores = found.logits if hasattr(found, "logits") else found.q_value
        return int(np.where(action_masks, scores[0].numpy(), -np.inf).argmax()), None


def read(names: list[str]) -> d3rlpy.dataset.ReplayBuffer:
    """Return the episodes of these datasets."""
    episodes = [
        d3rlpy.dataset.Episode(e.observations[:-1], e.actions[:, None], np.float32(e.rewards)[:, None], terminated=True)
        for name in names
        for e in minari.load_dataset(name)
    ]
    return d3rlpy.dataset.create_infinite_replay_buffer(episodes)


def show(name: str, costs: list[float], forced: int = 0) -> None:
    """Print the mean of the trainings [€] with its 95 % interval, and the decisions that a rule had to take."""
    interval = ""
    if len(costs) > 1:
        half = t.ppf(0.975, len(costs) - 1) * np.std(costs, ddof=1) / np.sqrt(len(costs))
        interval = f"[{np.mean(costs) - half:.2f}, {np.mean(costs) + half:.2f}]"
    print(f"{name:28}{np.mean(costs):10.2f}{interval:>22}{forced:10d}", flush=True)


def main() -> None:
    """Print a line per policy and algorithm, all on the same held-out workloads."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--track", default="slack")
    parser.add_argument("--jobs", type=int, default=60, help="jobs of a workload")
    parser.add_argument("--episodes", type=int, default=20, help="episodes recorded of each policy")
    parser.add_argument("--steps", type=int, default=2_500, help="updates of a training")
    parser.add_argument("--trainings", type=int, default=3)
    parser.add_argument("--seeds", type=int, default=10, help="held-out workloads")
    parser.add_argument("--seed", type=int, default=0, help="seed of the first training")
    parser.add_argument("--data", type=Path, default=Path("runs/offline"), help="folder of the datasets")
    args = parser.parse_args()
    torch.set_num_threads(1)
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))
    track, settings = load_track(args.track), {"jobs.count": args.jobs}
    folder = args.data / f"{args.track}-{args.jobs}-{args.episodes}"
    os.environ["MINARI_DATASETS_PATH"] = str(folder.absolute())
    if not folder.exists():
        seeds = track.seeds("training")[: args.episodes]
        recordings = [recording_of(name) for name in RECORDED]
        record(recordings, seeds, folder, track_id(args.track, "Flat"), {"settings": settings}, args.track)
    env = minari.load_dataset(f"{args.track}/sts-x-v0").recover_environment().unwrapped
    held_out = track.seeds("test")[: args.seeds]
    print(f"{'':28}{'mean €':>10}{'95 % of trainings':>22}{'forced':>10}")
    for name in RECORDED[:2]:
        workloads = [make_instance(env.scenario, seed) for seed in held_out]
        show(name, [float(np.mean([simulate(one, make_policy(name)).total_eur for one in workloads]))])
    for of in (RECORDED[:1], RECORDED):
        data = read([f"{args.track}/{name}-v0" for name in of])
        for name, config in ALGORITHMS.items():
            costs, forced = [], 0
            for seed in range(args.seed, args.seed + args.trainings):
                d3rlpy.seed(seed)
                algorithm = config.create()
                quiet = {"show_progress": False, "logger_adapter": d3rlpy.logging.NoopAdapterFactory()}
                algorithm.fit(data, n_steps=args.steps, n_steps_per_epoch=args.steps, **quiet)
                runs = evaluate(GreedyModel(algorithm), env, held_out)
                costs.append(float(np.mean([run.result.total_eur for run in runs])))
                forced += sum(run.forced for run in runs)
            show(f"{name} of {', '.join(of)}", costs, forced)


if __name__ == "__main__":
    main()
