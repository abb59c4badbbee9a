"""The colours of charts, and those of jobs: neighbours differ."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from gpusched_env.rendering.lanes import GanttBar, lanes_of

INK, SUBTLE, GRID, STRIPES, PAPER = "#22262B", "#5B636C", "#DDE1E6", "#F1F3F5", "#FFFFFF"
LATE = "#C8102E"
WAITING = "#B35C00"
ENERGY, TARDINESS = "#3E7CB1", "#D1495B"

# Neighbours differ in hue and lightness; none is red, which marks late jobs, or grey, which marks restarts.
JOB_COLOURS = (
    "#4E79A7", "#F2B56B", "#59A14F", "#B9A2D1", "#2F8F8B", "#EDD374", "#8C6D5A", "#9CC7E6", "#6B5B95", "#A5D28C",
    "#2F6B3A", "#D9B8A0",
)  # fmt: skip


def colour_of(number: int) -> str:
    """Return the colour of a job by its number, or that of its colour: jobs submitted one after the other differ."""
    return JOB_COLOURS[number % len(JOB_COLOURS)]


def ink_on(number: int) -> str:
    """Return the colour, dark or light, of writing that is legible on a colour."""
    red, green, blue = (int(colour_of(number)[i : i + 2], 16) for i in (1, 3, 5))
    return INK if 0.299 * red + 0.587 * green + 0.114 * blue > 150 else PAPER


def colour_numbers(bars: Iterable[GanttBar]) -> dict[int, int]:
    """Return the number of each job's colour: its own number, or the next one whose colour no neighbour has.

    Neighbours are jobs that follow each other on a GPU, or hold at one time the same GPU or GPUs beside each other. A
    job with more neighbours than there are colours may look like one of them.
    """
    beside: dict[int, set[int]] = defaultdict(set)
    last: dict[tuple[int, int], int] = {}
    present: dict[int, list[GanttBar]] = defaultdict(list)
    for bar in bars:
        lanes, others = lanes_of(bar.runs), {bar.job}
        here = [other for other in present[bar.node] if other.end_s > bar.start_s]
        near = {lane + step for lane in lanes for step in (-1, 0, 1)}
        others |= {other.job for other in here if near.intersection(lanes_of(other.runs))}
        others |= {last.get((bar.node, lane), bar.job) for lane in lanes}
        for other in others - {bar.job}:
            beside[other].add(bar.job)
        beside[bar.job] |= others - {bar.job}
        last |= dict.fromkeys(((bar.node, lane) for lane in lanes), bar.job)
        present[bar.node] = [*here, bar]
    chosen: dict[int, int] = {}
    for job in sorted(beside):
        taken = {chosen[other] % len(JOB_COLOURS) for other in beside[job] if other in chosen}
        free = (job + step for step in range(len(JOB_COLOURS)) if (job + step) % len(JOB_COLOURS) not in taken)
        chosen[job] = next(free, job)
    return chosen
