"""A first network that sets controls: it imitates the best constants of each scenario."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np

from gpusched_agents.network.control_policy import MlpActor
from gpusched_baselines import StsX
from gpusched_baselines.adaptation_env.controls import control_names
from gpusched_baselines.adaptation_env.run import AdaptedRun
from gpusched_baselines.tuned import TunedStsX, cost_of, search
from gpusched_env import make_instance
from gpusched_env.files import write_atomically
from gpusched_env.workload.mixture import variants_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from gpusched_agents.training.config import TrainingConfig
    from gpusched_env.child_processes import ProcessPool
    from gpusched_env.model import Instance

FILE = "constants.json"
FIRST_SEED = 100_000  # of the workloads on which constants are searched
EVALUATIONS, WORKLOADS = 120, 12  # of the search of each scenario
PASSES, EACH = 3, 6  # of imitation: with the constants, then with the network; workloads of each scenario in each
RIDGE = 1e-3


def constants_of(
    config: TrainingConfig, pool: ProcessPool, folder: Path, report: Callable[[str], None]
) -> list[tuple[NDArray[np.float64], list[Instance]]]:
    """Search the best constants of every scenario, and of every scenario of a mixture.

    Each search is kept in `constants.json` when it ends, so a run that is resumed goes on with the next one.

    Args:
        config: The settings of the run.
        pool: The processes that run workloads.
        folder: The folder of the run.
        report: Called with a description of the present work.

    Returns:
        For each of these scenarios the constants, (K,), and workloads for imitation, of other training seeds.
    """
    path, found = folder / FILE, []
    kept: dict[str, Any] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    for index, scenario in enumerate(config.loaded_scenarios()):
        variants = len(variants_of(scenario))
        for number in range(variants):
            name = config.scenarios[index] + (f" {number}" if variants > 1 else "")
            seeds = range(FIRST_SEED + (number - FIRST_SEED) % variants, 2 * FIRST_SEED, variants)
            if name not in kept:
                report(f"searching constants of {name}")
                instances = [make_instance(scenario, seed) for seed in seeds[:WORKLOADS]]
                kept[name] = _search(instances, pool, config.seed)
                write_atomically(path, json.dumps(kept, indent=1) + "\n")
            later = [make_instance(scenario, seed) for seed in seeds[WORKLOADS : WORKLOADS + PASSES * EACH]]
            found.append((np.array(list(kept[name].values())), later))
    return found


def _search(instances: Sequence[Instance], pool: ProcessPool, seed: int) -> dict[str, float]:
    names = control_names([v.name for v in instances[0].gpu_types])

    def costs(policy: StsX) -> float:
        return float(np.sum(pool.map(cost_of, [(policy, instance) for instance in instances])))

    def cost(action: NDArray[np.float64]) -> float:
        return costs(TunedStsX(constants=tuple(zip(names, action.tolist(), strict=True))))

    best, _ = search(cost, len(names), EVALUATIONS, seed, costs(StsX()))
    return dict(zip(names, best.tolist(), strict=True))


def imitate(
    found: Sequence[tuple[NDArray[np.float64], list[Instance]]], actor: MlpActor, rounds: int, pool: ProcessPool
) -> MlpActor:
    """Return an actor that says the constants of each scenario, as well as its last layer can tell them apart.

    The last layer is fitted by ridge regression to observations of runs with the constants, and then, as in DAgger
    (Ross, Gordon and Bagnell, 2011), also to those of runs with the actor itself. The other layers stay. All scenarios
    count the same.

    Args:
        found: For each scenario the constants, (K,), and workloads (`constants_of`).
        actor: The actor; its last layer is replaced.
        rounds: Rounds of a step.
        pool: The processes that run workloads.
    """
    size = len(found[0][0])
    seen: list[NDArray[np.float32]] = []
    said: list[NDArray[np.float64]] = []
    fitted: MlpActor | None = None
    for number in range(PASSES):
        for constants, instances in found:
            acting = MlpActor(((np.zeros((size, actor.inputs), np.float32), constants.astype(np.float32)),))
            calls = [(each, fitted or acting, rounds) for each in instances[number * EACH : (number + 1) * EACH]]
            seen += pool.map(observations, calls)
            said += [constants] * len(calls)
        fitted = _fitted(actor, seen, said)
    return fitted or actor


def observations(instance: Instance, actor: MlpActor, rounds: int) -> NDArray[np.float32]:
    """Return the observations of a run in which an actor sets the controls, (steps, inputs)."""
    run, rows = AdaptedRun(instance), []
    while not run.over:
        seen = np.zeros(actor.inputs)
        run.observe(seen)
        rows.append(seen.astype(np.float32))
        run.decide(actor.act(rows[-1]), rounds)
    return np.array(rows)


def _fitted(actor: MlpActor, seen: Sequence[NDArray[np.float32]], said: Sequence[NDArray[np.float64]]) -> MlpActor:
    """Return the actor with the last layer that fits what it should say best: each run counts the same."""
    below = actor.hidden(np.concatenate(seen)).astype(np.float64)
    weight = np.concatenate([np.full(len(rows), 1.0 / len(rows)) for rows in seen])
    wanted = np.concatenate([np.tile(target, (len(rows), 1)) for rows, target in zip(seen, said, strict=True)])
    wanted = np.arctanh(np.clip(wanted, -0.95, 0.95)) if actor.squash else wanted
    inputs = np.column_stack([below, np.ones(len(below))])
    weighted = inputs.T * weight
    solved = np.linalg.solve(weighted @ inputs + RIDGE * np.eye(inputs.shape[1]), weighted @ wanted)
    last = solved[:-1].T.astype(np.float32), solved[-1].astype(np.float32)
    return MlpActor((*actor.layers[:-1], last), actor.activation, actor.squash)
