"""Runs recorded once, to be replayed to the last bit: of saved instances, by every door.

`python tests/support/recorded_runs.py` records the instances saved in `tests/recorded` again, and those of `ADDED` that
are not there yet; with names of policies, such as `agent:default` after it was trained again, it records only those.
That is right only where a change is meant to change results: then the CHANGELOG says which, and why.
The saved instances are those of the scenarios at the time: they stay as they are when scenarios change.
"""

import gzip
import hashlib
import json
import sys
import tempfile
from pathlib import Path

import numpy as np

import gpusched_env as gs
from any_instance import AnyInstance
from gpusched_agents import make_any_policy
from gpusched_baselines import clairvoyant_bound, non_clairvoyant_bound, policy_names
from gpusched_baselines.registry import POLICIES

FOLDER = Path(__file__).parents[1] / "recorded"
JOBS = 40
ADDED = ("published-high-busy", "published-sharing")  # scenarios
SETTINGS = {  # of the environment
    "preemptive": {},
    "not preemptive": {"preemption": False, "job_order": "due", "milestones": 0},
    "waking": {"due_date_timers": True, "consolidation": True, "milestones": 8},
}


def names(instance: gs.Instance) -> list[str]:
    shipped = [name for name in policy_names() if POLICIES[name].compiled]  # what a solver finds depends on its version
    fits_agent = instance.name.startswith(("default", "high", "low", "mixed", "exponential", "poisson"))
    return [*shipped, *(["agent:default"] if fits_agent else [])]


def policy(name: str) -> gs.Policy:
    return make_any_policy(name)


def of_policy(instance: gs.Instance, name: str) -> dict[str, str | int]:
    """Run a policy; give its costs as hexadecimal numbers, its rounds, and a sum over its intervals."""
    result = gs.simulate(instance, policy(name), seed=5)
    return {
        "energy": result.energy_eur.hex(),
        "tardiness": result.tardiness_eur.hex(),
        "rounds": result.rounds,
        "intervals": _sum(result.log),
        "jobs": _sum(result.completion_s, result.job_energy_eur, result.job_tardiness_eur),
    }


def of_episode(instance: gs.Instance, settings: dict[str, object]) -> dict[str, str | int]:
    """Play an episode with random actions; give its costs, and sums over all it showed and paid."""
    env = AnyInstance(instance, **settings)
    rng = np.random.default_rng(11)
    observation, info = env.reset(seed=2000)
    seen, paid, done = hashlib.sha256(), [], False
    while not done:
        for part in ("job", "options", "cluster", "queue"):
            seen.update(observation[part].tobytes())
        seen.update(info["action_mask"].tobytes())
        allowed = np.flatnonzero(info["action_mask"])
        observation, reward, done, _, info = env.step(int(allowed[int(rng.random() * len(allowed))]))
        paid.append(reward)
    return {
        "energy": info["total_energy_eur"].hex(),
        "tardiness": info["total_tardiness_eur"].hex(),
        "observations": seen.hexdigest()[:16],
        "rewards": _sum(np.array(paid)),
    }


def record(instance: gs.Instance) -> dict[str, object]:
    return {
        "policies": {name: of_policy(instance, name) for name in names(instance)},
        "episodes": {name: of_episode(instance, settings) for name, settings in SETTINGS.items()},
        "bounds": [clairvoyant_bound(instance).hex(), non_clairvoyant_bound(instance).hex()],
    }


def load(name: str, folder: Path) -> tuple[gs.Instance, dict[str, object]]:
    """Read a saved instance and what was recorded on it; `folder` takes the unpacked instance."""
    document = json.loads(gzip.decompress((FOLDER / f"{name}.json.gz").read_bytes()))
    unpacked = folder / f"{name}.json"
    unpacked.write_text(document["instance"])
    return gs.load_instance(unpacked), document["recorded"]


def _sum(*arrays: np.ndarray) -> str:
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()[:16]


def record_again(instance: gs.Instance, recorded: dict[str, object], only: list[str]) -> dict[str, object]:
    """Run some policies again on an instance, those that are recorded on it; nothing else changes."""
    again = {name: of_policy(instance, name) for name in recorded["policies"] if name in only}
    return {**recorded, "policies": recorded["policies"] | again}


def _save(name: str, instance: gs.Instance, recorded: dict[str, object]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        gs.save_instance(instance, Path(folder, "instance.json"))
        text = Path(folder, "instance.json").read_text()
    packed = gzip.compress(json.dumps({"instance": text, "recorded": recorded}).encode(), mtime=0)
    (FOLDER / f"{name}.json.gz").write_bytes(packed)


if __name__ == "__main__":
    for path in sorted(FOLDER.glob("*.json.gz")):
        stem = path.name.removesuffix(".json.gz")
        with tempfile.TemporaryDirectory() as unpacked_to:
            saved, before = load(stem, Path(unpacked_to))
        _save(stem, saved, record_again(saved, before, sys.argv[1:]) if sys.argv[1:] else record(saved))
    for added in set(ADDED) - {path.name.removesuffix(".json.gz") for path in FOLDER.glob("*.json.gz")}:
        made = gs.make_instance(gs.load_scenario(added).replace({"jobs.count": JOBS}), 7)
        _save(added, made, record(made))
