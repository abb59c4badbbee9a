"""Samples charts, and the figures of a comparison; importing this needs matplotlib."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from gpusched_env.rendering.colours import ENERGY, GRID, INK, PAPER, SUBTLE, TARDINESS
from gpusched_env.rendering.gantt import gantt_figure
from gpusched_env.rendering.plotting import (
    Axes,
    ConstrainedLayoutEngine,
    Figure,
    FigureCanvasAgg,
    FuncFormatter,
    Line2D,
    Patch,
    figure_bytes,
    withStroke,
)
from gpusched_env.simulator import Result
from gpusched_experiments.report.chart import Chart, Panel, Series, styles_of
from gpusched_experiments.report.run_summary import RunSummary
from gpusched_experiments.report.statistics import PolicyStatistics

ZOOM = 4.0  # how many times costlier than the cheapest policy one must be for a second, zoomed panel
BOUNDS = (("clairvoyant bound", (0, (1.5, 1.5))), ("non-clairvoyant bound", (0, (5, 2))))


def cost_figure(
    rows: Sequence[PolicyStatistics], runs: Sequence[RunSummary], title: str, *, of_trace: bool = False
) -> Figure:
    """Draw each policy's mean cost, split into energy and tardiness, with whiskers and the bounds.

    Whiskers are 95 % bootstrap intervals of the mean total cost. If one policy costs a multiple of the best, a second
    panel shows the same bars on the scale of the cheap ones.

    Args:
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


def figure_files(name: str, figure: Figure, forms: Sequence[str]) -> dict[str, bytes]:
    return {f"{name}.{form}": figure_bytes(figure, form) for form in forms}


def gantt(result: Result) -> Figure:
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
    axes.tick_params(axis="x", labelsize=8)
    _bare(axes, "x")


def _legend(rows: Sequence[PolicyStatistics], bounds: int) -> list[Patch | Line2D]:
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


_BAND = "#F0E442"
_GRIDS: dict[str, Literal["x", "y"]] = {"bars": "y", "dots": "x"}  # of other panels both
DARK = 2.0
_RATIOS = np.array([1.0, 1.05, 1.2, 1.5, 2.0, 5.0, 10.0, 50.0, 200.0, 1000.0, 10000.0])
_SAVINGS = np.array([-10.0, -1.0, -0.5, -0.2, -0.05, 0.0, 0.05, 0.2, 0.5, 0.8])
"""The ratio at which a map is darkest, if it has none that is larger."""
_TICKS = (-100.0, -30.0, -10.0, -3.0, -1.0, -0.75, -0.5, -0.25, 0.0, 0.25, 0.5, 0.75, 1.0)
"""Of shares that are saved where losses beyond 100 % are drawn on a logarithmic scale."""
_DASHES = ((0, (5, 2)), (0, (1.5, 1.5)), (0, (5, 2, 1.5, 2)))  # of levels


def chart_files(chart: Chart, name: str = "figure") -> dict[str, bytes]:
    return {f"{name}.svg": figure_bytes(chart_figure(chart), "svg")}


def chart_figure(chart: Chart) -> Figure:
    """Draw the chart."""
    columns = max(len(row) for row in chart.rows)
    size = (chart.panel_inches[0] * columns + 0.4, chart.panel_inches[1] * len(chart.rows) + 1.0)
    layout = ConstrainedLayoutEngine(rect=(0.01, 0.01, 0.98, 1 - 0.85 / size[1]), hspace=0.06, wspace=0.04)
    figure = Figure(figsize=size, dpi=130, facecolor=PAPER, layout=layout)
    FigureCanvasAgg(figure)
    styles = styles_of(series.name for row in chart.rows for panel in row for series in panel.series)
    grid = figure.subplots(len(chart.rows), columns, squeeze=False)
    for axes_row, panels in zip(grid, chart.rows, strict=True):
        for axes in axes_row[len(panels) :]:
            axes.set_visible(False)
        for axes, panel in zip(axes_row, panels, strict=False):
            draw = {"map": _draw_map, "dots": _draw_dots}.get(panel.kind, _draw_upright)
            draw(axes, panel, styles)
            _dress(axes, panel)
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


