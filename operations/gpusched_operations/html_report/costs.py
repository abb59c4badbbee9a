"""Figures of costs: what every policy costs, what it saves against another, and how it stands on a track."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from gpusched_experiments.report.estimate import LEAST_SEEDS, Estimate
from gpusched_experiments.report.run_summary import RunSummary
from gpusched_experiments.report.statistics import PolicyStatistics
from gpusched_operations.html_report.report_data import HOVER, HtmlDrawing, ReportView, Trace, plot_text
from gpusched_operations.html_report.verdict import costs_of, saving_against

ZOOM = 4.0  # how many times costlier than the cheap ones a policy must be for a view up close
MOST_LOSS = -1.0  # a policy that costs more than twice as much lies beyond the axis of savings at first
WIDE = 3.0  # beyond it the axis of ratios is logarithmic
TICKS = (1, 1.5, 2, 3, 5, 10, 20, 50, 100, 1000)
MARGIN = {"l": 20, "r": 10, "t": 10, "b": 46}


def cost_drawing(rows: Sequence[PolicyStatistics], runs: Sequence[RunSummary]) -> HtmlDrawing:
    """Draw each policy's mean cost as a bar, the cheapest on top; `runs` are those behind the statistics."""
    rows = sorted(rows, key=lambda row: row.total_eur)
    bound = float(np.mean([run.clairvoyant_eur for run in runs]))
    ends = [row.total_interval_eur or (row.total_eur, row.total_eur) for row in rows]
    traces, height = _bars(rows, ends), 120 + 34 * len(rows)
    costliest, near = max(high for _, high in ends), 1.3 * max(row.energy_eur for row in rows)
    views = [ReportView("all of it", traces, _cost_layout(rows, 1.12 * costliest, bound), height)]
    if costliest > ZOOM * near:
        views.append(ReportView("up close", traces, _cost_layout(rows, near, bound), height))
    whiskers = "; whiskers are 95 % intervals of their sum" if rows[0].total_interval_eur else ""
    dashed = " The dashed line is the clairvoyant bound, which no policy undercuts." if np.isfinite(bound) else ""
    return HtmlDrawing(
        name="cost",
        title="What every policy costs",
        caption=f"Mean cost of a run, split into energy and tardiness{whiskers}.{dashed}",
        alt="Bars: "
        + "; ".join(
            f"{row.policy} {row.energy_eur:,.2f} € energy and {row.tardiness_eur:,.2f} € tardiness" for row in rows
        ),
        views=tuple(views),
        choice="scale",
    )


def _bars(rows: Sequence[PolicyStatistics], ends: list[tuple[float, float]]) -> tuple[Trace, ...]:
    """Draw the two parts of each cost, whiskers at the sum where there are intervals, and the sum beside."""
    names, totals = [plot_text(row.policy) for row in rows], [row.total_eur for row in rows]
    parts = {part: [getattr(row, f"{part}_eur") for row in rows] for part in ("energy", "tardiness")}
    bars: list[Trace] = [
        {
            "type": "bar", "orientation": "h", "name": part, "y": names, "width": 0.62, "x": costs,
            "marker": {"color": f"var:{part}"}, "hovertemplate": HOVER,
            "hovertext": [f"{name}<br>{part} {cost:,.2f} €" for name, cost in zip(names, costs, strict=True)],
        }
        for part, costs in parts.items()
    ]  # fmt: skip
    interval: Trace = {
        "type": "scatter", "mode": "markers", "name": "95 % interval of the total", "y": names, "x": totals,
        "marker": {"color": "var:ink", "size": 1}, "error_x": _whiskers(totals, ends), "hovertemplate": HOVER,
        "hovertext": [
            f"{name}<br>total {total:,.2f} € [{low:,.2f}, {high:,.2f}]"
            for name, total, (low, high) in zip(names, totals, ends, strict=True)
        ],
    }  # fmt: skip
    texts: Trace = {
        "type": "scatter", "mode": "text", "y": names, "x": [high for _, high in ends], "hoverinfo": "skip",
        "text": [f"  {total:,.2f} €" for total in totals], "textposition": "middle right", "showlegend": False,
        "textfont": {"color": "var:ink", "size": 12}, "cliponaxis": False,
    }  # fmt: skip
    return (*bars, *([interval] if rows[0].total_interval_eur else []), texts)


