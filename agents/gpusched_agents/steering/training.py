"""A training run of a steering agent: evolution strategies, evaluation, and exact checkpoints."""

from __future__ import annotations

import time
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gpusched_agents.files.description import AgentDescription
from gpusched_agents.files.find_agent import find_agent
from gpusched_agents.files.storage import load_agent, save_agent
from gpusched_agents.spec import AgentSpec
from gpusched_agents.steering.evolution import Evolution
from gpusched_agents.steering.network import arrays_of, flat_of, seen_weights
from gpusched_agents.steering.policy import SteeringPolicy
from gpusched_agents.steering.workers import Workers, relative_cost, validate, validation_costs
from gpusched_agents.training.algorithm_config import EsConfig
from gpusched_agents.training.checkpoint import Checkpoint
from gpusched_agents.training.progress import Progress, csv_of
from gpusched_agents.training.references import reference_names, warnings_of
from gpusched_agents.training.run_folder import AGENT, CHECKPOINT, CURVE, RunFolder
from gpusched_agents.training.worlds import DRAWN, places, validation_instance, validation_places
from gpusched_baselines import make_policy
from gpusched_env import make_instance
from gpusched_env.errors import InputError
from gpusched_env.files import write_atomically
from gpusched_env.simulator import Asking

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeAlias

    from numpy.typing import NDArray

    from gpusched_agents.training.config import TrainingConfig
    from gpusched_env.model import Configuration, GpuType

    OnProgress: TypeAlias = Callable[[int, int, str], None]

MOST_CONFIGURATIONS, MOST_GPU_TYPES = 256, 32  # that a steering agent may be used with
STEERED = Asking(milestones=0, deadline_wake_ups=True, consolidation=True)
BASE = "sts-x"


