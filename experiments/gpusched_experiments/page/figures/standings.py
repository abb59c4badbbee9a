"""What every policy costs on a track, over the best one: a dot and its interval each."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from gpusched_experiments.page.figure import HOVER, Drawing, View, plot_text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

ROW_PX, ROOM_PX = 22, 90
WIDE = 3.0  # beyond it the axis is logarithmic
TICKS = (1, 1.5, 2, 3, 5, 10, 20, 50, 100, 1000)


def standings_drawing(
    number: int, track: Mapping[str, str], rows: Sequence[Mapping[str, str]], entry: str = ""
) -> Drawing:
    """Draw the policies of a track, the best on top.

    Args:
        number: Number of the track among all.
        track: Its row of `tracks.csv`.
        rows: Its rows of `table.csv`, the best first.
        entry: Name of the policy that was submitted and is marked; empty if none was.

    Raises:
        ValueError: A number is none.
    """
    name = track["track"]
    bound = float(track["bound_eur"]) / float(track["best_eur"])
    best = f"{rows[0]['policy']} costs least, {float(rows[0]['total_eur']):,.2f} €"
    lines = "; lines are 95 % intervals, paired by seed" if any(row["to_best_low"] for row in rows) else ""
    return Drawing(
        name=f"track-{number}",
        title=name,
        caption=f"Total cost over that of the best, on {track['seeds']} seeds{lines}. "
        f"{best} a run; no policy can cost less than {bound:.2f} times that (the dashed line).",
        alt=f"On {name} " + "; ".join(f"{row['policy']} {float(row['to_best']):.2f}" for row in rows),
        views=(_view(name, rows, bound, entry),),
    )


def _view(name: str, rows: Sequence[Mapping[str, str]], bound: float, entry: str) -> View:
    ratios = [float(row["to_best"]) for row in rows]
    ends = [_ends(row, ratio) for row, ratio in zip(rows, ratios, strict=True)]
    known = [each for each in (bound, *ratios, *(end for pair in ends for end in pair)) if math.isfinite(each)]
    wide = max(known) > WIDE
    colours = ["var:late" if row["policy"] == entry else "var:energy" for row in rows]
    trace = {
        "type": "scatter", "mode": "markers", "x": ratios, "y": list(range(len(rows))), "showlegend": False,
        "marker": {
            "size": [12 if row["policy"] == entry else 8 for row in rows], "color": colours,
            "symbol": ["diamond" if row["policy"] == entry else "circle" for row in rows],
        },
        "error_x": {
            "type": "data", "symmetric": False, "color": "var:ink", "thickness": 1.2, "width": 4,
            "visible": any(low < high for low, high in ends),
            "array": [max(0.0, high - r) for r, (_, high) in zip(ratios, ends, strict=True)],
            "arrayminus": [max(0.0, r - low) for r, (low, _) in zip(ratios, ends, strict=True)],
        },
        "hovertext": [_hover(row, end) for row, end in zip(rows, ends, strict=True)],
        "hovertemplate": HOVER,
    }  # fmt: skip
    layout = {
        "xaxis": _axis(min(known), max(known), wide=wide),
        "yaxis": {
            "range": [len(rows) - 0.5, -0.5], "fixedrange": True, "tickvals": list(range(len(rows))),
            "ticktext": [_label(row, entry) for row in rows],
        },
        "shapes": [{
            "type": "line", "x0": bound, "x1": bound, "y0": 0, "y1": 1, "yref": "paper",
            "line": {"color": "var:subtle", "width": 1.2, "dash": "dash"},
        }],
        "margin": {"l": 20, "r": 10, "t": 10, "b": 46},
    }  # fmt: skip
    return View(name, (trace,), layout, ROOM_PX + ROW_PX * len(rows))


def _ends(row: Mapping[str, str], ratio: float) -> tuple[float, float]:
    """Give the ends of the interval of a ratio; the ratio itself where it has none."""
    return float(row["to_best_low"] or ratio), float(row["to_best_high"] or ratio)


def _axis(low: float, high: float, *, wide: bool) -> dict[str, Any]:
    """Make the axis of ratios; what spans more is logarithmic."""
    title = {"text": "cost / best" + (", logarithmic" if wide else "")}
    if not wide:
        pad = 0.04 * (high - low or 1.0)
        return {"title": title, "range": [low - pad, high + pad]}
    ticks = [tick for tick in TICKS if low * 0.9 <= tick <= high * 1.1]
    ends = [math.log10(max(low, 1e-3)) - 0.03, math.log10(high) + 0.03]
    return {"title": title, "type": "log", "range": ends, "tickvals": ticks, "ticktext": [f"{t:g}" for t in ticks]}


def _label(row: Mapping[str, str], entry: str) -> str:
    name = plot_text(row["policy"])
    return f"<b>{name} (submitted)</b>" if row["policy"] == entry else name


def _hover(row: Mapping[str, str], ends: tuple[float, float]) -> str:
    interval = f" [{ends[0]:.2f}, {ends[1]:.2f}]" if ends[0] < ends[1] else ""
    return (
        f"{plot_text(row['policy'])}: rank {plot_text(row['rank'])}<br>{float(row['total_eur']):,.2f} € a run<br>"
        f"{float(row['to_best']):.2f}{interval} times the best"
    )
