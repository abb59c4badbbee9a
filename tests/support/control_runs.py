"""Small trainings on the adaptation environment, and what two runs of one must have in common."""

import csv
from dataclasses import replace
from pathlib import Path
from typing import Any

from gpusched_agents.files.storage import load_agent
from gpusched_agents.spec import NetworkConfig
from gpusched_agents.training.algorithm_config import AdaptationConfig
from gpusched_agents.training.checkpoint import Checkpoint
from gpusched_agents.training.config import TrainingConfig

ENVS = 4
PPO = {"n_steps": 8, "batch_size": 16, "n_epochs": 2, "learning_rate": 0.01}
SMALL_BUFFER = {"learning_starts": 16, "batch_size": 16, "gradient_steps": 2, "buffer_size": 200}
BASE = TrainingConfig(
    agent=AdaptationConfig("ppo", PPO, workloads=6),
    scenarios=("tiny",),
    steps=256,
    envs=ENVS,
    network=NetworkConfig("controls", hidden=8, rounds=4),
    validation_seeds=(500, 501),
    evaluate_every=40,
)
CASES = {
    "ppo": BASE,
    "a2c": replace(BASE, agent=AdaptationConfig("a2c", {"n_steps": 8, "learning_rate": 0.01}, workloads=6)),
    "sac": replace(BASE, agent=AdaptationConfig("sac", SMALL_BUFFER, workloads=6), steps=96),
    "td3": replace(BASE, agent=AdaptationConfig("td3", SMALL_BUFFER, workloads=6), steps=96),
    "two scenarios": replace(BASE, scenarios=("tiny", "default"), scenario_settings={"jobs.count": 8}, steps=128),
}


def curve(folder: Path) -> list[dict[str, str]]:
    """Read `curve.csv`."""
    with (folder / "curve.csv").open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def outcome(folder: Path) -> dict[str, Any]:
    """Return all that a finished run must reproduce: everything except the seconds that it took."""
    points = [{name: value for name, value in point.items() if name != "seconds"} for point in curve(folder)]
    last = Checkpoint.read(folder / "checkpoint.npz")
    progress = last.facts["progress"]
    del progress["seconds"]
    for point in progress["curve"]:
        del point["seconds"]
    arrays = {name: (str(array.dtype), array.shape, array.tobytes()) for name, array in last.arrays.items()}
    weights = {name: array.tobytes() for name, array in load_agent(folder / "agent")[1].items()}
    return {"weights": weights, "curve": points, "facts": last.facts, "arrays": arrays}


def same(one: dict[str, Any], other: dict[str, Any]) -> None:
    for part in ("weights", "curve", "facts", "arrays"):
        changed = one[part] != other[part]
        names = [name for name in one[part] if one[part][name] != other[part].get(name)] if part == "arrays" else part
        assert not changed, names
