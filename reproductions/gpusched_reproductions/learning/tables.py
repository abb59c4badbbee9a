"""The tables, the curves, the summary and the figure of a study."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from gpusched_agents.files.storage import load_description
from gpusched_agents.study import VARIANTS, finished_training
from gpusched_env.provenance import provenance
from gpusched_experiments.report.estimate import Estimate, paired_saving, saving_over_trainings
from gpusched_experiments.report.record import where_made
from gpusched_experiments.report.run import Label, Runs
from gpusched_experiments.report.store import csv_lines, document_json
from gpusched_experiments.report.table import COUNT, MILLISECONDS, MONEY, PERCENT, RATIO, SHARE, Column, Table, markdown
from gpusched_reproductions.learning.plan import (
    AGAINST,
    AGENT,
    HELD_OUT,
    ON_VALIDATION,
    REFERENCES,
    VALIDATION,
    StudyPlan,
    TrainingRun,
)

COLUMNS = ("variant", "seed", "steps", "seconds", "phase", "total_eur", "tardiness_eur")
PANEL_INCHES = (5.3, 3.7)
MARGIN = 1.15  # by how much the close view ends above the costliest reference policy


@dataclass(frozen=True, slots=True)
class Trained:
    """A training that has ended.

    Attributes:
        run: What was trained.
        curve: Its evaluations, in order: `steps`, `seconds`, `phase`, `total_eur`, `tardiness_eur` [€].
        steps: Decisions that it took; fewer than planned if it stopped early.
        seconds: Seconds that it took, over all sessions.
        weights_sha256: Hash of the weights of the agent that was kept.
    """

    run: TrainingRun
    curve: tuple[Mapping[str, Any], ...]
    steps: int
    seconds: float
    weights_sha256: str

    @property
    def kept(self) -> Mapping[str, Any]:
        """The evaluation of the agent that was kept: the one that cost least."""
        return min(self.curve, key=lambda point: float(point["total_eur"]))

    @property
    def imitated_eur(self) -> float | None:
        """The cost of the imitator with which learning began [€]; None without imitation or learning."""
        imitated = [float(point["total_eur"]) for point in self.curve if point["phase"] == "imitation"]
        both = self.run.config.imitation.steps and self.run.config.steps
        return min(imitated) if both and imitated else None

    def cost_at(self, steps: int) -> float:
        """Return the cost evaluated last [€]; after the end of the training, that of the agent that was kept."""
        if steps > self.curve[-1]["steps"]:
            return float(self.kept["total_eur"])
        return float([point for point in self.curve if point["steps"] <= steps][-1]["total_eur"])


def read_trained(run: TrainingRun, folder: Path) -> Trained:
    """Read what a training left in its folder.

    Raises:
        InputError: It has not finished there, or its files are not whole.
    """
    facts = finished_training(run.config, folder) or {}
    described = load_description(folder / AGENT)
    return Trained(run, tuple(described.curve), facts["steps"], facts["seconds"], described.weights_sha256)


def spread(values: Sequence[float]) -> Estimate:
    """Return the mean of these values, with the least and the greatest in the place of an interval."""
    return Estimate(sum(values) / len(values), (min(values), max(values)) if len(values) > 1 else None, len(values))


def curves_csv(trained: Sequence[Trained]) -> str:
    """Write every evaluation of every training, a line each."""
    points = ((each.run, point) for each in trained for point in each.curve)
    return csv_lines([COLUMNS, *([run.variant, run.seed, *(p[name] for name in COLUMNS[2:])] for run, p in points)])


def validation_eur(runs: Runs, policy: str) -> float:
    """Return the mean cost of a reference policy on the validation workloads [€]."""
    own = runs.where(policy, workloads=VALIDATION)
    return sum(own.by_seed("total_eur").values()) / len(own)


MEANS = ("energy_eur", "tardiness_eur", "total_eur", "late_jobs", "jobs", "decision_s")
TRAINS = ("torch", "stable-baselines3", "sb3-contrib")


def summary_json(plan: StudyPlan, trained: Sequence[Trained], runs: Runs, workers: int) -> str:
    """Write the summary of a study as JSON."""
    facts = {
        "steps": plan.steps,
        "training_seeds": plan.training_seeds,
        "test_seeds": plan.test_seeds,
        "base": plan.base.as_dict(),
        "variants": {name: _own_settings(plan, name) for name in plan.variants},
        **where_made(),
        "workers": workers,
        "training_packages": {name: _package_version(name) for name in TRAINS},
    }
    return document_json(
        "gpusched study",
        provenance(None, **facts),
        validation_eur={name: validation_eur(runs, name) for name in ON_VALIDATION},
        trainings=[_training(each) for each in trained],
        held_out=_held_out(runs.where(workloads=HELD_OUT)),
    )


def _own_settings(plan: StudyPlan, name: str) -> dict[str, Any]:
    config = VARIANTS[name].config(plan.base, plan.steps, 0)
    return {
        "title": VARIANTS[name].title,
        "imitation.steps": config.imitation.steps,
        "steps": config.steps,
        "network.kind": config.network.kind,
        "network.distribution": config.network.distribution,
    }


def _training(trained: Trained) -> dict[str, Any]:
    return {
        "variant": trained.run.variant,
        "seed": trained.run.seed,
        "decisions": trained.steps,
        "planned_decisions": trained.run.decisions,
        "seconds": trained.seconds,
        "kept_at": trained.kept["steps"],
        "validation_eur": trained.kept["total_eur"],
        "weights_sha256": trained.weights_sha256,
    }


def _held_out(runs: Runs) -> list[dict[str, Any]]:
    """Return the means of every policy and training on every scenario."""
    return [
        {
            "policy": group.policy,
            **group.labels,
            "seeds": len(group.own),
            **{name: sum(group.own.by_seed(name).values()) / len(group.own) for name in MEANS},
        }
        for group in runs.groups("scenario")
    ]


def _package_version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


@dataclass(frozen=True, slots=True, eq=False)
class _Line:
    """A variant or a reference policy on some workloads.

    Attributes:
        name: Its name.
        runs: All runs on these workloads.
        own: Its own, for each of its trainings.
        trained: Its trainings.
    """

    name: str
    runs: Runs
    own: tuple[Runs, ...]
    trained: tuple[Trained, ...] = ()

    @property
    def title(self) -> str:
        return VARIANTS[self.name].title if self.name in VARIANTS else self.name

    def mean(self, of: Callable[[Trained], float]) -> float | None:
        """Return the mean over the trainings, if there are any."""
        return sum(map(of, self.trained)) / len(self.trained) if self.trained else None


def ablation_table(plan: StudyPlan, trained: Sequence[Trained], runs: Runs) -> Table:
    """Make the table of the variants over all scenarios, reference policies first."""
    columns = (
        VARIANT,
        Column("trainings", "trainings", lambda line: len(line.trained) or None, COUNT),
        Column("decisions", "decisions each", lambda line: line.mean(lambda each: each.steps), COUNT),
        Column("kept_at", "agent kept at", _kept_at, COUNT, interval=True),
        Column("minutes", "minutes each", _minutes, RATIO),
        *_validation_columns(runs),
        *FIGURES,
        *((_over_constants(runs, plan),) if BEST in plan.variants else ()),
    )
    notes = (
        f"Means over {_scenarios(plan)}; number of workloads of each: {len(plan.test_seeds)}.",
        "Neither training nor the choice of the agents that are kept saw them; all ran on the same ones.",
        "In brackets the least and the greatest of the trainings, which differ by their seed alone.",
        f"Saved: 1 - (sum of total costs) / (sum of those of {AGAINST}), the mean over scenarios.",
        "Decisions and minutes: means over the trainings, which end early when nothing gets better.",
        "Kept at: decisions after which the agent that costs least on the validation workloads was evaluated.",
        "Validation €: mean cost there of the imitator with which learning begins, of the last agent, of the kept one.",
    )
    lines = _lines(plan, runs.where(workloads=HELD_OUT), trained)
    return Table.of("Held-out workloads, all scenarios", columns, lines, notes)


def _validation_columns(runs: Runs) -> tuple[Column[_Line], ...]:
    """Return the columns on what learning makes of its imitation, on the validation workloads."""

    def imitated(line: _Line) -> Estimate | None:
        costs = [each.imitated_eur for each in line.trained]
        return spread([cost for cost in costs if cost is not None]) if costs and None not in costs else None

    def end(line: _Line) -> Estimate | None:
        return spread([float(each.curve[-1]["total_eur"]) for each in line.trained]) if line.trained else None

    def kept(line: _Line) -> Estimate:
        costs = [float(each.kept["total_eur"]) for each in line.trained]
        return spread(costs or [validation_eur(runs, line.name)])

    titles = {"imitated": imitated, "at_the_end": end, "kept": kept}
    return tuple(
        Column(f"{name}_eur", f"validation €, {name.replace('_', ' ')}", of, MONEY, interval=True)
        for name, of in titles.items()
    )


BEST = "best-constants"  # the variant that the others are compared with, if it is there


def costs_over_base(runs: Runs, plan: StudyPlan, name: str) -> list[list[float]]:
    """Return the costs of each training of a variant, or of a reference policy, on each held-out seed, (T, S).

    Costs of a scenario are over the mean of STS-X there, so all scenarios count the same; they are added.
    """
    own = [f"{name}-{seed}" for seed in plan.training_seeds] if name in plan.variants else [name]

    def relative(policy: str, scenario: str) -> list[float]:
        base = runs.where("sts-x", workloads=HELD_OUT, scenario=scenario).by_seed("total_eur")
        found = runs.where(policy, workloads=HELD_OUT, scenario=scenario).by_seed("total_eur")
        return [found[seed] * len(base) / sum(base.values()) for seed in plan.test_seeds]

    each = (zip(*(relative(policy, scenario) for scenario in plan.base.scenarios), strict=True) for policy in own)
    return [[sum(costs) for costs in one] for one in each]


def _over_constants(runs: Runs, plan: StudyPlan) -> Column[_Line]:
    """Return what is saved against the best constants, with an interval over trainings and seeds."""
    bar = costs_over_base(runs, plan, BEST)

    def saved(line: _Line) -> Estimate | None:
        return None if line.name == BEST else saving_over_trainings(costs_over_base(runs, plan, line.name), bar)

    return Column("over_constants", f"saved against {VARIANTS[BEST].title}, 95 %", saved, PERCENT, interval=True)


def scenario_table(plan: StudyPlan, runs: Runs) -> Table:
    """Make the table of the variants, scenario by scenario."""
    scenario: Column[_Line] = Column("scenario", "scenario", lambda line: line.runs.labels("scenario")[0])
    held_out = (runs.where(workloads=HELD_OUT, scenario=name) for name in plan.base.scenarios)
    return Table.of(
        "Held-out workloads, scenario by scenario",
        (scenario, VARIANT, *FIGURES),
        (line for some in held_out for line in _lines(plan, some)),
        ("In brackets the least and the greatest of the trainings.",),
    )


def page(plan: StudyPlan, tables: Sequence[Table]) -> str:
    """Write `table.md`."""
    question = (
        f"Does it learn, and from what? Every variant is trained {_times(len(plan.training_seeds))} for up to "
        f"{plan.steps:,} decisions on {_scenarios(plan)}. Of each training the agent that costs least on the "
        "validation workloads is kept, and run here."
    )
    return "\n".join([f"## Learning, part by part\n\n{question}\n", *map(markdown, tables)])


def _scenarios(plan: StudyPlan) -> str:
    """Name the scenarios, and what was changed in all of them."""
    names, changed = ", ".join(plan.base.scenarios), plan.base.scenario_settings
    settings = ", ".join(f"{name} = {value}" for name, value in changed.items())
    return f"{names} (with {settings})" if settings else names


def _lines(plan: StudyPlan, runs: Runs, trained: Sequence[Trained] = ()) -> list[_Line]:
    """List the reference policies and the variants."""
    lines = [_Line(name, runs, (runs.where(name),)) for name in REFERENCES]
    for name in plan.variants:
        own = tuple(runs.where(f"{name}-{seed}") for seed in plan.training_seeds)
        lines.append(_Line(name, runs, own, tuple(each for each in trained if each.run.variant == name)))
    return lines


def _kept_at(line: _Line) -> Estimate | None:
    return spread([float(each.kept["steps"]) for each in line.trained]) if line.trained else None


def _minutes(line: _Line) -> float | None:
    seconds = line.mean(lambda each: each.seconds)
    return None if seconds is None else seconds / 60.0


def _mean(name: str) -> Callable[[_Line], Estimate]:
    return lambda line: spread([_sum(each, name) / len(each) for each in line.own])


def _ratio(name: str, to: str) -> Callable[[_Line], Estimate]:
    return lambda line: spread([_sum(each, name) / _sum(each, to) for each in line.own])


def _sum(runs: Runs, name: str) -> float:
    return sum(runs.by_seed(name).values())


def _saved(line: _Line) -> Estimate | None:
    """Return the share of the reference's total cost that is saved, the mean over scenarios."""
    if line.name == AGAINST:
        return None
    scenarios = line.runs.labels("scenario")
    against = line.runs.where(AGAINST)

    def saved(own: Runs, name: Label) -> float:
        cost, reference_cost = ([_sum(each.where(scenario=name), "total_eur")] for each in (own, against))
        return paired_saving(cost, reference_cost).value

    return spread([sum(saved(own, name) for name in scenarios) / len(scenarios) for own in line.own])


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times, with other seeds,"


VARIANT: Column[_Line] = Column("variant", "variant", lambda line: line.title)
FIGURES: tuple[Column[_Line], ...] = (
    Column("total_eur", "total €", _mean("total_eur"), MONEY, interval=True),
    Column("tardiness_eur", "tardiness €", _mean("tardiness_eur"), MONEY, interval=True),
    Column("late_share", "late jobs", _ratio("late_jobs", "jobs"), SHARE, interval=True),
    Column("saving", f"saved against {AGAINST}", _saved, PERCENT, interval=True),
    Column("decision_s_per_job", "deciding, a job [ms]", _ratio("decision_s", "jobs"), MILLISECONDS, interval=True),
)
