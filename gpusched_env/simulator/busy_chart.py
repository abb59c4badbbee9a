"""The busy GPUs of every node over time, as a small SVG picture for notebooks."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

import numpy as np

from gpusched_env.simulator import layout as at

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from gpusched_env.model import Instance

MOST_NODES = 16  # that are drawn
LABEL, WIDTH, ROW, GAP = 130, 560, 14, 3  # pixels
COLOUR, BAND, INK = "#4E79A7", "#88888822", "#888888"


def busy_chart(instance: Instance, log: NDArray[np.float64]) -> str:
    """Draw a row for each of the first nodes: how many of its GPUs were held, over time.

    Args:
        instance: The instance that was run.
        log: Rows of the log's form, (L, LOG_COLUMNS).

    Returns:
        An SVG element; empty if there are no intervals.
    """
    if not len(log):
        return ""
    end_s = float(log[:, at.LOG_END].max())
    shown = min(MOST_NODES, len(instance.nodes))
    rows = "".join(_row(instance, log, node, end_s) for node in range(shown))
    more = f", the first {shown} of {len(instance.nodes)} nodes" if shown < len(instance.nodes) else ""
    height = shown * (ROW + GAP) + 16
    words = f"busy GPUs from 0 to {end_s / 3600.0:.4g} h{more}"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{LABEL + WIDTH}" height="{height}" role="img" '
        f'font-family="sans-serif" font-size="10">{rows}'
        f'<text x="{LABEL}" y="{height - 4}" fill="{INK}">{words}</text></svg>'
    )


def _row(instance: Instance, log: NDArray[np.float64], number: int, end_s: float) -> str:
    node, top = instance.nodes[number], number * (ROW + GAP)
    times, busy = _busy(instance, log[log[:, at.LOG_NODE] == number])
    path, bottom = [f"M{LABEL} {top + ROW}"], top + ROW
    for time_s, held in zip(times, busy, strict=True):
        x, y = LABEL + WIDTH * time_s / end_s, bottom - ROW * min(1.0, held / node.gpus)
        path.append(f"H{x:.1f}V{y:.1f}")
    label = escape(f"{number}: {node.gpus} x {node.gpu_type}")
    return (
        f'<text x="{LABEL - 6}" y="{bottom - 3}" text-anchor="end" fill="{INK}">{label}</text>'
        f'<rect x="{LABEL}" y="{top}" width="{WIDTH}" height="{ROW}" fill="{BAND}"/>'
        f'<path d="{"".join(path)}V{bottom}Z" fill="{COLOUR}"/>'
    )


def _busy(instance: Instance, log: NDArray[np.float64]) -> tuple[list[float], list[float]]:
    """Give the times at which GPUs are taken or let go, and how many are held from then on; shares add up."""
    held = [
        configuration.gpus_per_node if configuration.kind != "shared" else configuration.share
        for configuration in (instance.configurations[int(row)] for row in log[:, at.LOG_CONFIG])
    ]
    changes = sorted(
        [*zip(log[:, at.LOG_START], held, strict=True), *zip(log[:, at.LOG_END], (-h for h in held), strict=True)]
    )
    return [float(time_s) for time_s, _ in changes], np.cumsum([change for _, change in changes]).tolist()
