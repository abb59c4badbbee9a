"""The figure of an experiment or a training as values; `figures.py` draws it with matplotlib."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias

from gpusched_agents.any_policy import is_agent, known_policies
from gpusched_baselines.registry import POLICIES
from gpusched_experiments.report.estimate import Estimate

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from gpusched_agents.training.config import TrainingConfig


@dataclass(frozen=True, slots=True)
class Series:
    """One line, or the bars of one colour.

    Attributes:
        name: Its name in the legend; equal names have equal colours.
        points: Place on the horizontal axis (a number, or the name of a category) and estimate.
    """

    name: str
    points: tuple[tuple[float | str, Estimate], ...]


@dataclass(frozen=True, slots=True)
class Band:
    """A range that a source reported, shaded behind the series: its ends, and its name in the legend."""

    low: float
    high: float
    name: str


@dataclass(frozen=True, slots=True)
class Level:
    """A value to compare the series with, drawn as a line across the panel, and its name in the legend."""

    value: float
    name: str


@dataclass(frozen=True, slots=True)
class Panel:
    """One set of axes.

    Attributes:
        title: What it shows.
        x_label: Horizontal axis, with its unit.
        y_label: Vertical axis, with its unit.
        series: What is drawn.
        kind: Lines with bands, or bars with whiskers, for the intervals; or dots with whiskers, whose categories stand
            one below the other; or a map, a row for each series: of ratios ≥ 1, or of shares that are saved.
        logarithmic: Which axes are logarithmic: "", "x", "y" or "xy". Dots: none; losses beyond 100 % are drawn so.
        percent: Whether what is drawn is a share, written in percent.
        bands: What sources reported.
        levels: Values to compare the series with.
        y_range: The part of the vertical axis that is shown; what lies beyond is cut off.
        categories: Order of the columns of a map, and of dots from above.
    """

    title: str
    x_label: str
    y_label: str
    series: tuple[Series, ...]
    kind: Literal["lines", "bars", "dots", "map"] = "lines"
    logarithmic: Literal["", "x", "y", "xy"] = ""
    percent: bool = False
    bands: tuple[Band, ...] = ()
    levels: tuple[Level, ...] = ()
    y_range: tuple[float, float] | None = None
    categories: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Chart:
    """A figure: its title, its panels row by row, and the width and height of a panel [inches]."""

    title: str
    rows: tuple[tuple[Panel, ...], ...] = field(default_factory=tuple)
    panel_inches: tuple[float, float] = (3.6, 2.9)


class Drawing(Protocol):
    """What draws: the module `figures`, which needs matplotlib."""

    def chart_files(self, chart: Chart, name: str = "figure") -> dict[str, bytes]:
        """Draw the chart as the content of `NAME.svg`."""


def series(name: str, points: Iterable[tuple[float | str, Estimate]]) -> Series:
    return Series(name, tuple((x, estimate) for x, estimate in points if estimate.value == estimate.value))


Style: TypeAlias = tuple[str, str]
"""A colour, and a mark by matplotlib's name."""

# Told apart by people who do not see all colours (after Okabe and Ito), and by their marks.
STYLES: tuple[Style, ...] = (
    ("#0072B2", "o"), ("#D55E00", "s"), ("#009E73", "^"), ("#CC79A7", "D"), ("#E69F00", "v"), ("#56B4E9", "P"),
    ("#6E6E6E", "X"), ("#8C510A", "<"), ("#332288", ">"),
)  # fmt: skip


def styles_of(series: Iterable[str]) -> dict[str, Style]:
    names = dict.fromkeys(series)
    fixed = {name: STYLES[shipped.style] for name, shipped in POLICIES.items() if shipped.style is not None}
    after_them = [style for style in STYLES if style not in fixed.values()]
    fixed |= dict(zip((name for name in known_policies() if is_agent(name)), after_them, strict=False))
    free = [style for style in STYLES if style not in [fixed[name] for name in names if name in fixed]]
    others = [name for name in names if name not in fixed]
    return fixed | {name: (free or list(STYLES))[i % len(free or STYLES)] for i, name in enumerate(others)}


PANEL_INCHES = (6.6, 3.9)
MARGIN = 0.12  # of the height that is shown, above and below what matters
RELATIVE, BASE = "relative", "sts-x"


def training_chart(
    config: TrainingConfig, curve: Sequence[Mapping[str, Any]], references: Mapping[str, float]
) -> Chart:
    """Make the figure of a training.

    Where an agent learns on several scenarios, whose costs differ, it shows the mean ratio to STS-X's by which the
    agent is chosen. What a much costlier agent costs is cut off.
    """
    ratios = len(config.scenarios) > 1
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
    low, high = min([*costs, *levels]), max([min(costs), *levels])
    capacity = MARGIN * (high - low or abs(high) or 1.0)
    return low - capacity, high + capacity


def _place(config: TrainingConfig) -> str:
    names = [name.removeprefix("track:") for name in config.scenarios]
    kind = "track" if names[0] != config.scenarios[0] else "scenario"
    return f"the {kind} {names[0]}" if len(names) == 1 else f"{len(names)} {kind}s"
