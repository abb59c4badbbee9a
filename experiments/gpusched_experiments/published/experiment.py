"""What an experiment is, what its sources reported, and the page that has both."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from gpusched_experiments.report.table import markdown

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from gpusched_experiments.published.choice import Choice
    from gpusched_experiments.report.cell import Cell
    from gpusched_experiments.report.chart import Chart
    from gpusched_experiments.report.run import Runs
    from gpusched_experiments.report.table import Table

THESIS = "L. Marchi, Politecnico di Milano, 2022"
PAPER = "F. Filippini et al., IEEE Trans. Cloud Computing 12(1), 2024"
INTERVALS = (
    "In brackets 95 % bootstrap intervals over seeds, where there are 5 seeds or more. All policies of a group ran on "
    "the same workloads; savings are paired by seed."
)


@dataclass(frozen=True, slots=True)
class Reported:
    """One result as its source reported it: to stand beside our figures, never to be aimed at.

    Attributes:
        what: What was measured.
        figure: The figure.
        source: Where it stands.
    """

    what: str
    figure: str
    source: str


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
        more: Makes further tables, by the name of their CSV file.
        figures: Makes further figures, by the name of their files.
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
    more: Mapping[str, Callable[[Runs], Table]] = field(default_factory=dict)
    figures: Mapping[str, Callable[[Runs], Chart]] = field(default_factory=dict)
    alone: bool = False


def page_markdown(experiment: Experiment, summary: Table, details: Table, more: Iterable[Table] = ()) -> str:
    """Write the page `table.md`: what the experiment asks, what was reported, all tables, the long one last."""
    parts = [f"## {experiment.title}\n\n{experiment.question}\n"]
    if experiment.reported:
        lines = [f"| {r.what} | {r.figure} | {r.source} |" for r in experiment.reported]
        parts.append("\n".join(["| reported | figure | source |", "|---|---|---|", *lines]) + "\n")
    parts += [*map(markdown, (summary, *more)), INTERVALS + "\n", markdown(details)]
    return "\n".join(parts)
