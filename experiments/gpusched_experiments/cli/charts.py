"""Charts as PNG files' contents; importing this needs matplotlib."""

from collections.abc import Sequence

from gpusched_env.rendering.gantt import gantt_figure
from gpusched_env.simulator import Result
from gpusched_experiments.report import PolicyStatistics, RunSummary
from gpusched_experiments.report.figures import cost_figure, png_bytes


def cost_png(rows: Sequence[PolicyStatistics], runs: Sequence[RunSummary], title: str) -> bytes:
    """Draw the cost split of every policy."""
    return png_bytes(cost_figure(rows, runs, title))


def gantt_png(result: Result) -> bytes:
    """Draw the Gantt chart of a run."""
    return png_bytes(gantt_figure(result))
