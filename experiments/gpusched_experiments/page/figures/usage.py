"""How busy the cluster is and what it costs over time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gpusched_env.model.tenant import machines
from gpusched_env.rendering.text import duration_text
from gpusched_experiments.page.figure import HOVER, Drawing, Trace, View, plot_text, short
from gpusched_experiments.page.figures.rates import cost_rate, workload_of
from gpusched_experiments.page.figures.rows import Axis, thinned
from gpusched_experiments.report.chart import styles_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from gpusched_env.rendering.timeline import Timeline
    from gpusched_env.simulator import Result

SHOWN = 4  # policies that are shown at first; the others when they are clicked in the legend


def usage_drawing(recorded: Sequence[Result], timelines: Sequence[Timeline]) -> Drawing:
    """Draw the busy share of the GPUs and, below it, the cost rate, a line for each policy.

    Args:
        recorded: The runs, with intervals; the first are shown at first.
        timelines: Their timelines.
    """
    styles = styles_of(result.policy for result in recorded)
    axis = Axis.of(timelines)
    rates = [cost_rate(timeline) for timeline in timelines]
    has_rates = all(rate is not None for rate in rates)
    traces: list[Trace] = []
    words = []
    for place, (timeline, rate) in enumerate(zip(timelines, rates, strict=True)):
        colour, visible = styles[timeline.policy][0], True if place < SHOWN else "legendonly"
        times, busy, _ = timeline.usage()
        share = busy / sum(node.gpus for node in machines(timeline.instance))
        mean = float(np.sum(share[:-1] * np.diff(times)) / max(1e-9, times[-1] - times[0]))
        words.append(f"{timeline.policy} {mean:.0%} busy on average over {duration_text(timeline.now_s)}")
        traces.append(
            _line(timeline, (times, share), axis, colour, lambda y: f"{y:.0%} of the GPUs busy") | {"visible": visible}
        )
        if has_rates and rate is not None:
            below = _line(timeline, rate, axis, colour, lambda y: f"{y:,.3g} €/h")
            traces.append(below | {"yaxis": "y2", "showlegend": False, "visible": visible})
    more = f" The first {SHOWN} are shown; click a name to show or hide it." if len(recorded) > SHOWN else ""
    what = "Busy share of the GPUs" + (", and what the nodes cost an hour," if has_rates else "")
    why = "" if has_rates else " The cost rate is left out: this cluster is not billed by its busy GPUs alone."
    return Drawing(
        name="usage",
        title="How busy the cluster is" + (", and what it costs an hour" if has_rates else ""),
        caption=f"{what} over time on {workload_of(recorded)}.{more}{why}{axis.note}",
        alt="; ".join(words),
        views=(View("", tuple(traces), _layout(axis, has_rates=has_rates), 560 if has_rates else 340),),
    )


def _line(
    timeline: Timeline,
    steps: tuple[NDArray[np.float64], NDArray[np.float64]],
    axis: Axis,
    colour: str,
    say: Any,
) -> Trace:
    times, values = thinned(*steps)
    name = plot_text(timeline.policy)
    return {
        "type": "scatter", "mode": "lines", "name": name, "legendgroup": name, "x": short(times / axis.unit_s),
        "y": short(values), "line": {"shape": "hv", "width": 1.3, "color": f"hue:{colour}"}, "hovertemplate": HOVER,
        "hovertext": [
            f"{name} from {duration_text(time)} on<br>{say(value)}" for time, value in zip(times, values, strict=True)
        ],
    }  # fmt: skip


def _layout(axis: Axis, *, has_rates: bool) -> dict[str, Any]:
    layout: dict[str, Any] = {
        "xaxis": {"title": {"text": f"time [{axis.unit}]"}, "range": [0.0, axis.end_s / axis.unit_s]},
        "yaxis": {"title": {"text": "busy GPUs"}, "tickformat": ".0%", "range": [0, 1.04]},
        "margin": {"l": 20, "r": 16, "t": 40, "b": 46},
    }
    if has_rates:
        layout["yaxis"]["domain"] = [0.54, 1.0]
        layout["yaxis2"] = {"title": {"text": "cost [€/h]"}, "domain": [0.0, 0.46], "rangemode": "tozero"}
        layout["xaxis"]["anchor"] = "y2"
    return layout