def _draw_upright(axes: Axes, panel: Panel, styles: dict[str, tuple[str, str]]) -> None:
    """Draw lines or bars, with what was reported behind them, and scale the axes."""
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
        axes.set_xticks(_places(panel))
        axes.set_xticks([], minor=True)
    elif panel.kind == "lines" and 0 < len(places := _places(panel)) <= FEW:
        axes.set_xticks(places)
    if "y" in panel.logarithmic:
        axes.set_yscale("log")
    elif panel.percent:
        axes.axhline(0.0, color=SUBTLE, linewidth=0.8, zorder=1)
    else:
        axes.set_ylim(bottom=min(0.0, axes.get_ylim()[0]))
    if panel.y_range is not None:
        axes.set_ylim(*panel.y_range)


FEW = 6
"""Places on an axis that are all ticks."""


def _places(panel: Panel) -> list[float]:
    return sorted({float(x) for series in panel.series for x, _ in series.points})


def _draw_line(axes: Axes, series: Series, colour: str, mark: str) -> None:
    places = [x for x, _ in series.points]
    values = [estimate.value for _, estimate in series.points]
    ends = [estimate.interval or (estimate.value, estimate.value) for _, estimate in series.points]
    axes.fill_between(places, [e[0] for e in ends], [e[1] for e in ends], color=colour, alpha=0.16, linewidth=0)
    axes.plot(places, values, color=colour, marker=mark, markersize=4, linewidth=1.4, label=series.name, zorder=3)


def _draw_dots(axes: Axes, panel: Panel, styles: dict[str, tuple[str, str]]) -> None:
    """Draw estimates with their intervals in rows, the first category above; losses beyond 100 % on a log scale."""
    step, ends = 0.7 / max(1, len(panel.series)), [0.0]
    for index, series in enumerate(panel.series):
        offset = (index - (len(panel.series) - 1) / 2) * step
        rows = [panel.categories.index(str(x)) + offset for x, _ in series.points]
        values, whiskers = _whiskers(series)
        colour, mark = styles[series.name]
        axes.errorbar(
            values, rows, xerr=whiskers, fmt=mark, label=series.name, color=colour, ecolor=colour, elinewidth=1.2,
            capsize=2.5, markersize=5.5, zorder=3,
        )  # fmt: skip
        ends += [value + side for value, low, high in zip(values, *whiskers, strict=True) for side in (-low, high)]
    for row in range(1, len(panel.categories), 2):
        axes.axhspan(row - 0.5, row + 0.5, color=GRID, alpha=0.35, linewidth=0, zorder=0)
    axes.axvline(0.0, color=SUBTLE, linewidth=1.0, zorder=1)
    axes.set_yticks(range(len(panel.categories)), list(panel.categories))
    axes.set_ylim(len(panel.categories) - 0.5, -0.5)
    if min(ends) < -1.0:
        low, high = 1.3 * min(ends), max(ends) + 0.1
        axes.set_xscale("symlog", linthresh=1.0, linscale=1.5)
        axes.set_xticks([tick for tick in _TICKS if low <= tick <= high])
        axes.set_xticks([], minor=True)
        axes.set_xlim(low, high)


def _whiskers(series: Series) -> tuple[list[float], list[list[float]]]:
    values = [estimate.value for _, estimate in series.points]
    ends = [estimate.interval or (estimate.value, estimate.value) for _, estimate in series.points]
    low = [max(0.0, value - end[0]) for value, end in zip(values, ends, strict=True)]
    return values, [low, [max(0.0, end[1] - value) for value, end in zip(values, ends, strict=True)]]


def _draw_bars(axes: Axes, panel: Panel, styles: dict[str, tuple[str, str]]) -> None:
    names = list(dict.fromkeys(str(x) for series in panel.series for x, _ in series.points))
    width = 0.8 / max(1, len(panel.series))
    for index, series in enumerate(panel.series):
        offset = (index - (len(panel.series) - 1) / 2) * width
        places = [names.index(str(x)) + offset for x, _ in series.points]
        values, whiskers = _whiskers(series)
        axes.bar(places, values, 0.92 * width, color=styles[series.name][0], label=series.name, zorder=2)
        axes.errorbar(places, values, yerr=whiskers, fmt="none", ecolor=INK, elinewidth=0.9, capsize=2, zorder=3)
    axes.set_xticks(range(len(names)), names, rotation=30, ha="right", fontsize=8)


