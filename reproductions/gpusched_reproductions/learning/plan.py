"""A study: its plan, what it trains, and the runs on workloads that no training saw."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path

from gpusched_agents.files.storage import PREFIX
from gpusched_agents.study import USUAL_VARIANTS, VARIANTS
from gpusched_agents.training.config import TrainingConfig
from gpusched_env.envs.source import FIRST_SAMPLED_SEED, shape_of
from gpusched_env.errors import InputError
from gpusched_env.model import checks
from gpusched_env.workload import make_instance
from gpusched_experiments.report.cell import Cell, each_once, origin, run_cells
from gpusched_experiments.report.processes import PROCESSES, Backend
from gpusched_experiments.report.run import Runs
from gpusched_experiments.report.store import Store, stored_values

REFERENCES = ("edf", "sts", "sts-x")
AGAINST = "sts"  # whose cost savings are shares of
ON_VALIDATION = REFERENCES  # whose cost on the validation workloads stands beside the curves


@dataclass(frozen=True, slots=True)
class TrainingRun:
    """One training of the study.

    Attributes:
        variant: Name of the variant.
        seed: Seed of the training.
        config: Its settings.
    """

    variant: str
    seed: int
    config: TrainingConfig

    @property
    def name(self) -> str:
        """Name of its folder, and of its agent."""
        return f"{self.variant}-{self.seed}"

    @property
    def decisions(self) -> int:
        """Decisions that it takes at most."""
        return self.config.imitation.steps + self.config.steps


@dataclass(frozen=True, slots=True)
class StudyPlan:
    """A study.

    Args:
        base: Settings that all trainings share.
        steps: Decisions of every training, ≥ 1: imitation and reinforcement learning together.
        variants: Names of the variants, one or more, each once.
        training_seeds: Seeds of the trainings of every variant, one or more, each once.
        test_seeds: Seeds of the held-out workloads, one or more, each once, none of them for validation.

    Raises:
        InputError: A value is out of its range, or stands twice; a scenario is not there; or a perceptron is to learn
            on clusters that differ.
    """

    base: TrainingConfig
    steps: int = 1_000_000
    variants: tuple[str, ...] = USUAL_VARIANTS
    training_seeds: tuple[int, ...] = (0, 1, 2)
    test_seeds: tuple[int, ...] = tuple(range(20))

    def __post_init__(self) -> None:
        checks.whole("steps", self.steps)
        for name in self.variants:
            if name not in VARIANTS:
                raise InputError("variants", name, f"one or more of {', '.join(VARIANTS)}")
        for name in ("variants", "training_seeds", "test_seeds"):
            each_once(name, getattr(self, name))
        for seed in (*self.training_seeds, *self.test_seeds):
            checks.seed(seed)
        drawn = [seed for seed in self.test_seeds if seed >= FIRST_SAMPLED_SEED]
        if drawn:
            allowed = f"seeds below {FIRST_SAMPLED_SEED:,}: training draws its workloads from the others"
            raise InputError("test_seeds", drawn[0], allowed)
        seen = sorted(set(self.test_seeds) & set(self.base.validation_seeds))
        if seen:
            raise InputError("test_seeds", seen[0], "seeds that are not validation_seeds, which choose the agents kept")
        self._check_scenarios()

    def trainings(self) -> tuple[TrainingRun, ...]:
        """List the trainings: all variants with the first seed, then with the next."""
        return tuple(
            TrainingRun(name, seed, VARIANTS[name].config(self.base, self.steps, seed))
            for seed in self.training_seeds
            for name in self.variants
        )

    def _check_scenarios(self) -> None:
        """Check what would show only when the first perceptron is about to be trained."""
        names = self.base.scenarios
        shapes = {shape_of(make_instance(scenario, 0)) for scenario in self.base.loaded_scenarios()}
        if len(shapes) > 1 and any(VARIANTS[name].network == "mlp" for name in self.variants):
            raise InputError("scenarios", names, "scenarios with the same configurations, or no variant with an mlp")
        if self.base.envs < len(names):
            raise InputError("envs", self.base.envs, f"at least {len(names)}, one for each scenario")


def evaluated_often(base: TrainingConfig, steps: int, times: int) -> TrainingConfig:
    """Return the settings with so many evaluations over so many decisions."""
    return replace(base, evaluate_every=max(1, steps // times))


STORED, AGENT = "evaluations.csv", "agent"
HELD_OUT, VALIDATION = "held out", "validation"


def evaluate_all(
    plan: StudyPlan,
    folder: Path,
    workers: int,
    on_progress: Callable[[int, int], None],
    backend: Backend = PROCESSES,
) -> Runs:
    """Run the agent of every training, and the reference policies, on the held-out workloads.

    What is finished is stored in `folder` at once, and not run again unless the code or the agent has changed.

    Args:
        plan: The study.
        folder: Folder of the trainings.
        workers: Number of processes, ≥ 1.
        on_progress: Called with the number of finished runs, and of all.
        backend: What makes the processes.

    Returns:
        The runs, with labels `workloads` (held out or validation) and `scenario`; a policy is a reference policy or
        the name of a training. On the validation workloads there are the policies of `ON_VALIDATION` alone.

    Raises:
        InputError: The folder cannot be written, or holds a foreign file.
        WorkerError: A process ended early; what was finished is stored.
    """
    names = {f"{PREFIX}{folder / run.name / AGENT}": run.name for run in plan.trainings()}
    cells = {cell.key(origin(cell.policy)): cell for cell in _cells(plan, (*REFERENCES, *names))}
    store = Store(folder / STORED, ("workloads", "scenario"))
    stored = stored_values(store.path)
    known = {key: stored[key] for key in cells if key in stored}
    store.write((key, cells[key], values) for key, values in known.items())
    finished = count(len(known))
    on_progress(next(finished), len(cells))
    values = run_cells(cells, known, store, workers, lambda: on_progress(next(finished), len(cells)), backend)
    return Runs.of(
        (dict(cell.labels), names.get(cell.policy, cell.policy), cell.seed, values[key]) for key, cell in cells.items()
    )


def _cells(plan: StudyPlan, policies: tuple[str, ...]) -> Iterator[Cell]:
    sets = ((HELD_OUT, policies, plan.test_seeds), (VALIDATION, ON_VALIDATION, plan.base.validation_seeds))
    for workloads, names, seeds in sets:
        for name, scenario in zip(plan.base.scenarios, plan.base.loaded_scenarios(), strict=True):
            labels = (("workloads", workloads), ("scenario", name))
            for policy in names:
                for seed in seeds:
                    yield Cell(labels, scenario, policy, seed)
