"""What every policy saves against every other, with intervals."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from gpusched_experiments.page.figure import HOVER, Drawing, View, plot_text
from gpusched_experiments.page.verdict import costs_of, saving_against
from gpusched_experiments.report.estimate import LEAST_SEEDS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpusched_experiments.report.estimate import Estimate
    from gpusched_experiments.report.run_summary import RunSummary

ROW_PX = 56
MOST_LOSS = -1.0  # a policy that costs more than twice as much lies beyond the axis at first


def savings_drawing(runs: Sequence[RunSummary], reference: str) -> Drawing | None:
    """Draw the savings of all policies against one of them, which can be chosen; None with fewer than two policies."""
    names = sorted({run.policy for run in runs}, key=lambda name: sum(costs_of(runs, name)))
    if len(names) < 2:
        return None
    others = [reference, *(name for name in names if name != reference)]
    savings = {other: {name: saving_against(runs, name, other) for name in names if name != other} for other in others}
    seeds = len(costs_of(runs, reference))
    brackets = "; lines are 95 % intervals, paired by seed" if seeds >= LEAST_SEEDS else ""
    return Drawing(
        name="savings",
        title="What every policy saves against another",
        caption=f"Share of the other policy's total cost that is saved{brackets}. To the left of 0 is dearer.",
        alt=f"Saved against {reference}: "
        + "; ".join(f"{name} {_text(each)}" for name, each in savings[reference].items()),
        views=tuple(_view(other, savings[other]) for other in others),
        choice="against",
    )


def _text(saved: Estimate) -> str:
    if math.isnan(saved.value):
        return "n/a"
    ends = "" if saved.interval is None else f" [{saved.interval[0]:+.1%}, {saved.interval[1]:+.1%}]"
    return f"{saved.value:+.1%}{ends}"


def _view(other: str, savings: dict[str, Estimate]) -> View:
    names = [plot_text(name) for name in savings]
    values = [each.value if math.isfinite(each.value) else None for each in savings.values()]
    ends = [each.interval or (each.value, each.value) for each in savings.values()]
    known = [end for pair in ends for end in pair if math.isfinite(end)] or [0.0]
    low, high = max(min(0.0, *known), MOST_LOSS), max(0.0, *known)
    pad = 0.08 * (high - low or 1.0)
    trace = {
        "type": "scatter", "mode": "markers", "x": values, "y": list(range(len(names))),
        "showlegend": False,
        "marker": {"size": 9, "color": ["var:tardiness" if (value or 0.0) < 0.0 else "var:energy" for value in values]},
        "error_x": {
            "type": "data", "symmetric": False, "color": "var:ink", "thickness": 1.3, "width": 5,
            "array": [_length(value, end) for value, (_, end) in zip(values, ends, strict=True)],
            "arrayminus": [_length(start, value) for value, (start, _) in zip(values, ends, strict=True)],
        },
        "hovertext": [
            f"{name} against {plot_text(other)}<br>{_text(each)}"
            for name, each in zip(names, savings.values(), strict=True)
        ],
        "hovertemplate": HOVER,
    }  # fmt: skip
    layout = {
        "xaxis": {
            "title": {"text": f"saved against {plot_text(other)}"}, "tickformat": "+.0%",
            "range": [low - pad, high + pad], "zeroline": True,
        },
        "yaxis": {
            "range": [len(names) - 0.5, -0.5], "fixedrange": True, "tickvals": list(range(len(names))),
            "ticktext": [_label(name, each) for name, each in zip(names, savings.values(), strict=True)],
        },
        "margin": {"l": 20, "r": 10, "t": 10, "b": 46},
    }  # fmt: skip
    return View(other, (trace,), layout, 100 + ROW_PX * len(names))


def _label(name: str, saved: Estimate) -> str:
    """Write the policy's name, which is plotly's text already, and below it what it saves and the interval."""
    return f"{name}<br><span style='font-size:10.5px'>{_text(saved).replace(' [', '<br>[')}</span>"


def _length(start: float | None, end: float | None) -> float:
    """Give the length of a whisker; 0 where there is none."""
    return max(0.0, end - start) if start is not None and end is not None and math.isfinite(end - start) else 0.0
