"""The figure of one training: what its agent cost at every evaluation, with what the reference policies cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gpusched_agents.training.config import TrainingConfig
from gpusched_experiments.report.chart import Chart, Level, Panel, series
from gpusched_experiments.report.estimate import Estimate

PANEL_INCHES = (6.6, 3.9)
ROOM = 0.12  # of the height that is shown, above and below what matters
RELATIVE, BASE = "relative", "sts-x"


def training_chart(
    config: TrainingConfig, curve: Sequence[Mapping[str, Any]], references: Mapping[str, float]
) -> Chart:
    """Make the figure of a training.

    What an untrained network costs, often a thousand times as much, is cut off. Where a steering agent learns on
    several scenarios, whose costs differ, it shows the mean ratio to STS-X's by which the agent is chosen.

    Args:
        config: The settings of the training.
        curve: Its evaluations, at least one.
        references: Mean costs of the reference policies on the validation workloads [€].
    """
    ratios = len(config.scenarios) > 1 and all(RELATIVE in point for point in curve)
    costs = [float(point[RELATIVE]) - 1.0 if ratios else float(point["total_eur"]) for point in curve]
    levels = (Level(0.0, BASE),) if ratios else tuple(Level(cost, name) for name, cost in references.items())
    seeds = len(config.validation_seeds)
    panel = Panel(
        title=f"{config.agent.algorithm}: the agent of the cheapest evaluation is kept",
        x_label="thousand decisions",
        y_label=f"mean cost over that of {BASE}" if ratios else f"mean cost, {seeds} validation workloads [€]",
        series=(series("agent", _points(curve, costs)),),
        percent=ratios,
        levels=levels,
        y_range=_shown(costs, [level.value for level in levels]),
    )
    return Chart(f"Training on {_place(config)}", ((panel,),), PANEL_INCHES)


def _points(curve: Sequence[Mapping[str, Any]], costs: Sequence[float]) -> list[tuple[float | str, Estimate]]:
    return [(point["steps"] / 1000.0, Estimate(cost, None, 1)) for point, cost in zip(curve, costs, strict=True)]


def _shown(costs: Sequence[float], levels: Sequence[float]) -> tuple[float, float]:
    """Give what is shown of the axis: every level, the least cost, and the costs that lie between them."""
    low, high = min([*costs, *levels]), max([min(costs), *levels])
    room = ROOM * (high - low or abs(high) or 1.0)
    return low - room, high + room


def _place(config: TrainingConfig) -> str:
    names = [name.removeprefix("track:") for name in config.scenarios]
    kind = "track" if names[0] != config.scenarios[0] else "scenario"
    return f"the {kind} {names[0]}" if len(names) == 1 else f"{len(names)} {kind}s"