class SteeringTraining:
    """A training run in a folder, which it can be stopped in and resumed from at any moment; see `Training`.

    The agent that is kept is that of the evaluation with the least cost on the validation workloads over STS-X's, as a
    geometric mean over scenarios: `relative` in the curve.

    Args:
        config: The settings; its agent is an `EsConfig`.
        folder: A new folder, or that of the same run, which is then resumed.
        name: Name of the agent.
        command: The command that made it; by default the present process's.
        on_progress: Called with decisions (rounds) done, those in all, and what is being done.
        workers: Processes, ≥ 1; by default as many as there are processors. Results do not depend on it.

    Attributes:
        progress: How far it has come, with the curve.
        resumes_at: Decisions at which the same command would go on; None: from the beginning.

    Raises:
        InputError: The folder belongs to a run with other settings, or its checkpoint is not whole.
    """

    def __init__(
        self,
        config: TrainingConfig,
        folder: str | Path,
        *,
        name: str = "agent",
        command: str | None = None,
        on_progress: OnProgress | None = None,
        workers: int | None = None,
    ) -> None:
        if not isinstance(config.agent, EsConfig):
            raise InputError("agent", config.agent, "an EsConfig")
        self.config, self.folder, self.name, self._es = config, Path(folder), name, config.agent
        self._on_progress = on_progress or (lambda _done, _total, _text: None)
        self._workers = workers
        self._spec = _spec_of(config)
        self._hidden = config.network.hidden
        self._listed = len(config.scenarios) * len(config.validation_seeds)  # workloads that choose it, but drawn ones
        self._state = _first_state(config, self._es)
        packages = {name: version(name) for name in ("numpy", "numba")}
        self._run = RunFolder(self.folder, config, command, packages)  # not before: bad input leaves nothing behind
        self.progress = Progress(phase="learning")
        self.resumes_at: int | None = None
        self._seen = seen_weights(self._hidden, distribution=config.network.distribution)
        self._best = self._average()
        self._began = time.monotonic()
        self._resume()

    def run(self) -> AgentDescription:
        """Train to the end, and give the description of the agent that is kept: the best one evaluated."""
        _ = self.references
        steered = SteeringPolicy(spec=self._spec, weights=self._best.astype(np.float32), hidden=self._hidden)
        validate(self.config, steered, validation_places(self.config)[0])  # here first: workers find it compiled
        with Workers(self.config, self._spec, self._workers) as self._pool:
            if not self.progress.curve:
                self._evaluate()
            try:
                self._learn()
            except KeyboardInterrupt:
                self._write_checkpoint()
                raise
        self.progress.phase = "done"
        self._write_checkpoint()
        write_atomically(self.folder / CURVE, csv_of(self.progress.curve))
        self._run.record["warnings"] = self.warnings
        self._run.write_record()
        return self._save_agent()

    @property
    def references(self) -> dict[str, float]:
        """Mean costs of STS-X, STS and EDF on the validation workloads [€]; run once, when first asked for."""
        record = self._run.record
        if "base_eur_each" not in record:
            names = reference_names(self.config)
            self._report(f"measuring {', '.join(names)}")
            costs = {name: validation_costs(self.config, make_policy(name)) for name in names}
            record["references"] = {name: float(cost[: self._listed].mean()) for name, cost in costs.items()}
            record["base_eur_each"] = costs[BASE].tolist()
            self._run.write_record()
        known: dict[str, float] = record["references"]
        return known

    @property
    def warnings(self) -> list[str]:
        """What speaks against the best agent so far, and what to try."""
        return warnings_of(self.config, self.progress.curve, self.references)

    def _learn(self) -> None:
        """Update the weights to the end, and evaluate them when it is time, also where an interrupt came before it."""
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
        """Try changes of the weights on some workloads, and follow what they cost."""
        es, seed, count = self._es, self.config.seed, self._es.pairs * self._es.workloads
        where = places(self.config, es.drawn, self._state.updates * count, count)
        candidates = self._state.candidates(es, seed) * self._seen.astype(np.float32)
        differences, rounds = self._pool.differences(candidates, where, es.most_jobs)
        done = self.progress.steps + int(rounds)
        state = Evolution(*(getattr(self._state, name) for name in Evolution.__slots__))
        state.update(es, seed, differences, done / self.config.steps)
        self._state, self.progress.learnt = state, done  # at once, so that an interrupt finds both or neither
        self._report(f"update {state.updates}")

    def _evaluate(self) -> None:
        """Run the agent on the validation workloads; keep it if it is the best so far."""
        totals, tardiness = self._pool.validate(self._average().astype(np.float32))
        relative = relative_cost(self.config, totals, np.array(self._run.record["base_eur_each"]))
        totals, tardiness = totals[: self._listed], tardiness[: self._listed]
        progress = self.progress
        better = relative < min((point["relative"] for point in progress.curve), default=np.inf)
        best, worse = (self._average(), 0) if better else (self._best, progress.worse + 1)
        self._count_seconds()
        costs = {"total_eur": float(totals.mean()), "tardiness_eur": float(tardiness.mean()), "relative": relative}
        point = {"steps": progress.steps, "seconds": round(progress.seconds, 1), "phase": progress.phase}
        point |= costs
        self._best, progress.worse = best, worse
        progress.curve.append(point)  # nothing is called since the line above: an interrupt finds all three or none
        write_atomically(self.folder / CURVE, csv_of(progress.curve))
        if better:
            self._save_agent()
        self._write_checkpoint()
        self._report("evaluated")

    def _average(self) -> NDArray[np.float64]:
        """Give the weights that are evaluated: the average, without those on what the agent may not see."""
        return self._state.average * self._seen

    def _save_agent(self) -> AgentDescription:
        description = AgentDescription(
            name=self.name,
            algorithm=self._es.algorithm,
            spec=self._spec,
            config=self.config.as_dict(),
            provenance=self._run.record["provenance"],
            curve=self.progress.curve,
        )
        return save_agent(self.folder / AGENT, description, arrays_of(self._best, self._hidden))

    def _resume(self) -> None:
        checkpoint = self._run.read_checkpoint()
        if checkpoint is None:
            return
        try:
            arrays, facts = checkpoint.get("state"), checkpoint.facts
            self._state = Evolution(**arrays, updates=int(facts["updates"]))
            self._best = checkpoint.arrays["best"]
            self.progress = Progress(**facts["progress"])
        except (KeyError, TypeError, ValueError) as error:
            path = str(self.folder / CHECKPOINT)
            raise InputError(path, str(error), "one of this version; remove it to begin anew") from error
        self.resumes_at = self.progress.steps

    def _write_checkpoint(self) -> None:
        checkpoint, state = Checkpoint(), self._state
        checkpoint.facts["config"] = self.config.as_dict()
        checkpoint.put("state", {name: getattr(state, name) for name in Evolution.__slots__ if name != "updates"})
        checkpoint.arrays["best"] = self._best
        self._count_seconds()
        checkpoint.facts["updates"] = state.updates
        checkpoint.facts["progress"] = {name: getattr(self.progress, name) for name in Progress.__slots__}
        checkpoint.write(self.folder / CHECKPOINT)
        self.resumes_at = self.progress.steps

    def _count_seconds(self) -> None:
        now = time.monotonic()
        self.progress.seconds += now - self._began
        self._began = now

    def _report(self, text: str) -> None:
        self._on_progress(min(self.progress.steps, self.config.steps), self.config.steps, text)


def _first_state(config: TrainingConfig, es: EsConfig) -> Evolution:
    """Begin as STS-X, or as the agent to go on from.

    Raises:
        InputError: There is no such agent, or its network is another one.
    """
    if not es.begin:
        return Evolution.begin(config.network.hidden, config.seed)
    description, weights = load_agent(find_agent(es.begin))
    description.spec.check_features()
    if (description.spec.network, description.network.hidden) != ("steering", config.network.hidden):
        allowed = f"an agent that steers, with a hidden layer of {config.network.hidden}"
        raise InputError("agent.begin", f"{es.begin}: {description.network}", allowed)
    return Evolution.go_on(flat_of(weights, config.network.hidden))


def _spec_of(config: TrainingConfig) -> AgentSpec:
    """Give the spec of an agent that is trained on all these scenarios: it has met all their configurations."""
    most: dict[str, Any] = {"max_configurations": MOST_CONFIGURATIONS, "max_gpu_types": MOST_GPU_TYPES}
    configurations: dict[str, Configuration] = {}
    gpu_types: dict[str, GpuType] = {}
    instances = [make_instance(scenario.replace({"jobs.count": 1}), 0) for scenario in config.loaded_scenarios()]
    drawn = [place for place in validation_places(config) if place.scenario == DRAWN]
    for instance in instances + [validation_instance(config, place) for place in drawn]:
        configurations |= {each.name: each for each in instance.configurations}
        gpu_types |= {each.name: each for each in instance.gpu_types}
    return AgentSpec.of("steering", list(configurations.values()), list(gpu_types.values()), **most, **asdict(STEERED))
