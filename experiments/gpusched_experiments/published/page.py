"""The page `table.md`: our figures, and what the sources reported beside them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpusched_experiments.published.table import markdown

if TYPE_CHECKING:
    from gpusched_experiments.published.experiment import Experiment
    from gpusched_experiments.published.table import Table

INTERVALS = (
    "In brackets 95 % bootstrap intervals over seeds, where there are 5 seeds or more. All policies of a group ran on "
    "the same workloads; savings are paired by seed."
)


def page_markdown(experiment: Experiment, summary: Table, details: Table) -> str:
    """Write the page of an experiment: what it asks, what was reported, both tables."""
    parts = [f"## {experiment.title}\n\n{experiment.question}\n"]
    if experiment.reported:
        lines = [f"| {r.what} | {r.figure} | {r.source} |" for r in experiment.reported]
        parts.append("\n".join(["| reported | figure | source |", "|---|---|---|", *lines]) + "\n")
    parts += [markdown(summary), INTERVALS + "\n", markdown(details)]
    return "\n".join(parts)
