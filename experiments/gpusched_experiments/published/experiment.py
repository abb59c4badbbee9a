"""What an experiment is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from gpusched_experiments.published.cell import Cell
    from gpusched_experiments.published.chart import Chart
    from gpusched_experiments.published.choice import Choice
    from gpusched_experiments.published.reported import Reported
    from gpusched_experiments.published.run import Runs
    from gpusched_experiments.published.table import Table


@dataclass(frozen=True, slots=True)
class Experiment:
    """An experiment: which cells it runs, and what it makes of them.

    Attributes:
        name: Its name on the command line, and of its folder.
        title: Its title.
        question: What it asks and how, a paragraph.
        policies: Names of the policies that it runs unless others are chosen.
        labels: Names of its cells' labels.
        cells: Lists the cells of a choice, for these policies.
        summary: Makes the short table, with what the sources reported beside our figures.
        details: Makes the table of every group of runs.
        chart: Makes the figure.
        reported: What the sources reported.
        alone: Whether its cells are timings, which run one at a time while nothing else does.
    """

    name: str
    title: str
    question: str
    policies: tuple[str, ...]
    labels: tuple[str, ...]
    cells: Callable[[Choice, tuple[str, ...]], tuple[Cell, ...]]
    summary: Callable[[Runs], Table]
    details: Callable[[Runs], Table]
    chart: Callable[[Runs], Chart]
    reported: tuple[Reported, ...]
    alone: bool = False
