"""Figures over time: how busy the cluster is, what it costs, and how long jobs take."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpusched_env.model import Instance
from gpusched_env.rendering.colours import WAITING
from gpusched_env.rendering.power import Curve, energy_between, power_over_time, prices_over_time
from gpusched_env.rendering.text import axis_unit, duration_text
from gpusched_env.rendering.timeline import Timeline
from gpusched_env.simulator import Result
from gpusched_experiments.report.chart import styles_of
from gpusched_operations.html_report.report_data import HOVER, HtmlDrawing, ReportView, Trace, plot_text, short

NEAR = 1.15  # due dates beyond so many times the last completion would squeeze the bars
MOST_JOBS = 0.99  # part of the jobs that are done when the axis ends, where the others would squeeze them
FAR = 1.5  # how many times as long as these jobs the others must take for that
MOST_STEPS = 2000  # of a line over time; more are averaged
SHOWN = 4  # policies that are shown at first; the others when they are clicked in the legend
TICKS_S = (1, 10, 60, 600, 3600, 6 * 3600, 86_400, 4 * 86_400, 14 * 86_400, 60 * 86_400, 365 * 86_400)
LEAST_S = 1e-3  # what is shorter is drawn there: the axis is logarithmic
MARGIN = {"l": 20, "r": 16, "t": 40, "b": 46}


@dataclass(frozen=True, slots=True)
class TimeAxis:
    """A time axis: its end and its unit [s], the unit's name, and a sentence on what lies beyond its end, if any."""

    end_s: float
    unit_s: float
    unit: str
    note: str = ""

    @classmethod
    def of(cls, timelines: Sequence[Timeline]) -> TimeAxis:
        """Make the axis that has all of these finished runs, and the due dates that are not far beyond their ends.

        Where the last hundredth of the jobs of every run takes much longer than all others, it ends before that.
        """
        last_s = max(timeline.now_s for timeline in timelines)
        most_s = max(float(np.quantile(timeline.completion_s, MOST_JOBS)) for timeline in timelines)
        shown_s, note = last_s, ""
        if last_s > FAR * most_s:
            shown_s = 1.1 * most_s
            count = max(int(np.sum(timeline.completion_s > shown_s)) for timeline in timelines)
            note = (
                f" The axis ends at {duration_text(shown_s)}. Up to {count} of a policy's jobs end later, the last at "
                f"{duration_text(last_s)}: zoom out to see them."
            )
        due_s = timelines[0].instance.jobs.due_s
        end_s = 1.01 * max(shown_s, float(due_s[due_s <= NEAR * shown_s].max(initial=0.0)))
        return cls(end_s, *axis_unit(end_s), note)


