"""Draws charts; importing this needs matplotlib."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

import numpy as np

from gpusched_agents.any_policy import is_agent, known_policies
from gpusched_baselines.registry import POLICIES
from gpusched_env.rendering.palette import GRID, INK, PAPER, SUBTLE
from gpusched_env.rendering.plotting import ConstrainedLayoutEngine, Figure, FigureCanvasAgg, FuncFormatter, rc_context

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpusched_env.rendering.plotting import Axes
    from gpusched_experiments.report.chart import Chart, Panel, Series

# Told apart by people who do not see all colours (after Okabe and Ito), and by their marks.
_STYLES = (
    ("#0072B2", "o"), ("#D55E00", "s"), ("#009E73", "^"), ("#CC79A7", "D"), ("#E69F00", "v"), ("#56B4E9", "P"),
    ("#6E6E6E", "X"), ("#8C510A", "<"), ("#332288", ">"),
)  # fmt: skip
_BAND = "#F0E442"
DARK = 2.0
"""The ratio from which on a map is darkest."""
_DASHES = ((0, (5, 2)), (0, (1.5, 1.5)), (0, (5, 2, 1.5, 2)))  # of levels


def chart_files(chart: Chart) -> dict[str, bytes]:
    """Draw the chart as the contents of `figure.png` and `figure.svg`; equal charts make equal files."""
    figure = chart_figure(chart)
    png, svg = io.BytesIO(), io.BytesIO()
    figure.savefig(png, format="png", metadata={"Software": "gpusched"})
    with rc_context({"svg.hashsalt": "gpusched"}):  # names in an SVG file are random without it
        figure.savefig(svg, format="svg", metadata={"Date": None, "Creator": "gpusched"})
    return {"figure.png": png.getvalue(), "figure.svg": svg.getvalue()}


def chart_figure(chart: Chart) -> Figure:
    """Draw the chart."""
    columns = max(len(row) for row in chart.rows)
    size = (chart.panel_inches[0] * columns + 0.4, chart.panel_inches[1] * len(chart.rows) + 1.0)
    layout = ConstrainedLayoutEngine(rect=(0.01, 0.01, 0.98, 1 - 0.85 / size[1]), hspace=0.06, wspace=0.04)
    figure = Figure(figsize=size, dpi=130, facecolor=PAPER, layout=layout)
    FigureCanvasAgg(figure)
    styles = _styles(chart)
    grid = figure.subplots(len(chart.rows), columns, squeeze=False)
    for axes_row, panels in zip(grid, chart.rows, strict=True):
        for axes in axes_row[len(panels) :]:
            axes.set_visible(False)
        for axes, panel in zip(axes_row, panels, strict=False):
            _draw(axes, panel, styles)
        _compare_heights(axes_row, panels)
    figure.text(0.12 / size[0], 1 - 0.12 / size[1], chart.title, fontsize=12, fontweight="bold", color=INK, va="top")
    handles: dict[str, Any] = {}
    for axes in figure.axes:
        for handle, name in zip(*axes.get_legend_handles_labels(), strict=True):
            handles.setdefault(name, handle)
    figure.legend(
        list(handles.values()), list(handles), ncols=9, loc="upper left", fontsize=8.5, frameon=False, labelcolor=INK,
        bbox_to_anchor=(0.05 / size[0], 1 - 0.4 / size[1]), columnspacing=1.4, handlelength=1.8,
    )  # fmt: skip
    return figure


def _compare_heights(axes_row: Sequence[Axes], panels: Sequence[Panel]) -> None:
    """Give panels of a row that show the same quantity the same scale, unless a panel has its own."""
    shared = [(axes, panel.y_label) for axes, panel in zip(axes_row, panels, strict=False) if panel.y_range is None]
    for label in {label for _, label in shared}:
        alike = [axes for axes, own in shared if own == label]
        ends = [axes.get_ylim() for axes in alike]
        for axes in alike:
            axes.set_ylim(min(low for low, _ in ends), max(high for _, high in ends))


def _styles(chart: Chart) -> dict[str, tuple[str, str]]:
    """Give every series of the chart its colour and mark: policies their own, in every figure the same."""
    names = dict.fromkeys(series.name for row in chart.rows for panel in row for series in panel.series)
    fixed = {name: _STYLES[shipped.style] for name, shipped in POLICIES.items() if shipped.style is not None}
    after_them = [style for style in _STYLES if style not in fixed.values()]
    fixed |= dict(zip((name for name in known_policies() if is_agent(name)), after_them, strict=False))
    free = [style for style in _STYLES if style not in [fixed[name] for name in names if name in fixed]]
    others = [name for name in names if name not in fixed]
    return fixed | {name: (free or list(_STYLES))[i % len(free or _STYLES)] for i, name in enumerate(others)}


def _draw(axes: Axes, panel: Panel, styles: dict[str, tuple[str, str]]) -> None:
    if panel.kind == "map":
        _draw_map(axes, panel)
        return
    for band in panel.bands:
        axes.axhspan(band.low, band.high, color=_BAND, alpha=0.45, linewidth=0, label=band.name, zorder=0.5)
    for index, level in enumerate(panel.levels):
        dashes = _DASHES[index % len(_DASHES)]
        axes.axhline(level.value, color=INK, linewidth=1.1, linestyle=dashes, label=level.name, zorder=2.5)
    if panel.kind == "bars":
        _draw_bars(axes, panel, styles)
    else:
        for series in panel.series:
            _draw_line(axes, series, *styles[series.name])
    if "x" in panel.logarithmic:
        axes.set_xscale("log")
        axes.set_xticks(sorted({float(x) for series in panel.series for x, _ in series.points}))
        axes.set_xticks([], minor=True)
    if "y" in panel.logarithmic:
        axes.set_yscale("log")
    elif panel.percent:
        axes.axhline(0.0, color=SUBTLE, linewidth=0.8, zorder=1)
    else:
        axes.set_ylim(bottom=min(0.0, axes.get_ylim()[0]))
    if panel.y_range is not None:
        axes.set_ylim(*panel.y_range)
    _dress(axes, panel)


def _draw_line(axes: Axes, series: Series, colour: str, mark: str) -> None:
    places = [x for x, _ in series.points]
    values = [estimate.value for _, estimate in series.points]
    ends = [estimate.interval or (estimate.value, estimate.value) for _, estimate in series.points]
    axes.fill_between(places, [e[0] for e in ends], [e[1] for e in ends], color=colour, alpha=0.16, linewidth=0)
    axes.plot(places, values, color=colour, marker=mark, markersize=4, linewidth=1.4, label=series.name, zorder=3)


def _draw_bars(axes: Axes, panel: Panel, styles: dict[str, tuple[str, str]]) -> None:
    names = list(dict.fromkeys(str(x) for series in panel.series for x, _ in series.points))
    width = 0.8 / max(1, len(panel.series))
    for index, series in enumerate(panel.series):
        offset = (index - (len(panel.series) - 1) / 2) * width
        places = [names.index(str(x)) + offset for x, _ in series.points]
        values = [estimate.value for _, estimate in series.points]
        ends = [estimate.interval or (estimate.value, estimate.value) for _, estimate in series.points]
        low = [max(0.0, value - end[0]) for value, end in zip(values, ends, strict=True)]
        high = [max(0.0, end[1] - value) for value, end in zip(values, ends, strict=True)]
        axes.bar(places, values, 0.92 * width, color=styles[series.name][0], label=series.name, zorder=2)
        axes.errorbar(places, values, yerr=[low, high], fmt="none", ecolor=INK, elinewidth=0.9, capsize=2, zorder=3)
    axes.set_xticks(range(len(names)), names, rotation=30, ha="right", fontsize=8)


def _draw_map(axes: Axes, panel: Panel) -> None:
    """Draw ratios as coloured cells with their figures: pale is 1, dark is `DARK` or more."""
    columns = {name: place for place, name in enumerate(panel.categories)}
    ratios = np.full((len(panel.series), len(columns)), np.nan)
    for row, series in enumerate(panel.series):
        for name, estimate in series.points:
            ratios[row, columns[str(name)]] = estimate.value
    shade = np.log(ratios) / np.log(DARK)
    axes.imshow(shade, cmap="Blues", vmin=0.0, vmax=1.15, aspect="auto")
    for (row, column), value in np.ndenumerate(ratios):
        text = "" if np.isnan(value) else f"{value:.2f}" if value < 9.995 else f"{value:,.1f}"
        weight, colour = "bold" if value == 1.0 else "normal", PAPER if shade[row, column] > 0.6 else INK
        axes.text(column, row, text, ha="center", va="center", fontsize=7.5, fontweight=weight, color=colour)
    axes.set_title(panel.title, fontsize=9.5, color=INK, loc="left")
    axes.set_xticks(range(len(columns)), list(columns), rotation=35, ha="right", rotation_mode="anchor")
    axes.set_yticks(range(len(panel.series)), [series.name for series in panel.series])
    axes.tick_params(length=0, labelcolor=INK, labelsize=8)
    axes.spines[:].set_visible(False)


def _dress(axes: Axes, panel: Panel) -> None:
    axes.set_title(panel.title, fontsize=9.5, color=INK, loc="left")
    axes.set_xlabel(panel.x_label, fontsize=8.5, color=INK)
    axes.set_ylabel(panel.y_label, fontsize=8.5, color=INK)
    axes.yaxis.set_major_formatter(
        FuncFormatter(lambda value, _: f"{100 * value:g} %" if panel.percent else _plain(value))
    )
    if panel.kind == "lines":
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: _plain(value)))
    axes.tick_params(length=0, labelcolor=INK, labelsize=8, which="both")
    axes.grid(visible=True, color=GRID, linewidth=0.6, axis="y" if panel.kind == "bars" else "both")
    axes.set_axisbelow(True)
    for side in axes.spines.values():
        side.set_visible(False)


def _plain(value: float) -> str:
    """Write a number without an exponent."""
    return f"{value:,.0f}" if abs(value) >= 1e6 else f"{value:,g}"
