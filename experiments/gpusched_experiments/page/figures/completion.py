"""How long jobs take from submission to completion: the distribution by policy."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gpusched_env.model.tenancy import machines
from gpusched_env.rendering.duration import duration_text
from gpusched_experiments.page.figure import HOVER, Drawing, View, plot_text, short
from gpusched_experiments.page.figures.axis import MOST_STEPS
from gpusched_experiments.report.styles import styles_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpusched_env.simulator import Result

TICKS_S = (1, 10, 60, 600, 3600, 6 * 3600, 86_400, 4 * 86_400, 14 * 86_400, 60 * 86_400, 365 * 86_400)
LEAST_S = 1e-3  # what is shorter is drawn there: the axis is logarithmic
QUANTILES = (0.5, 0.95)


def completion_drawing(recorded: Sequence[Result]) -> Drawing:
    """Draw which share of the jobs were done within which time, a line for each policy."""
    styles = styles_of(result.policy for result in recorded)
    traces, words = [], []
    for result in recorded:
        times = np.sort(np.maximum(LEAST_S, result.completion_s - result.instance.jobs.submission_s))
        half, most = np.quantile(times, QUANTILES)
        shares = np.arange(1, len(times) + 1) / len(times)
        if len(times) > MOST_STEPS:
            chosen = np.unique(np.linspace(0, len(times) - 1, MOST_STEPS).astype(np.int64))
            times, shares = times[chosen], shares[chosen]
        name = plot_text(result.policy)
        traces.append(
            {
                "type": "scatter", "mode": "lines", "name": name, "x": short(times, 3), "y": short(shares),
                "line": {"shape": "hv", "width": 1.8, "color": f"hue:{styles[result.policy][0]}"},
                "hovertemplate": HOVER,
                "hovertext": [
                    f"{name}<br>{share:.0%} of the jobs within {duration_text(time)}"
                    for time, share in zip(times, shares, strict=True)
                ],
            }
        )  # fmt: skip
        words.append(f"{result.policy}: half within {duration_text(half)}, 95 % within {duration_text(most)}")
    layout = {
        "xaxis": {
            "type": "log", "title": {"text": "time from submission to completion"}, "tickvals": list(TICKS_S),
            "ticktext": [duration_text(tick) for tick in TICKS_S],
        },
        "yaxis": {"title": {"text": "jobs done within it"}, "tickformat": ".0%", "range": [0, 1.02]},
        "margin": {"l": 20, "r": 16, "t": 40, "b": 46},
    }  # fmt: skip
    return Drawing(
        name="completion",
        title="How long jobs take",
        caption=f"Share of the jobs that were done within a time, on {workload_of(recorded)}. The axis is logarithmic.",
        alt="; ".join(words),
        views=(View("", tuple(traces), layout),),
    )


def workload_of(recorded: Sequence[Result]) -> str:
    """Name the workload that the recorded runs share, with its size."""
    result = recorded[0]
    instance = result.instance
    nodes = machines(instance)
    gpus = sum(node.gpus for node in nodes)
    return f"the workload of seed {result.seed} ({len(instance.jobs)} jobs, {len(nodes)} nodes, {gpus} GPUs)"