def thinned(times: NDArray[np.float64], values: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return a line of steps, from each time on a value, with `MOST_STEPS` at most: else means over equal times.

    Args:
        times: When the value changes, rising, (T,).
        values: The value from then on; the last one is that of the end, (T,).
    """
    if len(times) <= MOST_STEPS:
        return times, values
    edges = np.linspace(times[0], times[-1], MOST_STEPS)
    whole = np.concatenate([[0.0], np.cumsum(values[:-1] * np.diff(times))])
    until = np.interp(edges, times, whole)
    return edges, np.append(np.diff(until) / np.diff(edges), values[-1])


def workload_of(recorded: Sequence[Result]) -> str:
    result = recorded[0]
    nodes = result.instance.machines
    gpus = sum(node.gpus for node in nodes)
    return f"the workload of seed {result.seed} ({len(result.instance.jobs)} jobs, {len(nodes)} nodes, {gpus} GPUs)"


def cost_rate(result: Result, timeline: Timeline) -> Curve | None:
    """Return times [s] and from each time on the cost rate of all nodes [€/h], both (T,).

    It is the power of the nodes (`power_over_time`) at the price then; demand charges are not in it. None where that
    power is not known.
    """
    power, instance = power_over_time(result, timeline), result.instance
    if power is None:
        return None
    starts = prices_over_time(instance)[0]
    times = np.unique(np.concatenate([power[0], starts[(starts > 0.0) & (starts < power[0][-1])]]))
    edges = np.append(times, times[-1] + 1.0)
    _, eur, _ = energy_between(instance, power, edges)
    return times, eur / np.diff(edges) * 3600.0


def usage_drawing(recorded: Sequence[Result], timelines: Sequence[Timeline]) -> HtmlDrawing:
    """Draw the busy share of the GPUs and, below it, the cost rate, a line for each policy; the first ones at first."""
    styles, axis = styles_of(result.policy for result in recorded), TimeAxis.of(timelines)
    rates = [rate for rate in map(cost_rate, recorded, timelines) if rate is not None]
    has_rates = len(rates) == len(timelines)
    traces, words = [], []
    for place, timeline in enumerate(timelines):
        name = plot_text(timeline.policy)
        look = {"legendgroup": name, "visible": True if place < SHOWN else "legendonly"}
        times, busy, _ = timeline.usage()
        share = busy / sum(node.gpus for node in timeline.instance.machines)
        mean = float(np.sum(share[:-1] * np.diff(times)) / max(1e-9, times[-1] - times[0]))
        words.append(f"{timeline.policy} {mean:.0%} busy on average over {duration_text(timeline.now_s)}")
        lines = [((times, share), "{:.0%} of the GPUs busy", look)]
        if has_rates:
            lines.append((rates[place], "{:,.3g} €/h", look | {"yaxis": "y2", "showlegend": False}))
        for curve, said, settings in lines:
            at_s, values = thinned(*curve)
            texts = [f" from {duration_text(t)} on<br>{said.format(y)}" for t, y in zip(at_s, values, strict=True)]
            line = _steps(name, short(at_s / axis.unit_s), values, texts, styles[timeline.policy][0], 1.3)
            traces.append(line | settings)
    more = f" The first {SHOWN} are shown; click a name to show or hide it." if len(recorded) > SHOWN else ""
    what = "Busy share of the GPUs" + (", and what the nodes cost an hour," if has_rates else "")
    why = "" if has_rates else " The cost rate is left out: this cluster is not billed by its busy GPUs alone."
    priced = has_rates and recorded[0].instance.prices is not None
    if priced:
        traces.append(_price_line(recorded[0].instance, axis) | {"yaxis": "y3", "showlegend": False})
        why = " Below is the price of a kWh at the meter."
    layout: dict[str, Any] = {
        "xaxis": {"title": {"text": f"time [{axis.unit}]"}, "range": [0.0, axis.end_s / axis.unit_s]},
        "yaxis": {"title": {"text": "busy GPUs"}, "tickformat": ".0%", "range": [0, 1.04]},
        "margin": MARGIN,
    }
    if has_rates:
        layout["yaxis"]["domain"], layout["xaxis"]["anchor"] = [0.54, 1.0], "y2"
        layout["yaxis2"] = {"title": {"text": "cost [€/h]"}, "domain": [0.0, 0.46], "rangemode": "tozero"}
    if priced:
        layout["yaxis"]["domain"], layout["yaxis2"]["domain"], layout["xaxis"]["anchor"] = (
            [0.68, 1.0],
            [0.3, 0.62],
            "y3",
        )
        layout["yaxis3"] = {"title": {"text": "price [ct/kWh]"}, "domain": [0.0, 0.24], "rangemode": "tozero"}
    return HtmlDrawing(
        name="usage",
        title="How busy the cluster is" + (", and what it costs an hour" if has_rates else ""),
        caption=f"{what} over time on {workload_of(recorded)}.{more}{why}{axis.note}",
        alt="; ".join(words),
        views=(ReportView("", tuple(traces), layout, (700 if priced else 560) if has_rates else 340),),
    )


def _price_line(instance: Instance, axis: TimeAxis) -> Trace:
    starts, prices = prices_over_time(instance)
    first, last = int(np.searchsorted(starts, 0.0, side="right")) - 1, int(np.searchsorted(starts, axis.end_s))
    shown = slice(max(0, first), last)
    at_s, cents = thinned(
        np.append(np.maximum(starts[shown], 0.0), axis.end_s), 100.0 * np.append(prices[shown], prices[last - 1])
    )
    texts = [f" from {duration_text(t)} on<br>{y:.3g} ct/kWh" for t, y in zip(at_s, cents, strict=True)]
    return _steps("price", short(at_s / axis.unit_s), cents, texts, WAITING, 1.3)


def _steps(name: str, x: list[float], y: Any, texts: list[str], colour: str, width: float) -> Trace:
    return {
        "type": "scatter", "mode": "lines", "name": name, "x": x, "y": short(y), "hovertemplate": HOVER,
        "line": {"shape": "hv", "width": width, "color": f"hue:{colour}"},
        "hovertext": [f"{name}{text}" for text in texts],
    }  # fmt: skip


def completion_drawing(recorded: Sequence[Result]) -> HtmlDrawing:
    """Draw which share of the jobs were done within which time, a line for each policy."""
    styles = styles_of(result.policy for result in recorded)
    traces, words = [], []
    for result in recorded:
        times = np.sort(np.maximum(LEAST_S, result.completion_s - result.instance.jobs.submission_s))
        half, most = np.quantile(times, (0.5, 0.95))
        shares = np.arange(1, len(times) + 1) / len(times)
        if len(times) > MOST_STEPS:
            chosen = np.unique(np.linspace(0, len(times) - 1, MOST_STEPS).astype(np.int64))
            times, shares = times[chosen], shares[chosen]
        texts = [f"<br>{y:.0%} of the jobs within {duration_text(t)}" for t, y in zip(times, shares, strict=True)]
        traces.append(_steps(plot_text(result.policy), short(times, 3), shares, texts, styles[result.policy][0], 1.8))
        words.append(f"{result.policy}: half within {duration_text(half)}, 95 % within {duration_text(most)}")
    layout = {
        "xaxis": {
            "type": "log", "title": {"text": "time from submission to completion"}, "tickvals": list(TICKS_S),
            "ticktext": [duration_text(tick) for tick in TICKS_S],
        },
        "yaxis": {"title": {"text": "jobs done within it"}, "tickformat": ".0%", "range": [0, 1.02]},
        "margin": MARGIN,
    }  # fmt: skip
    return HtmlDrawing(
        name="completion",
        title="How long jobs take",
        caption=f"Share of the jobs that were done within a time, on {workload_of(recorded)}. The axis is logarithmic.",
        alt="; ".join(words),
        views=(ReportView("", tuple(traces), layout),),
    )
