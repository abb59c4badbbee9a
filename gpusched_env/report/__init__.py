"""Reports: comparisons of policies, their statistics, tables and figures.

The figures are in `gpusched_env.report.figures`, which needs the extra `plot`.
"""

from gpusched_env.report.comparison import compare
from gpusched_env.report.processes import WorkerError
from gpusched_env.report.results_file import results_json
from gpusched_env.report.run_summary import RunSummary
from gpusched_env.report.statistics import PolicyStatistics, summarise
from gpusched_env.report.table import markdown_table, runs_csv

__all__ = [
    "PolicyStatistics",
    "RunSummary",
    "WorkerError",
    "compare",
    "markdown_table",
    "results_json",
    "runs_csv",
    "summarise",
]