def _cost_layout(rows: Sequence[PolicyStatistics], end_eur: float, bound_eur: float) -> dict[str, Any]:
    return {
        "barmode": "stack",
        "xaxis": {"title": {"text": "mean cost per run [€]"}, "range": [0.0, 1.1 * end_eur or 1.0]},
        "yaxis": {
            "autorange": False, "range": [len(rows) - 0.5, -0.5], "fixedrange": True, "showgrid": False,
            "type": "category",
        },
        "shapes": [_line(bound_eur, "var:ink", "dot")] if np.isfinite(bound_eur) else [],
        "legend": {"traceorder": "normal"},
        "margin": {"l": 20, "r": 20, "t": 36, "b": 44},
    }  # fmt: skip


def _line(x: float, colour: str, dash: str) -> dict[str, Any]:
    line = {"color": colour, "width": 1.2, "dash": dash}
    return {"type": "line", "xref": "x", "yref": "paper", "x0": x, "x1": x, "y0": 0, "y1": 1, "line": line}


def _whiskers(values: Sequence[float | None], ends: Sequence[tuple[float, float]]) -> dict[str, Any]:
    known = [(math.nan if value is None else value, *pair) for value, pair in zip(values, ends, strict=True)]
    above = [max(0.0, high - value) for value, _, high in known]
    below = [max(0.0, value - low) for value, low, _ in known]
    return {
        "type": "data", "symmetric": False, "color": "var:ink", "thickness": 1.2, "width": 4, "array": above,
        "arrayminus": below, "visible": any(above) or any(below),
    }  # fmt: skip


def _dots(
    values: Sequence[float | None],
    ends: Sequence[tuple[float, float]],
    texts: Sequence[tuple[str, str]],
    marker: dict[str, Any],
) -> tuple[Trace, dict[str, Any]]:
    """Draw a dot with its interval on a row each, and give the trace and the vertical axis.

    `ends` are the values themselves where there are no intervals; `texts` stand beside each row and at its dot.
    """
    places = list(range(len(values)))
    trace = {
        "type": "scatter", "mode": "markers", "x": list(values), "y": places, "showlegend": False, "marker": marker,
        "error_x": _whiskers(values, ends), "hovertext": [said for _, said in texts], "hovertemplate": HOVER,
    }  # fmt: skip
    axis = {
        "range": [len(values) - 0.5, -0.5], "fixedrange": True, "tickvals": places,
        "ticktext": [label for label, _ in texts],
    }  # fmt: skip
    return trace, axis


def savings_drawing(runs: Sequence[RunSummary], reference: str) -> HtmlDrawing | None:
    """Draw the savings of all policies against one of them, which can be chosen; None with fewer than two policies."""
    names = sorted({run.policy for run in runs}, key=lambda name: sum(costs_of(runs, name)))
    if len(names) < 2:
        return None
    others = [reference, *(name for name in names if name != reference)]
    savings = {other: {name: saving_against(runs, name, other) for name in names if name != other} for other in others}
    seeds = len(costs_of(runs, reference))
    brackets = "; lines are 95 % intervals, paired by seed" if seeds >= LEAST_SEEDS else ""
    return HtmlDrawing(
        name="savings",
        title="What every policy saves against another",
        caption=f"Share of the other policy's total cost that is saved{brackets}. To the left of 0 is costlier.",
        alt=f"Saved against {reference}: "
        + "; ".join(f"{name} {_saved_text(each)}" for name, each in savings[reference].items()),
        views=tuple(_savings_view(other, savings[other]) for other in others),
        choice="against",
    )


def _saved_text(saved: Estimate) -> str:
    if math.isnan(saved.value):
        return "n/a"
    ends = "" if saved.interval is None else f" [{saved.interval[0]:+.1%}, {saved.interval[1]:+.1%}]"
    return f"{saved.value:+.1%}{ends}"


