"""The figure of a study: cost on the validation workloads against decisions, a line for every variant."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpusched_agents.study import VARIANTS
from gpusched_experiments.learning.curves import mean_curve
from gpusched_experiments.learning.evaluation import VALIDATION
from gpusched_experiments.learning.plan import ON_VALIDATION
from gpusched_experiments.published.chart import Chart, Level, Panel, Series, series

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpusched_experiments.learning.curves import Trained
    from gpusched_experiments.learning.plan import StudyPlan
    from gpusched_experiments.published.run import Runs

PANEL_INCHES = (5.3, 3.7)
ROOM = 1.15  # by how much the close view ends above the dearest reference policy


def curves_chart(plan: StudyPlan, trained: Sequence[Trained], runs: Runs) -> Chart:
    """Make the figure: all of it on a logarithmic axis, and up close what lies near the reference policies."""
    lines = tuple(_line(name, [each for each in trained if each.run.variant == name]) for name in plan.variants)
    levels = tuple(Level(validation_eur(runs, name), name) for name in ON_VALIDATION)
    low = min([*(estimate.value for line in lines for _, estimate in line.points), *(level.value for level in levels)])
    high = max(level.value for level in levels)
    x_label, cost = _decisions(plan), "mean cost on validation workloads [€]"
    whole = Panel("all of it", x_label, cost, lines, logarithmic="y", levels=levels)
    near = (low - 0.1 * (ROOM * high - low), ROOM * high)
    close = Panel("the same lines, up close", x_label, cost, lines, levels=levels, y_range=near)
    seeds = len(plan.training_seeds)
    several = f"the mean of {seeds} trainings, with their least and greatest cost" if seeds > 1 else "one training each"
    return Chart(f"Learning curves: {several}", ((whole, close),), PANEL_INCHES)


def validation_eur(runs: Runs, policy: str) -> float:
    """Give the mean cost of a reference policy on the validation workloads [€]."""
    own = runs.where(policy, workloads=VALIDATION)
    return sum(own.by_seed("total_eur").values()) / len(own)


def _line(name: str, trained: Sequence[Trained]) -> Series:
    return series(VARIANTS[name].title, ((steps / 1000.0, cost) for steps, cost in mean_curve(trained)))


def _decisions(plan: StudyPlan) -> str:
    """Name the horizontal axis, and say where imitation ends for the variants that go on by themselves."""
    both = [run.config for run in plan.runs() if run.config.imitation.steps and run.config.steps]
    until = f" (of those that do both, the first {both[0].imitation.steps / 1000.0:,g} imitate)" if both else ""
    return f"thousand decisions{until}"
