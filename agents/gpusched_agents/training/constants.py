"""A first network that sets controls: it imitates the best constants of each scenario."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np

from gpusched_agents.network.actors import JobSetActor, MlpActor
from gpusched_agents.network.type_set import TypeSetActor
from gpusched_agents.training.algorithm_config import COMMON
from gpusched_agents.training.workloads import randomised_instance
from gpusched_baselines import StsX
from gpusched_baselines.adaptation_env.controls import control_names
from gpusched_baselines.adaptation_env.run import AdaptedRun
from gpusched_baselines.tuned import TunedStsX, action_of, cost_of, search
from gpusched_env import make_instance
from gpusched_env.errors import InputError
from gpusched_env.files import write_atomically
from gpusched_env.formats.instance_file import instance_json
from gpusched_env.parsing import parse_json
from gpusched_env.workload.mixture import variants_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from gpusched_agents.network.actors import Actor
    from gpusched_agents.training.config import TrainingConfig
    from gpusched_env.child_processes import ProcessPool
    from gpusched_env.model import Instance

Imitator = TypeVar("Imitator", bound=MlpActor | JobSetActor | TypeSetActor)
FILE = "constants.json"
FIRST_SEED = 100_000  # of the workloads on which constants are searched
EVALUATIONS, WORKLOADS = 50, 10  # of the search of each scenario
PASSES, EACH = 3, 6  # of imitation: with the constants, then with the network; workloads of each scenario in each
SCENARIOS = 30  # that are drawn, for imitation of STS-X itself, where a run has randomised workloads


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

    Constants that are not surely cheaper than STS-X on the workloads that the search did not see, by one standard
    error, are 0: then the scenario is one of STS-X itself. So are those of drawn scenarios, which are not searched.
    Each search is kept in `constants.json` when it ends, so a run that is resumed goes on with the next one. Searches
    that a training in a neighbouring folder has made are taken from there.
    """
    groups = dict(_groups(config))
    common, controls = config.agent.begin == COMMON, config.network.controls
    searched = {", ".join(groups): list(groups.values())} if common else {name: [g] for name, g in groups.items()}
    keys = {name: _key(config, several) for name, several in searched.items()}
    kept = {key: one for key, one in _kept(folder).items() if key in keys.values()}
    for name, key in keys.items():
        if key not in kept:
            report(f"searching constants of {name}")
            kept[key] = {"of": name, **_search(searched[name], pool, config.seed, controls)}
        write_atomically(folder / FILE, json.dumps(kept, indent=1) + "\n")
    found = []
    for name, group in groups.items():
        one = kept[keys[", ".join(groups) if common else name]]
        constants = action_of(one["constants"] if one["saves"] else {}, _types_of(group[0]), controls)
        found.append(Found(constants, group[WORKLOADS:]))
    drawn = [[randomised_instance(number, seed) for seed in _seeds(1, 0)] for number in range(_drawn(config))]
    return found + [Found(action_of({}, _types_of(group[0]), controls), group[WORKLOADS:]) for group in drawn]


def _groups(config: TrainingConfig) -> Iterator[tuple[str, list[Instance]]]:
    for index, scenario in enumerate(config.loaded_scenarios()):
        variants = len(variants_of(scenario))
        for number in range(variants):
            name = config.scenarios[index] + (f" {number}" if variants > 1 else "")
            yield name, [make_instance(scenario, seed) for seed in _seeds(variants, number)]


def _seeds(variants: int, number: int) -> range:
    return range(FIRST_SEED + (number - FIRST_SEED) % variants, 2 * FIRST_SEED, variants)[: WORKLOADS + PASSES * EACH]


def _drawn(config: TrainingConfig) -> int:
    return SCENARIOS if getattr(config.agent, "randomised", 0.0) > 0.0 else 0


def _types_of(instance: Instance) -> list[str]:
    return [gpu_type.name for gpu_type in instance.gpu_types]


def _key(config: TrainingConfig, groups: Sequence[Sequence[Instance]]) -> str:
    facts = [config.seed, EVALUATIONS, WORKLOADS, PASSES * EACH, *(instance_json(group[0]) for group in groups)]
    facts += [config.network.controls] if config.network.controls == "energy" else []
    return hashlib.sha256(json.dumps(facts).encode()).hexdigest()[:16]


