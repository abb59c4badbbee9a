"""The tables of a study: what every variant's agents cost on the held-out workloads."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpusched_agents.study import VARIANTS
from gpusched_experiments.learning.curves import spread
from gpusched_experiments.learning.evaluation import HELD_OUT
from gpusched_experiments.learning.plan import AGAINST, REFERENCES
from gpusched_experiments.published.table import Column, Table, markdown
from gpusched_experiments.report.statistics import saving

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpusched_experiments.learning.curves import Trained
    from gpusched_experiments.learning.plan import StudyPlan
    from gpusched_experiments.published.run import Runs
    from gpusched_experiments.published.table import Value


def ablation_table(plan: StudyPlan, trained: Sequence[Trained], runs: Runs) -> Table:
    """Make the table of the variants over all scenarios, reference policies first."""
    rows = [_row(plan, trained, runs.where(workloads=HELD_OUT), name) for name in (*REFERENCES, *plan.variants)]
    return Table(
        "Held-out workloads, all scenarios",
        (
            Column("variant", "variant"),
            Column("trainings", "trainings", "count"),
            Column("decisions", "decisions each", "count"),
            Column("kept_at", "agent kept at", "count", interval=True),
            Column("minutes", "minutes each", "ratio"),
            *_columns(),
        ),
        tuple(rows),
        (
            f"Means over {', '.join(plan.base.scenarios)}; number of workloads of each: {len(plan.test_seeds)}.",
            "Neither training nor the choice of the agents that are kept saw them; all ran on the same ones.",
            "In brackets the least and the greatest of the trainings, which differ by their seed alone.",
            f"Saved: 1 - (sum of total costs) / (sum of those of {AGAINST}), the mean over scenarios.",
            "Decisions and minutes: means over the trainings, which end early when nothing gets better.",
            "Kept at: decisions after which the agent that costs least on the validation workloads was evaluated.",
        ),
    )


def scenario_table(plan: StudyPlan, runs: Runs) -> Table:
    """Make the table of the variants, scenario by scenario."""
    held_out = {scenario: runs.where(workloads=HELD_OUT, scenario=scenario) for scenario in plan.base.scenarios}
    rows = [
        (scenario, _title(name), *_figures(plan, some, name))
        for scenario, some in held_out.items()
        for name in (*REFERENCES, *plan.variants)
    ]
    return Table(
        "Held-out workloads, scenario by scenario",
        (Column("scenario", "scenario"), Column("variant", "variant"), *_columns()),
        tuple(rows),
        ("In brackets the least and the greatest of the trainings.",),
    )


def page(plan: StudyPlan, tables: Sequence[Table]) -> str:
    """Write `table.md`."""
    scenarios = ", ".join(plan.base.scenarios)
    question = (
        f"Does it learn, and from what? Every variant is trained {_times(len(plan.training_seeds))} for up to "
        f"{plan.steps:,} decisions on {scenarios}. Of each training the agent that costs least on the validation "
        "workloads is kept, and run here."
    )
    return "\n".join([f"## Learning, part by part\n\n{question}\n", *map(markdown, tables)])


def _columns() -> tuple[Column, ...]:
    return (
        Column("total_eur", "total €", "money", interval=True),
        Column("tardiness_eur", "tardiness €", "money", interval=True),
        Column("late_share", "late jobs", "share", interval=True),
        Column("saving", f"saved against {AGAINST}", "percent", interval=True),
        Column("decision_s_per_job", "deciding, a job [ms]", "milliseconds", interval=True),
    )


def _row(plan: StudyPlan, trained: Sequence[Trained], runs: Runs, name: str) -> tuple[Value, ...]:
    own = [each for each in trained if each.run.variant == name]
    facts: list[Value] = [None] * 4
    if own:
        decisions = sum(each.steps for each in own) / len(own)
        minutes = sum(each.seconds for each in own) / len(own) / 60.0
        facts = [len(own), decisions, spread([float(each.kept["steps"]) for each in own]), minutes]
    return (_title(name), *facts, *_figures(plan, runs, name))


def _figures(plan: StudyPlan, runs: Runs, name: str) -> list[Value]:
    """Give what the columns of both tables say of a variant or a reference policy."""
    policies = [f"{name}-{seed}" for seed in plan.training_seeds] if name in plan.variants else [name]
    own = [runs.where(policy) for policy in policies]
    figures: list[Value] = [
        spread([_sum(each, "total_eur") / len(each) for each in own]),
        spread([_sum(each, "tardiness_eur") / len(each) for each in own]),
        spread([_sum(each, "late_jobs") / _sum(each, "jobs") for each in own]),
        None if name == AGAINST else spread([_saved(each, runs.where(AGAINST)) for each in own]),
        spread([_sum(each, "decision_s") / _sum(each, "jobs") for each in own]),
    ]
    return figures


def _sum(runs: Runs, name: str) -> float:
    return sum(runs.by_seed(name).values())


def _saved(runs: Runs, reference: Runs) -> float:
    """Give the share of the reference's total cost that is saved, the mean over scenarios."""
    scenarios = runs.labels("scenario")
    costs = [[_sum(each.where(scenario=name), "total_eur") for name in scenarios] for each in (runs, reference)]
    return sum(saving(own, other) for own, other in zip(*costs, strict=True)) / len(scenarios)


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times, with other seeds,"


def _title(name: str) -> str:
    return VARIANTS[name].title if name in VARIANTS else name
