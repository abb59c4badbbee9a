"""The figures of a comparison; importing this needs matplotlib."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gpusched_env.rendering.gantt import gantt_figure
from gpusched_env.rendering.lanes import ENERGY, GRID, INK, PAPER, SUBTLE, TARDINESS
from gpusched_env.rendering.plotting import (
    ConstrainedLayoutEngine,
    Figure,
    FigureCanvasAgg,
    FuncFormatter,
    Line2D,
    Patch,
    figure_bytes,
    withStroke,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpusched_env.rendering.plotting import Axes
    from gpusched_env.simulator import Result
    from gpusched_experiments.report.run_summary import RunSummary
    from gpusched_experiments.report.statistics import PolicyStatistics

ZOOM = 4.0  # how many times dearer than the cheapest policy one must be for a second, zoomed panel
BOUNDS = (("clairvoyant bound", (0, (1.5, 1.5))), ("non-clairvoyant bound", (0, (5, 2))))


def cost_figure(
    rows: Sequence[PolicyStatistics], runs: Sequence[RunSummary], title: str, *, of_trace: bool = False
) -> Figure:
    """Draw each policy's mean cost, split into energy and tardiness, with whiskers and the bounds.

    Whiskers are 95 % bootstrap intervals of the mean total cost. If one policy costs a multiple of the best, a second
    panel shows the same bars on the scale of the cheap ones.

    Args:
        rows: Statistics of every policy.
        runs: The runs behind them, for the bounds.
        title: What was compared.
        of_trace: Whether a trace was replayed, for which the non-clairvoyant bound is none.
    """
    bounds = tuple(
        float(np.mean([getattr(run, name) for run in runs]))
        for name in ("clairvoyant_eur", *(() if of_trace else ("non_clairvoyant_eur",)))
    )
    highest = max(row.total_interval_eur[1] if row.total_interval_eur else row.total_eur for row in rows)
    near = max([*bounds, *(row.energy_eur for row in rows)]) * 1.3
    zoomed = highest > ZOOM * near
    size = (11.5 if zoomed else 8.0, 0.5 * len(rows) + 2.6)
    layout = ConstrainedLayoutEngine(rect=(0.01, 0.02, 0.97, 1 - 1.02 / size[1]))
    figure = Figure(figsize=size, dpi=150, facecolor=PAPER, layout=layout)
    FigureCanvasAgg(figure)
    panels = figure.subplots(1, 2 if zoomed else 1, sharey=True, squeeze=False)[0]
    _draw_panel(panels[0], rows, bounds, highest * 1.14)
    if zoomed:
        _draw_panel(panels[1], rows, bounds, near * 1.12)
        panels[0].set_title("all of it", fontsize=9, color=SUBTLE, loc="left")
        panels[1].set_title("the same bars, up close", fontsize=9, color=SUBTLE, loc="left")
    figure.text(0.15 / size[0], 1 - 0.15 / size[1], title, fontsize=12, fontweight="bold", color=INK, va="top")
    figure.legend(
        handles=_legend(rows, len(bounds)), ncols=5, loc="upper left", fontsize=8,
        frameon=False, bbox_to_anchor=(0.07 / size[0], 1 - 0.42 / size[1]), labelcolor=INK, columnspacing=1.4,
    )  # fmt: skip
    return figure


def figure_files(name: str, figure: Figure) -> dict[str, bytes]:
    """Give the figure as the contents of `NAME.png`, `NAME.svg` and `NAME.pdf`."""
    return {f"{name}.{form}": figure_bytes(figure, form) for form in ("png", "svg", "pdf")}


def gantt(result: Result) -> Figure:
    """Draw the Gantt chart of a run."""
    return gantt_figure(result)


def _draw_panel(axes: Axes, rows: Sequence[PolicyStatistics], bounds: Sequence[float], end_eur: float) -> None:
    places = np.arange(len(rows))
    energy = [row.energy_eur for row in rows]
    axes.barh(places, energy, 0.62, color=ENERGY, zorder=2)
    axes.barh(places, [row.tardiness_eur for row in rows], 0.62, left=energy, color=TARDINESS, zorder=2)
    for place, row in zip(places, rows, strict=True):
        right = row.total_eur
        if row.total_interval_eur is not None:
            low, right = row.total_interval_eur
            axes.errorbar(
                row.total_eur, place, xerr=[[max(0.0, row.total_eur - low)], [max(0.0, right - row.total_eur)]],
                color=INK, elinewidth=1.1, capsize=3, zorder=3,
            )  # fmt: skip
        fits = right <= 0.9 * end_eur
        label = axes.annotate(
            f"{row.total_eur:,.2f} €" if fits else f"{row.total_eur:,.0f} € \N{RIGHTWARDS ARROW}",
            (right if fits else end_eur, place), (5 if fits else -5, 0), textcoords="offset points", va="center",
            ha="left" if fits else "right", fontsize=8, color=INK if fits else PAPER, zorder=4,
        )  # fmt: skip
        label.set_path_effects([withStroke(linewidth=2.5, foreground=PAPER if fits else TARDINESS)])
    for bound, (_, dashes) in zip(bounds, BOUNDS, strict=False):
        axes.axvline(bound, color=INK, linewidth=1.1, linestyle=dashes, zorder=2.5)
    axes.set_xlim(0, end_eur)
    axes.set_ylim(len(rows) - 0.45, -0.55)
    axes.set_yticks(places, [row.policy for row in rows], fontsize=9, color=INK)
    axes.set_xlabel("mean cost per run [€]", fontsize=8.5, color=INK)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda euro, _: f"{euro:,g}"))
    axes.tick_params(length=0, labelcolor=INK)
    axes.tick_params(axis="x", labelsize=8)
    axes.grid(visible=True, axis="x", color=GRID, linewidth=0.6)
    axes.set_axisbelow(True)
    for side in axes.spines.values():
        side.set_visible(False)


def _legend(rows: Sequence[PolicyStatistics], bounds: int) -> list[Patch | Line2D]:
    """Name what is drawn."""
    handles: list[Patch | Line2D] = [Patch(color=ENERGY, label="energy")]
    if any(row.tardiness_eur > 0.0 for row in rows):
        handles.append(Patch(color=TARDINESS, label="tardiness"))
    handles += [
        Line2D([], [], color=INK, linewidth=1.1, linestyle=dashes, label=name) for name, dashes in BOUNDS[:bounds]
    ]
    if rows[0].total_interval_eur is not None:
        label = "95 % interval of the mean total"
        handles.append(Line2D([], [], color=INK, linewidth=1.1, marker="|", markersize=7, label=label))
    return handles
