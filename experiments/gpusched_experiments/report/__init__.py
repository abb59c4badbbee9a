"""Reports: comparisons of policies, their statistics, tables and figures.

The figures are in `gpusched_experiments.report.figures`, which needs the extra `plot`.
"""

from typing import TYPE_CHECKING

from gpusched_env.lazy import lazy_names

if TYPE_CHECKING:
    from gpusched_experiments.report.comparison import Comparison, compare
    from gpusched_experiments.report.comparison_table import markdown_table, runs_csv
    from gpusched_experiments.report.evaluation import PolicyEvaluation, evaluate
    from gpusched_experiments.report.processes import WorkerError
    from gpusched_experiments.report.run_summary import RunSummary
    from gpusched_experiments.report.statistics import GroupStatistics, PolicyStatistics, summarise, summarise_groups

__all__ = [
    "Comparison",
    "GroupStatistics",
    "PolicyEvaluation",
    "PolicyStatistics",
    "RunSummary",
    "WorkerError",
    "compare",
    "evaluate",
    "markdown_table",
    "runs_csv",
    "summarise",
    "summarise_groups",
]

__getattr__ = lazy_names(__name__, __file__)
