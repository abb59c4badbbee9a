"""The report of a folder that one of the commands wrote: a comparison, a run, or an experiment."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from gpusched_env.errors import InputError
from gpusched_experiments.page.comparison_folder import comparison_report
from gpusched_experiments.page.experiment_folder import experiment_report
from gpusched_experiments.page.leaderboard_folder import is_leaderboard, leaderboard_report
from gpusched_experiments.page.run_report import run_folder_report

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from gpusched_experiments.page.report_data import ReportData

KINDS: Mapping[str, Callable[[Path], ReportData]] = {
    "results.json": comparison_report,
    "run.json": run_folder_report,
    "record.json": experiment_report,
}
"""What reads a folder, by the file that shows what it is."""


def folder_report(folder: str | Path) -> ReportData:
    """Read what a command wrote to this folder: `compare`, `simulate`, `reproduce` or `leaderboard`.

    Raises:
        InputError: It is none of these, or one of its files cannot be read.
    """
    source = Path(folder)
    for name, read in KINDS.items():
        if (source / name).is_file():
            return leaderboard_report(source) if is_leaderboard(source) else read(source)
    allowed = "a folder that compare, simulate --out, reproduce or leaderboard wrote: one with"
    raise InputError("folder", str(folder), f"{allowed} {', '.join(KINDS)}")