def _kept(folder: Path) -> dict[str, Any]:
    kept: dict[str, Any] = {}
    for path in sorted(folder.parent.glob(f"*/{FILE}")):
        try:
            kept |= parse_json(path.read_bytes())
        except (OSError, ValueError, TypeError) as error:
            raise InputError(str(path), str(error), "constants that a training run wrote; remove it") from error
    return kept


def _search(groups: Sequence[Sequence[Instance]], pool: ProcessPool, seed: int, controls: str) -> dict[str, Any]:
    """Search the constants with the least mean, over groups of workloads, of cost over that of STS-X.

    Returns:
        `constants` by name; `unseen`, the mean cost over that of STS-X on the other workloads of the groups, and its
        standard error; and whether they surely save: the mean is below 1 by more than that.
    """
    types = dict.fromkeys(name for group in groups for name in _types_of(group[0]))
    names = control_names(list(types), "energy" if controls == "energy" else "round")

    def costs(policy: StsX, first: int, last: int | None) -> NDArray[np.float64]:
        calls = [(policy, instance) for group in groups for instance in group[first:last]]
        return np.array(pool.map(cost_of, calls)).reshape(len(groups), -1)

    base = costs(StsX(), 0, WORKLOADS).sum(axis=1)

    def cost(action: NDArray[np.float64]) -> float:
        return float(np.mean(costs(_tuned(names, action), 0, WORKLOADS).sum(axis=1) / base))

    best, _ = search(cost, len(names), EVALUATIONS, seed, 1.0)
    own, others = costs(_tuned(names, best), WORKLOADS, None), costs(StsX(), WORKLOADS, None)
    ratios = (own / others.mean(axis=1, keepdims=True) - others / others.mean(axis=1, keepdims=True)).mean(axis=0)
    mean, error = float(ratios.mean()), float(ratios.std(ddof=1) / np.sqrt(len(ratios)))
    return {
        "constants": dict(zip(names, best.tolist(), strict=True)),
        "unseen": [1.0 + mean, error],
        "saves": mean + error < 0.0,
    }


def _tuned(names: Sequence[str], action: NDArray[np.float64]) -> TunedStsX:
    return TunedStsX(constants=tuple(zip(names, action.tolist(), strict=True)))


def imitate(
    found: Sequence[Found], actor: Imitator, rounds: int, pool: ProcessPool, controls: str = "round"
) -> Imitator:
    """Return an actor that sets the constants of each scenario, as far as its last layer can distinguish them.

    The last layer is fitted by ridge regression to observations of runs with the constants, and then, as in DAgger
    (Ross, Gordon and Bagnell, 2011), also to those of runs with the actor itself. The other layers stay. All scenarios
    count the same.

    Args:
        actor: The actor; its last layer is replaced.
    """
    seen: list[NDArray[np.float32]] = []
    said: list[NDArray[np.float64]] = []
    types: list[list[str]] = []
    fitted: Any = None
    for number in range(PASSES):
        for each in found:
            chosen = each.workloads[number * EACH : (number + 1) * EACH]
            names = _types_of(chosen[0])
            zeros = np.zeros((len(each.constants), actor.for_types(names).inputs), np.float32)
            acting = fitted or MlpActor(((zeros, each.constants.astype(np.float32)),))
            seen += pool.map(observations, [(instance, acting, rounds, controls) for instance in chosen])
            said += [each.constants] * len(chosen)
            types += [names] * len(chosen)
        of_types = (types,) if isinstance(actor, TypeSetActor) else ()
        fitted = actor.fitted(seen, said, *of_types)
    imitator: Imitator = fitted
    return imitator


def observations(instance: Instance, actor: Actor, rounds: int, controls: str = "round") -> NDArray[np.float32]:
    """Return the observations of a run in which an actor sets the controls, (steps, inputs)."""
    run, rows, acting = AdaptedRun(instance), [], actor.for_types(_types_of(instance))
    while not run.over:
        seen = np.zeros(acting.inputs)
        run.observe(seen, controls)
        rows.append(seen.astype(np.float32))
        run.decide(acting.act(rows[-1]), rounds)
    return np.array(rows)
