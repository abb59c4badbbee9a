"""A vector environment and gymnasium's own over the same single environments, side by side."""

from collections.abc import Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from gymnasium.wrappers import TimeLimit

from gpusched_env import GpuClusterEnv, GpuClusterVectorEnv, Scenario, load_scenario
from gpusched_env.workload import load_track, reward_scale_of, step_limit_of


def few_jobs(jobs: int = 3, nodes: int = 2, **more: object) -> Scenario:
    values = {"jobs.count": jobs, "cluster.nodes": nodes, "cluster.gpu_types": ["V100", "T4"]}
    return load_scenario("tiny").replace({"epochs.library_size": 2} | values | more)


def all_kinds(jobs: int = 4, nodes: int = 4) -> Scenario:
    """Make a scenario with shares, several whole nodes, spread GPUs, interference by pairs and restarts."""
    values = {
        "jobs.count": jobs,
        "jobs.applications": None,
        "cluster.nodes": nodes,
        "epochs.library_size": 2,
        "jobs.node_counts": [1, 2],
        "jobs.spread_counts": [2, 8],
        "cluster.gpu_types": ["V100", "T4"],
        "sharing.fractions": [0.5, 0.25],
        "sharing.interference": "measured",
        "restart_s": 30.0,
    }
    return load_scenario("multi-node").replace(values)


def helped(jobs: int = 4, nodes: int = 8) -> Scenario:
    """Make a scenario in which spare machines help jobs on several nodes, which most of them like."""
    values = {"jobs.count": jobs, "cluster.nodes": nodes, "epochs.library_size": 2, "arrivals.lambda_s": 1000.0}
    return load_scenario("byteps").replace({"jobs.gpu_counts": [4, 8]} | values)


def profiled(jobs: int = 6, nodes: int = 2) -> Scenario:
    """Make a scenario whose applications run alone for ten minutes before their jobs may share GPUs."""
    values = {"jobs.count": jobs, "cluster.nodes": nodes, "epochs.library_size": 2}
    return load_scenario("guaranteed-and-opportunistic").replace(
        values | {"sharing.profile_s": 600.0, "sharing.gaps": [5, 20, 200]}
    )


def priced(jobs: int = 4, nodes: int = 2) -> Scenario:
    """Make a scenario with hourly prices from a random day of 2022, their emissions, and a demand charge."""
    prices = {"series": "caiso-2022", "demand_charge_eur_per_kw": 5.0, "carbon_eur_per_t": 50.0}
    return few_jobs(jobs, nodes, **{f"prices.{name}": value for name, value in prices.items()})


class Twins:
    """Both, with the same arguments; without scenarios they replay the `instance` of `settings`."""

    def __init__(
        self,
        scenarios: Sequence[Scenario] | None,
        envs: int,
        mode: AutoresetMode = AutoresetMode.NEXT_STEP,
        **settings: Any,
    ) -> None:
        each = scenarios or ["default"]
        self.native = GpuClusterVectorEnv(envs, scenarios or "default", autoreset_mode=mode, **settings)
        limit = settings.pop("max_episode_steps", None)
        singles = [lambda i=i: _limited(GpuClusterEnv(each[i % len(each)], **settings), limit) for i in range(envs)]
        self.sync = SyncVectorEnv(singles, autoreset_mode=mode)
        self.truncated = np.zeros(envs, dtype=np.bool_)
        self.ended = np.zeros(envs, dtype=np.bool_)
        self.episodes = 0

    def reset(self, **arguments: Any) -> dict[str, Any]:
        given = arguments.pop("options", None)
        mine = self.native.reset(options=given, **arguments)
        assert_same(mine, self.sync.reset(options=None if given is None else dict(given), **arguments))
        self.ended = self.ended & ~(given or {}).get("reset_mask", np.ones_like(self.ended))
        return mine[1]

    def step(self, actions: np.ndarray) -> dict[str, Any]:
        """Take a step in both, compare all that they return and show, and give the infos."""
        mine = self.native.step(actions)
        assert_same(mine, self.sync.step(actions))
        infos = mine[4]
        assert self.native.observation_space.contains(mine[0])
        assert np.array_equal(self.native.action_masks(), infos["action_mask"].astype(bool))
        assert np.array_equal(self.native.jobs, infos["job"])
        self.ended, self.truncated = mine[2] | mine[3], mine[3]
        self.episodes += int(self.ended.sum())
        return infos

    def play(self, steps: int, rng: np.random.Generator, infos: dict[str, Any]) -> dict[str, Any]:
        for _ in range(steps):
            if self.native.autoreset_mode is AutoresetMode.DISABLED and self.ended.any():
                infos = self.reset(options={"reset_mask": self.ended.copy()})
                self.native.action_masks()
            infos = self.step(random_actions(self.native.action_masks(), rng))
        return infos


def _limited(env: GpuClusterEnv, limit: int | None) -> gymnasium.Env:
    return env if limit is None else TimeLimit(env, limit)


def random_actions(masks: np.ndarray, rng: np.random.Generator, invalid: float = 0.2) -> np.ndarray:
    """Draw an action for each row of masks: of all with a small probability, else of those that can be placed."""
    weights = np.where(rng.random((len(masks), 1)) < invalid, 1.0, masks) * rng.random(masks.shape)
    return weights.argmax(axis=1)


def assert_same(one: Any, other: Any, where: str = "") -> None:
    """Compare values, arrays bit for bit and with their types, dicts and tuples part by part."""
    if isinstance(one, dict):
        assert isinstance(other, dict), where
        assert one.keys() == other.keys(), where
        for key in one:
            assert_same(one[key], other[key], f"{where}.{key}")
    elif isinstance(one, tuple | list) or (isinstance(one, np.ndarray) and one.dtype == np.object_):
        for k, (a, b) in enumerate(zip(one, other, strict=True)):
            assert_same(a, b, f"{where}[{k}]")
    elif isinstance(one, np.ndarray):
        assert (one.dtype, one.shape) == (other.dtype, other.shape), where
        assert one.tobytes() == other.tobytes(), (where, one, other)
    else:
        assert one is other is None, where


def check_made(track: str, settings: dict[str, object]) -> None:
    """Check that `scenario` makes the environments of a track, alone and several at once, with its limit and scale."""
    for kind in ("", "Flat"):
        name = f"gpusched_env/GpuCluster{kind}-v0"
        env = gymnasium.make(name, scenario=track, settings=settings)
        many = gymnasium.make_vec(name, 2, scenario=track, settings=settings)
        assert isinstance(many, GpuClusterVectorEnv)
        assert env.unwrapped.scenario == load_track(track).scenario.replace(settings)
        assert env.unwrapped.reward_scale == reward_scale_of(track) == load_track(track).reward_scale_eur
        assert many.single_observation_space == env.observation_space
        assert env.unwrapped.step_limit == step_limit_of(track) == load_track(track).max_episode_steps >= 30_000
