"""A training run of an adaptation agent: evolution strategies, evaluation, and exact checkpoints."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from gpusched_agents.files.storage import find_agent, load_agent
from gpusched_agents.spec import AgentSpec
from gpusched_agents.training.algorithm_config import STARTS, EsConfig
from gpusched_agents.training.constants import constants_of, imitate
from gpusched_agents.training.evolution import Evolution, Workers, relative_cost, validate
from gpusched_agents.training.evolved import EvolvedNetwork
from gpusched_agents.training.run import CHECKPOINT, ResumableTraining
from gpusched_agents.training.workloads import RANDOMISED, places, validation_instance, validation_places
from gpusched_env import make_instance
from gpusched_env.errors import InputError

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from gpusched_agents.files.description import AgentDescription
    from gpusched_agents.training.checkpoint import Checkpoint
    from gpusched_agents.training.config import TrainingConfig
    from gpusched_env.model import Configuration, GpuType

MOST_CONFIGURATIONS, MOST_GPU_TYPES = 256, 32  # that an adaptation agent may be used with


class AdaptationTraining(ResumableTraining):
    """A training run of an adaptation agent by evolution strategies, in a folder: see `ResumableTraining`.

    It keeps the agent of the evaluation with the least cost on the validation workloads over that of STS-X: `relative`
    in the curve, a geometric mean over scenarios, and over randomised workloads if it learns on some.

    Args:
        config: The settings, whose agent is an `EsConfig`.
        folder: As for `ResumableTraining`.
        workers: Processes, ≥ 1; by default as many as there are processors. Results do not depend on it.
        **named: As for `ResumableTraining`.
    """

    def __init__(self, config: TrainingConfig, folder: str | Path, *, workers: int | None = None, **named: Any) -> None:
        self._workers = workers
        super().__init__(config, folder, **named)
        if self.resumes_at is None:
            self.progress.phase = "learning"

    def _prepare(self) -> None:
        config = self.config
        if not isinstance(config.agent, EsConfig):
            raise InputError("agent", config.agent, "an EsConfig")
        self._es, self._network = config.agent, EvolvedNetwork(spec_of(config), config.network)
        self._listed = len(config.scenarios) * len(config.validation_seeds)  # without randomised ones
        self._free, self._state = _first_state(config, self._es, self._network)
        self._best = self._state.average

    def run(self) -> AgentDescription:
        """Train to the end, and return the description of the agent that is kept: the best one evaluated."""
        _ = self.references
        first = self._network.policy(self._best)
        validate(self.config, first, validation_places(self.config)[0])  # here first, to compile kernels once
        with Workers(self.config, self._network, self._workers) as self._pool:
            if not self.progress.curve:
                self._begin()
                self._evaluate()
            try:
                self._learn()
            except KeyboardInterrupt:
                self._write_checkpoint()
                raise
        self.progress.phase = "done"
        self._write_checkpoint()
        self._write_curve()
        return self._end()

    def _begin(self) -> None:
        if self._es.begin in STARTS:
            found = constants_of(self.config, self._pool, self.folder, self._report)
            self._report("imitating the constants")
            first: Any = self._network.policy(self._state.weights)
            network = self.config.network
            imitator = imitate(found, first.actor, network.rounds, self._pool, network.controls)
            self._state = Evolution.go_on(self._network.vector(imitator.arrays()))
            self._best = self._state.average

    def _learn(self) -> None:
        """Update the weights to the end, and evaluate them when it is due, also after an interrupt before it."""
        progress, config = self.progress, self.config
        while True:
            if progress.steps - progress.curve[-1]["steps"] >= config.evaluate_every:
                self._evaluate()
            if progress.steps >= config.steps or progress.worse >= config.patience:
                break
            self._update()
        if progress.curve[-1]["steps"] < progress.steps:
            self._evaluate()

    def _update(self) -> None:
        es, seed, count = self._es, self.config.seed, self._es.pairs * self._es.workloads
        where = places(self.config, es.randomised, self._state.updates * count, count)
        candidates = self._state.candidates(es, seed, self._free)
        differences, rounds = self._pool.differences(candidates, where, es.most_jobs)
        done = self.progress.steps + int(rounds)
        state = Evolution(*(getattr(self._state, name) for name in Evolution.__slots__))
        state.update(es, seed, self._free, differences, done / self.config.steps)
        self._state, self.progress.steps = state, done  # in one statement, so that an interrupt finds both or neither
        self._report(f"update {state.updates}")

    def _evaluate(self) -> None:
        """Run the agent on the validation workloads; keep it if it is the best so far."""
        totals, tardiness = self._pool.validate(self._state.average.astype(np.float32))
        relative = relative_cost(self.config, totals, np.array(self._run.record["base_eur_each"]))
        totals, tardiness = totals[: self._listed], tardiness[: self._listed]
        progress = self.progress
        better = relative < min((point["relative"] for point in progress.curve), default=np.inf)
        best, worse = (self._state.average, 0) if better else (self._best, progress.worse + 1)
        costs = {"total_eur": float(totals.mean()), "tardiness_eur": float(tardiness.mean()), "relative": relative}
        point = self._begin_point() | costs
        self._best, progress.worse = best, worse
        progress.curve.append(point)  # no call since the line above: an interrupt finds all three or none
        self._write_curve()
        if better:
            self._save_agent()
        self._write_checkpoint()
        self._report("evaluated")

    def _save_agent(self) -> AgentDescription:
        return self._save(self._network.spec, self._network.arrays(self._best))

    def _unpack(self, checkpoint: Checkpoint) -> None:
        arrays, best = checkpoint.get("state"), checkpoint.arrays["best"]
        if any(array.shape != self._free.shape for array in (best, *arrays.values())):
            raise ValueError(f"a network of {len(best)} weights, not {len(self._free)}")
        self._state, self._best = Evolution(**arrays, updates=int(checkpoint.facts["updates"])), best

    def _write_checkpoint(self) -> None:
        checkpoint, state = self._begin_checkpoint(), self._state
        checkpoint.put("state", {name: getattr(state, name) for name in Evolution.__slots__ if name != "updates"})
        checkpoint.arrays["best"] = self._best
        checkpoint.facts["updates"] = state.updates
        checkpoint.write(self.folder / CHECKPOINT)
        self.resumes_at = self.progress.steps


def _first_state(
    config: TrainingConfig, es: EsConfig, network: EvolvedNetwork
) -> tuple[NDArray[np.float64], Evolution]:
    """Return the initial state: STS-X, or the agent of `begin`.

    Returns:
        1 for every weight that may change, 0 for those that stay, (W,); and the state.
    """
    free = network.changes(es.only)
    if not free.any():
        raise InputError("agent.only", es.only, f"the beginning of one of {', '.join(network.shapes)}")
    if config.network.contexts and not es.begin:
        raise InputError("network.contexts", config.network.contexts, "0, where there is no agent.begin")
    if es.only and not es.begin:
        raise InputError("agent.only", es.only, "all arrays, where there is no agent.begin: the others are 0")
    return free, Evolution.go_on(_first_weights(config, es, network))


def _first_weights(config: TrainingConfig, es: EsConfig, network: EvolvedNetwork) -> NDArray[np.floating]:
    if es.begin in {"", *STARTS}:
        return network.first(config.seed)
    description, weights = load_agent(find_agent(es.begin))
    description.spec.check_features()
    own = {name: list(shape) for name, shape in network.shapes.items()}
    if {name: list(array.shape) for name, array in weights.items()} != own:
        allowed = f"an agent with a network of the kind {config.network.kind}, of the same size"
        raise InputError("agent.begin", f"{es.begin}: {description.network}", allowed)
    return network.vector(weights)


def spec_of(config: TrainingConfig) -> AgentSpec:
    """Return the spec of an agent that is trained on all these scenarios, with the configurations of all.

    Where a network keeps contexts, its kinds of configurations are those of the scenarios, of which constants are
    searched: on randomised workloads it imitates STS-X itself, and so it does with other kinds.

    Raises:
        InputError: Their numbers of GPU types differ, and the network sets controls.
    """
    configurations: dict[str, Configuration] = {}
    gpu_types: dict[str, GpuType] = {}
    scenarios = [scenario.replace({"jobs.count": 1}) for scenario in config.loaded_scenarios()]
    instances = [make_instance(each, seed) for each in scenarios for seed in range(max(1, len(each.mixture)))]
    randomised = [place for place in validation_places(config) if place.scenario == RANDOMISED]
    for instance in instances + [validation_instance(config, place) for place in randomised]:
        configurations |= {each.name: each for each in instance.configurations}
        gpu_types |= {each.name: each for each in instance.gpu_types}
    of_all, most = list(configurations.values()), MOST_CONFIGURATIONS
    if config.network.kind == "controls":  # of one number of GPU types
        sizes = sorted({len(instance.gpu_types) for instance in instances})
        if len(sizes) > 1 or randomised:
            raise InputError("network.kind", "controls", f"control-set, where numbers of GPU types differ: {sizes}")
        return AgentSpec.of("controls", of_all, instances[0].gpu_types, max_configurations=most)
    types = list(gpu_types.values())
    spec = AgentSpec.of("control-set", of_all, types, max_configurations=most, max_gpu_types=MOST_GPU_TYPES)
    searched = {each.kind for instance in instances for each in instance.configurations}
    kinds = tuple(kind for kind in spec.kinds if kind in searched or not config.network.contexts)
    return replace(spec, kinds=kinds)