def _shade(ratios: Any, most: float) -> Any:
    """Return shades from -1 to 1, by the root of the logarithm: so both small and large ratios can be told apart."""
    logs = np.log(ratios) / most
    return np.sign(logs) * np.sqrt(np.abs(logs))


def _draw_map(axes: Axes, panel: Panel, _: dict[str, tuple[str, str]]) -> None:
    """Draw coloured cells with their figures: pale is a ratio of 1, dark the largest, red is a loss."""
    columns = {name: place for place, name in enumerate(panel.categories)}
    values = np.full((len(panel.series), len(columns)), np.nan)
    for row, series in enumerate(panel.series):
        for name, estimate in series.points:
            values[row, columns[str(name)]] = estimate.value
    ratios = 1.0 / (1.0 - values) if panel.percent else values
    most = float(np.nanmax(np.abs(np.log(ratios)), initial=np.log(DARK)))
    shade = _shade(ratios, most)
    look = ("RdBu", -1.15) if panel.percent else ("Blues", 0.0)
    image = axes.imshow(shade, cmap=look[0], vmin=look[1], vmax=1.15, aspect="auto")
    ticks = 1.0 / (1.0 - _SAVINGS) if panel.percent else _RATIOS
    ticks = ticks[(ticks <= np.nanmax(ratios)) & (ticks >= np.nanmin(ratios))]
    names = [f"{100.0 * (1.0 - 1.0 / tick):+.0f} %" if panel.percent else f"{tick:g}" for tick in ticks]
    bar = axes.figure.colorbar(image, ax=axes, fraction=0.03, pad=0.01)
    bar.set_ticks(_shade(ticks, most).tolist(), labels=names)
    bar.ax.tick_params(length=0, labelcolor=INK, labelsize=8)
    bar.outline.set_visible(False)
    for (row, column), value in np.ndenumerate(values):
        text = "" if np.isnan(value) else _cell_text(value, percent=panel.percent)
        weight = "bold" if value == 1.0 and not panel.percent else "normal"
        colour = PAPER if abs(shade[row, column]) > 0.6 else INK
        axes.text(column, row, text, ha="center", va="center", fontsize=7.5, fontweight=weight, color=colour)
    axes.set_xticks(range(len(columns)), list(columns), rotation=35, ha="right", rotation_mode="anchor")
    axes.set_yticks(range(len(panel.series)), [series.name for series in panel.series])
    axes.tick_params(length=0, labelcolor=INK, labelsize=8)
    axes.spines[:].set_visible(False)


def _cell_text(value: float, *, percent: bool) -> str:
    if percent:
        return f"{100.0 * value:+z.1f}" if abs(value) < 0.9995 else f"{100.0 * value:+,.0f}"
    return f"{value:.2f}" if value < 9.995 else f"{value:,.1f}"


def _dress(axes: Axes, panel: Panel) -> None:
    axes.set_title(panel.title, fontsize=9.5, color=INK, loc="left")
    if panel.kind == "map":
        return
    scale = " (losses beyond 100 %: logarithmic)" if axes.get_xscale() == "symlog" else ""
    axes.set_xlabel(panel.x_label + scale, fontsize=8.5, color=INK)
    axes.set_ylabel(panel.y_label, fontsize=8.5, color=INK)
    measured = axes.xaxis if panel.kind == "dots" else axes.yaxis
    measured.set_major_formatter(
        FuncFormatter(lambda value, _: f"{100 * value:g} %" if panel.percent else _plain(value))
    )
    if panel.kind == "lines":
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: _plain(value)))
    axes.tick_params(labelsize=8, which="both")
    _bare(axes, _GRIDS.get(panel.kind, "both"))


def _bare(axes: Axes, grid: Literal["x", "y", "both"]) -> None:
    axes.tick_params(length=0, labelcolor=INK, which="both")
    axes.grid(visible=True, color=GRID, linewidth=0.6, axis=grid)
    axes.set_axisbelow(True)
    axes.spines[:].set_visible(False)


def _plain(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1e6 else f"{value:,g}"
