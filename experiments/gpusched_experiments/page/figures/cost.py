"""What every policy costs: energy and tardiness, with the interval of their sum."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gpusched_experiments.page.figure import HOVER, Drawing, Trace, View, plot_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpusched_experiments.report.run_summary import RunSummary
    from gpusched_experiments.report.statistics import PolicyStatistics

ZOOM = 4.0  # how many times dearer than the cheap ones a policy must be for a view up close
ROW_PX = 34


def cost_drawing(rows: Sequence[PolicyStatistics], runs: Sequence[RunSummary]) -> Drawing:
    """Draw each policy's mean cost as a bar, the cheapest on top.

    Args:
        rows: Statistics of every policy.
        runs: The runs behind them, for the bound.
    """
    ordered = sorted(rows, key=lambda row: row.total_eur)
    bound = float(np.mean([run.clairvoyant_eur for run in runs]))
    traces = (*_bars(ordered), *_interval(ordered))
    ends = [row.total_interval_eur[1] if row.total_interval_eur else row.total_eur for row in ordered]
    near = 1.3 * max(row.energy_eur for row in ordered)
    views = [View("all of it", traces, _layout(ordered, 1.12 * max(ends), bound), _height(ordered))]
    if max(ends) > ZOOM * near:
        views.append(View("up close", traces, _layout(ordered, near, bound), _height(ordered)))
    whiskers = "; whiskers are 95 % intervals of their sum" if ordered[0].total_interval_eur else ""
    dashed = " The dashed line is the clairvoyant bound, which no policy undercuts." if np.isfinite(bound) else ""
    return Drawing(
        name="cost",
        title="What every policy costs",
        caption=f"Mean cost of a run, split into energy and tardiness{whiskers}.{dashed}",
        alt="Bars: " + "; ".join(_words(row) for row in ordered),
        views=tuple(views),
        choice="scale",
    )


def _words(row: PolicyStatistics) -> str:
    return f"{row.policy} {row.energy_eur:,.2f} € energy and {row.tardiness_eur:,.2f} € tardiness"


def _bars(rows: Sequence[PolicyStatistics]) -> list[Trace]:
    names = [plot_text(row.policy) for row in rows]
    return [
        {
            "type": "bar", "orientation": "h", "name": name, "y": names, "width": 0.62,
            "x": [getattr(row, f"{name}_eur") for row in rows], "marker": {"color": f"var:{name}"},
            "hovertext": [
                f"{own}<br>{name} {getattr(row, f'{name}_eur'):,.2f} €" for own, row in zip(names, rows, strict=True)
            ],
            "hovertemplate": HOVER,
        }
        for name in ("energy", "tardiness")
    ]  # fmt: skip


def _interval(rows: Sequence[PolicyStatistics]) -> list[Trace]:
    """Mark the sums, with whiskers where there are intervals, and write them beside."""
    intervals = [row.total_interval_eur or (row.total_eur, row.total_eur) for row in rows]
    names = [plot_text(row.policy) for row in rows]
    whiskers: Trace = {
        "type": "scatter", "mode": "markers", "name": "95 % interval of the total", "y": names,
        "x": [row.total_eur for row in rows], "marker": {"color": "var:ink", "size": 1}, "hovertemplate": HOVER,
        "hovertext": [f"{name}<br>total {_total(row)}" for name, row in zip(names, rows, strict=True)],
        "error_x": {
            "type": "data", "symmetric": False, "color": "var:ink", "thickness": 1.2, "width": 4,
            "array": [max(0.0, high - row.total_eur) for (_, high), row in zip(intervals, rows, strict=True)],
            "arrayminus": [max(0.0, row.total_eur - low) for (low, _), row in zip(intervals, rows, strict=True)],
        },
    }  # fmt: skip
    texts: Trace = {
        "type": "scatter", "mode": "text", "y": names, "x": [high for _, high in intervals], "hoverinfo": "skip",
        "text": [f"  {row.total_eur:,.2f} €" for row in rows], "textposition": "middle right", "showlegend": False,
        "textfont": {"color": "var:ink", "size": 12}, "cliponaxis": False,
    }  # fmt: skip
    return [*([whiskers] if rows[0].total_interval_eur else []), texts]


def _total(row: PolicyStatistics) -> str:
    ends = row.total_interval_eur
    return f"{row.total_eur:,.2f} €" + (f" [{ends[0]:,.2f}, {ends[1]:,.2f}]" if ends else "")


def _height(rows: Sequence[PolicyStatistics]) -> int:
    return 120 + ROW_PX * len(rows)


def _layout(rows: Sequence[PolicyStatistics], end_eur: float, bound_eur: float) -> dict[str, Any]:
    line = {
        "type": "line", "xref": "x", "yref": "paper", "x0": bound_eur, "x1": bound_eur, "y0": 0, "y1": 1,
        "line": {"color": "var:ink", "width": 1.2, "dash": "dot"},
    }  # fmt: skip
    return {
        "barmode": "stack",
        "xaxis": {"title": {"text": "mean cost per run [€]"}, "range": [0.0, 1.1 * end_eur or 1.0]},
        "yaxis": {
            "autorange": False,
            "range": [len(rows) - 0.5, -0.5],
            "fixedrange": True,
            "showgrid": False,
            "type": "category",
        },
        "shapes": [line] if np.isfinite(bound_eur) else [],
        "legend": {"traceorder": "normal"},
        "margin": {"l": 20, "r": 20, "t": 36, "b": 44},
    }
