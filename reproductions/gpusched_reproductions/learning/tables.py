"""The tables of a study: what every variant's agents cost on the held-out workloads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpusched_agents.study import VARIANTS
from gpusched_experiments.report.estimate import paired_saving
from gpusched_experiments.report.table import COUNT, MILLISECONDS, MONEY, PERCENT, RATIO, SHARE, Column, Table, markdown
from gpusched_reproductions.learning.curves import spread
from gpusched_reproductions.learning.evaluation import HELD_OUT
from gpusched_reproductions.learning.plan import AGAINST, REFERENCES

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gpusched_experiments.report.estimate import Estimate
    from gpusched_experiments.report.run import Label, Runs
    from gpusched_reproductions.learning.curves import Trained
    from gpusched_reproductions.learning.plan import StudyPlan


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
        """Give the mean over the trainings, if there are any."""
        return sum(map(of, self.trained)) / len(self.trained) if self.trained else None


def ablation_table(plan: StudyPlan, trained: Sequence[Trained], runs: Runs) -> Table:
    """Make the table of the variants over all scenarios, reference policies first."""
    columns = (
        VARIANT,
        Column("trainings", "trainings", lambda line: len(line.trained) or None, COUNT),
        Column("decisions", "decisions each", lambda line: line.mean(lambda each: each.steps), COUNT),
        Column("kept_at", "agent kept at", _kept_at, COUNT, interval=True),
        Column("minutes", "minutes each", _minutes, RATIO),
        *FIGURES,
    )
    notes = (
        f"Means over {_scenarios(plan)}; number of workloads of each: {len(plan.test_seeds)}.",
        "Neither training nor the choice of the agents that are kept saw them; all ran on the same ones.",
        "In brackets the least and the greatest of the trainings, which differ by their seed alone.",
        f"Saved: 1 - (sum of total costs) / (sum of those of {AGAINST}), the mean over scenarios.",
        "Decisions and minutes: means over the trainings, which end early when nothing gets better.",
        "Kept at: decisions after which the agent that costs least on the validation workloads was evaluated.",
    )
    lines = _lines(plan, runs.where(workloads=HELD_OUT), trained)
    return Table.of("Held-out workloads, all scenarios", columns, lines, notes)


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
    """Give the share of the reference's total cost that is saved, the mean over scenarios."""
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