def _savings_view(other: str, savings: dict[str, Estimate]) -> ReportView:
    values = [each.value if math.isfinite(each.value) else None for each in savings.values()]
    ends = [each.interval or (each.value, each.value) for each in savings.values()]
    known = [end for pair in ends for end in pair if math.isfinite(end)] or [0.0]
    low, high = max(min(0.0, *known), MOST_LOSS), max(0.0, *known)
    pad = 0.08 * (high - low or 1.0)
    colours = ["var:tardiness" if (value or 0.0) < 0.0 else "var:energy" for value in values]
    texts = []
    for name, saved in savings.items():
        said = _saved_text(saved)
        below = f"<span style='font-size:10.5px'>{said.replace(' [', '<br>[')}</span>"
        texts.append((f"{plot_text(name)}<br>{below}", f"{plot_text(name)} against {plot_text(other)}<br>{said}"))
    trace, rows = _dots(values, ends, texts, {"size": 9, "color": colours})
    layout = {
        "xaxis": {
            "title": {"text": f"saved against {plot_text(other)}"}, "tickformat": "+.0%",
            "range": [low - pad, high + pad], "zeroline": True,
        },
        "yaxis": rows,
        "margin": MARGIN,
    }  # fmt: skip
    return ReportView(other, (trace,), layout, 100 + 56 * len(values))


def standings_drawing(number: int, track: Mapping[str, str], rows: Sequence[Mapping[str, str]]) -> HtmlDrawing:
    """Draw the policies of a track, the best on top: their costs over that of the best."""
    name = track["track"]
    bound = float(track["bound_eur"]) / float(track["best_eur"])
    best = f"{rows[0]['policy']} costs least, {float(rows[0]['total_eur']):,.2f} €"
    lines = "; lines are 95 % intervals, paired by seed" if any(row["to_best_low"] for row in rows) else ""
    return HtmlDrawing(
        name=f"track-{number}",
        title=name,
        caption=f"Total cost over that of the best, on {track['seeds']} seeds{lines}. "
        f"{best} a run; no policy can cost less than {bound:.2f} times that (the dashed line).",
        alt=f"On {name} " + "; ".join(f"{row['policy']} {float(row['to_best']):.2f}" for row in rows),
        views=(_standings_view(name, rows, bound),),
    )


def _standings_view(name: str, rows: Sequence[Mapping[str, str]], bound: float) -> ReportView:
    ratios = [float(row["to_best"]) for row in rows]
    ends = [
        (float(row["to_best_low"] or ratio), float(row["to_best_high"] or ratio))
        for row, ratio in zip(rows, ratios, strict=True)
    ]
    known = [each for each in (bound, *ratios, *(end for pair in ends for end in pair)) if math.isfinite(each)]
    texts = []
    for row, (low, high) in zip(rows, ends, strict=True):
        policy, interval = plot_text(row["policy"]), f" [{low:.2f}, {high:.2f}]" if low < high else ""
        said = (
            f"{policy}: rank {plot_text(row['rank'])}<br>{float(row['total_eur']):,.2f} € a run<br>"
            f"{float(row['to_best']):.2f}{interval} times the best"
        )
        texts.append((policy, said))
    trace, axis = _dots(ratios, ends, texts, {"size": 8, "color": "var:energy"})
    layout = {
        "xaxis": _ratios_axis(min(known), max(known)),
        "yaxis": axis,
        "shapes": [_line(bound, "var:subtle", "dash")],
        "margin": MARGIN,
    }
    return ReportView(name, (trace,), layout, 90 + 22 * len(rows))


def _ratios_axis(low: float, high: float) -> dict[str, Any]:
    if high <= WIDE:
        pad = 0.04 * (high - low or 1.0)
        return {"title": {"text": "cost / best"}, "range": [low - pad, high + pad]}
    ticks = [tick for tick in TICKS if low * 0.9 <= tick <= high * 1.1]
    ends = [math.log10(max(low, 1e-3)) - 0.03, math.log10(high) + 0.03]
    title = {"text": "cost / best, logarithmic"}
    return {"title": title, "type": "log", "range": ends, "tickvals": ticks, "ticktext": [f"{t:g}" for t in ticks]}
