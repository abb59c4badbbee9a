"""A first network that sets controls: it imitates the best constants of each scenario."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gpusched_agents.network.actors import ControlActor, MlpActor
from gpusched_agents.training.algorithm_config import COMMON
from gpusched_baselines import StsX
from gpusched_baselines.adaptation_env.controls import control_names
from gpusched_baselines.adaptation_env.run import AdaptedRun
from gpusched_baselines.tuned import TunedStsX, cost_of, search
from gpusched_env import make_instance
from gpusched_env.files import write_atomically
from gpusched_env.formats.instance_file import instance_json
from gpusched_env.workload.mixture import variants_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from gpusched_agents.training.config import TrainingConfig
    from gpusched_env.child_processes import ProcessPool
    from gpusched_env.model import Instance

FILE = "constants.json"
FIRST_SEED = 100_000  # of the workloads on which constants are searched
EVALUATIONS, WORKLOADS = 50, 10  # of the search of each scenario
PASSES, EACH = 3, 6  # of imitation: with the constants, then with the network; workloads of each scenario in each
RIDGE = 1e-3


class Found(NamedTuple):
    """What was found for a scenario.

    Attributes:
        constants: The best constants, (K,).
        workloads: Training workloads that the search did not see, for imitation.
    """

    constants: NDArray[np.float64]
    workloads: Sequence[Instance]


def constants_of(config: TrainingConfig, pool: ProcessPool, folder: Path, report: Callable[[str], None]) -> list[Found]:
    """Search the best constants of every scenario, and of every scenario of a mixture; or those of all in common.

    Each search is kept in `constants.json` when it ends, so a run that is resumed goes on with the next one. Searches
    that a training in a folder beside it has made are taken from there.

    Args:
        config: The settings of the run; `agent.begin` says which.
        pool: The processes that run workloads.
        folder: The folder of the run.
        report: Called with a description of the present work.

    Returns:
        For each of these scenarios its constants, and workloads for imitation.
    """
    groups = dict(_groups(config))
    common = getattr(config.agent, "begin", "") == COMMON
    searched = {", ".join(groups): list(groups.values())} if common else {name: [g] for name, g in groups.items()}
    keys = {name: _key(config, several) for name, several in searched.items()}
    kept = {key: one for key, one in _kept(folder).items() if key in keys.values()}
    for name, key in keys.items():
        if key not in kept:
            report(f"searching constants of {name}")
            kept[key] = {"of": name, "constants": _search([g[:WORKLOADS] for g in searched[name]], pool, config.seed)}
        write_atomically(folder / FILE, json.dumps(kept, indent=1) + "\n")
    constants = {name: list(kept[key]["constants"].values()) for name, key in keys.items()}
    one = next(iter(constants.values()))
    return [Found(np.array(one if common else constants[name]), group[WORKLOADS:]) for name, group in groups.items()]


def _groups(config: TrainingConfig) -> Iterator[tuple[str, list[Instance]]]:
    """Yield the name of each scenario, and its first training workloads: for the search, then for imitation."""
    for index, scenario in enumerate(config.loaded_scenarios()):
        variants = len(variants_of(scenario))
        for number in range(variants):
            seeds = range(FIRST_SEED + (number - FIRST_SEED) % variants, 2 * FIRST_SEED, variants)
            name = config.scenarios[index] + (f" {number}" if variants > 1 else "")
            yield name, [make_instance(scenario, seed) for seed in seeds[: WORKLOADS + PASSES * EACH]]


def _key(config: TrainingConfig, groups: Sequence[Sequence[Instance]]) -> str:
    """Return a text that identifies a search."""
    facts = [config.seed, EVALUATIONS, WORKLOADS, *(instance_json(group[0]) for group in groups)]
    return hashlib.sha256(json.dumps(facts).encode()).hexdigest()[:16]


def _kept(folder: Path) -> dict[str, Any]:
    """Return the searches of this training, and of those beside it."""
    kept: dict[str, Any] = {}
    for path in sorted(folder.parent.glob(f"*/{FILE}")):
        kept |= json.loads(path.read_text(encoding="utf-8"))
    return kept


def _search(groups: Sequence[Sequence[Instance]], pool: ProcessPool, seed: int) -> dict[str, float]:
    """Search the constants with the least mean, over groups of workloads, of cost over that of STS-X."""
    names = control_names([v.name for v in groups[0][0].gpu_types])

    def costs(policy: StsX) -> NDArray[np.float64]:
        calls = [(policy, instance) for group in groups for instance in group]
        return np.array(pool.map(cost_of, calls)).reshape(len(groups), -1).sum(axis=1)

    base = costs(StsX())

    def cost(action: NDArray[np.float64]) -> float:
        tuned = TunedStsX(constants=tuple(zip(names, action.tolist(), strict=True)))
        return float(np.mean(costs(tuned) / base))

    best, _ = search(cost, len(names), EVALUATIONS, seed, 1.0)
    return dict(zip(names, best.tolist(), strict=True))


def imitate(found: Sequence[Found], actor: ControlActor, rounds: int, pool: ProcessPool) -> ControlActor:
    """Return an actor that says the constants of each scenario, as well as its last layer can tell them apart.

    The last layer is fitted by ridge regression to observations of runs with the constants, and then, as in DAgger
    (Ross, Gordon and Bagnell, 2011), also to those of runs with the actor itself. The other layers stay. All scenarios
    count the same.

    Args:
        found: For each scenario its constants, and workloads.
        actor: The actor; its last layer is replaced.
        rounds: Rounds of a step.
        pool: The processes that run workloads.
    """
    size = len(found[0].constants)
    seen: list[NDArray[np.float32]] = []
    said: list[NDArray[np.float64]] = []
    fitted: ControlActor | None = None
    for number in range(PASSES):
        for each in found:
            acting = MlpActor(((np.zeros((size, actor.inputs), np.float32), each.constants.astype(np.float32)),))
            chosen = each.workloads[number * EACH : (number + 1) * EACH]
            seen += pool.map(observations, [(instance, fitted or acting, rounds) for instance in chosen])
            said += [each.constants] * len(chosen)
        fitted = _fitted(actor, seen, said)
    return fitted or actor


def observations(instance: Instance, actor: ControlActor, rounds: int) -> NDArray[np.float32]:
    """Return the observations of a run in which an actor sets the controls, (steps, inputs)."""
    run, rows = AdaptedRun(instance), []
    while not run.over:
        seen = np.zeros(actor.inputs)
        run.observe(seen)
        rows.append(seen.astype(np.float32))
        run.decide(actor.act(rows[-1]), rounds)
    return np.array(rows)


def _fitted(
    actor: ControlActor, seen: Sequence[NDArray[np.float32]], said: Sequence[NDArray[np.float64]]
) -> ControlActor:
    """Return the actor with the last layer that fits what it should say best: each run counts the same."""
    below = actor.hidden(np.concatenate(seen)).astype(np.float64)
    weight = np.concatenate([np.full(len(rows), 1.0 / len(rows)) for rows in seen])
    wanted = np.concatenate([np.tile(target, (len(rows), 1)) for rows, target in zip(seen, said, strict=True)])
    wanted = np.arctanh(np.clip(wanted, -0.95, 0.95)) if actor.squash else wanted
    inputs = np.column_stack([below, np.ones(len(below))])
    weighted = inputs.T * weight
    solved = np.linalg.solve(weighted @ inputs + RIDGE * np.eye(inputs.shape[1]), weighted @ wanted)
    return actor.with_last(solved[:-1].T.astype(np.float32), solved[-1].astype(np.float32))
