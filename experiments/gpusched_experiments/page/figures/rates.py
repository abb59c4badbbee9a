"""What the nodes of a run cost over time, and which part of the jobs is done."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gpusched_env.model.rates import cost_rate_eur_per_h
from gpusched_env.model.tenant import machines
from gpusched_env.rendering.text import duration_text
from gpusched_experiments.page.figure import HOVER, Drawing, View, plot_text, short
from gpusched_experiments.page.figures.rows import MOST_STEPS
from gpusched_experiments.report.chart import styles_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from gpusched_env.rendering.timeline import Timeline
    from gpusched_env.simulator import Result

TOLERANCE = 1e-6  # share of the energy cost that the rate over time may differ from it


def cost_rate(timeline: Timeline) -> tuple[NDArray[np.float64], NDArray[np.float64]] | None:
    """Give times [s] and from each time on the cost rate of all nodes [€/h], both (T,).

    A node's rate is r_v(u) of its busy GPUs. Where a run is billed otherwise (what GPUs draw at rest, hosts of cells, a
    price that changes), its sum over time is not the run's energy cost: then there is no rate to give, and it is None.
    """
    rates, instance = cost_rate_eur_per_h(timeline.instance), timeline.instance
    changes = sorted(_changes(timeline))
    busy, changed = dict.fromkeys(range(len(instance.nodes)), 0), []
    for time, node, gpus in changes:
        of_type = rates[instance.type_of_node[node]]
        before, busy[node] = busy[node], busy[node] + gpus
        changed.append((time, of_type[busy[node]] - of_type[before]))
    table = np.array(changed).reshape(-1, 2)
    times, first = np.unique(table[:, 0], return_index=True)
    rate = np.maximum(0.0, np.cumsum(table[:, 1])[np.append(first[1:], len(table)) - 1])
    total = float(np.sum(rate[:-1] * np.diff(times))) / 3600.0
    return (times, rate) if abs(total - timeline.energy_eur) <= TOLERANCE * max(total, timeline.energy_eur) else None


def _changes(timeline: Timeline) -> Iterator[tuple[float, int, int]]:
    """Give time, node and by how many its busy GPUs change: of a moment first those let go."""
    until: dict[tuple[int, int], float] = {}
    for bar in timeline.bars:
        start_s, gpus = bar.start_s, round(sum(height for _, height in bar.runs)) if bar.gpu < 0 else 1
        if bar.gpu >= 0:
            # Of a share, what others on the GPU have not covered yet.
            start_s = max(start_s, until.get((bar.node, bar.gpu), -np.inf))
            until[bar.node, bar.gpu] = max(bar.end_s, start_s)
        if start_s < bar.end_s:
            yield start_s, bar.node, gpus
            yield bar.end_s, bar.node, -gpus


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
