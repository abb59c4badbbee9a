"""Colours of the charts."""

from __future__ import annotations

INK, SUBTLE, GRID, STRIPES, PAPER = "#22262B", "#5B636C", "#DDE1E6", "#F1F3F5", "#FFFFFF"
LATE = "#C8102E"
WAITING = "#B35C00"
ENERGY, TARDINESS = "#3E7CB1", "#D1495B"

# Neighbours differ in hue and lightness; none is red, which is kept for what is late.
JOB_COLOURS = (
    "#4E79A7", "#F2B56B", "#59A14F", "#B9A2D1", "#2F8F8B", "#EDD374", "#8C6D5A", "#9CC7E6", "#6B5B95", "#A5D28C",
    "#7F8C99", "#D9B8A0",
)  # fmt: skip


def colour_of(job: int) -> str:
    """Give the colour of a job: jobs submitted one after the other differ."""
    return JOB_COLOURS[job % len(JOB_COLOURS)]


def ink_on(job: int) -> str:
    """Give the colour, dark or light, of writing that is legible on the job's colour."""
    red, green, blue = (int(colour_of(job)[i : i + 2], 16) for i in (1, 3, 5))
    return INK if 0.299 * red + 0.587 * green + 0.114 * blue > 150 else PAPER
