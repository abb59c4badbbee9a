"""Run a study from its trainings to its files, going on where a former command stopped."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from gpusched_env.model import checks
from gpusched_experiments.report.processes import PROCESSES
from gpusched_experiments.report.store import write_results
from gpusched_experiments.report.table import Outcome, csv_text
from gpusched_reproductions.learning.curves import curves_chart, curves_csv, read_trained, summary_json
from gpusched_reproductions.learning.evaluation import evaluate_all
from gpusched_reproductions.learning.tables import ablation_table, page, scenario_table
from gpusched_reproductions.learning.trainings import train_all

if TYPE_CHECKING:
    from gpusched_experiments.report.chart import Drawing
    from gpusched_experiments.report.processes import Backend
    from gpusched_reproductions.learning.plan import StudyPlan

RUNS = "runs"
FIGURE = "curves"


class StudyWatcher(Protocol):
    """Whom to tell how a study goes."""

    def training(self, done: int, total: int, finished: int, runs: int) -> None:
        """Hear how many decisions are taken, of how many at most, and how many trainings have ended."""

    def evaluating(self, done: int, total: int) -> None:
        """Hear how many runs on held-out workloads are finished, of how many."""


def study(
    plan: StudyPlan,
    out: str | Path,
    *,
    workers: int = 1,
    watcher: StudyWatcher,
    drawing: Drawing | None = None,
    backend: Backend = PROCESSES,
) -> Outcome:
    """Train what is not trained yet, run all agents on held-out workloads, and write tables, curves and figure.

    The trainings, with their checkpoints, are in the subfolder `runs` and may be large; what is to be kept of the
    study is written to `out` itself.

    Args:
        plan: The study.
        out: Its folder; that of the same study goes on where it stopped.
        workers: Number of processes, ≥ 1.
        watcher: Whom to tell how it goes.
        drawing: What draws; without it there is no figure.
        backend: What makes the processes; all its machines must see the folder.

    Raises:
        InputError: The folder holds trainings with other settings, or cannot be written.
        MissingExtraError: There is something to train, and what trains is not installed.
        WorkerError: A process ended early; what was finished is kept.
    """
    checks.whole("workers", workers)
    folder, runs = Path(out), plan.trainings()
    total = sum(run.decisions for run in runs)

    def told(done: int, finished: int) -> None:
        watcher.training(done, total, finished, len(runs))

    train_all(runs, folder / RUNS, workers, told, backend)
    trained = tuple(read_trained(run, folder / RUNS / run.name) for run in runs)
    evaluated = evaluate_all(plan, folder / RUNS, workers, watcher.evaluating, backend)
    table, scenarios = ablation_table(plan, trained, evaluated), scenario_table(plan, evaluated)
    contents: dict[str, str | bytes] = {
        "table.md": page(plan, (table, scenarios)),
        "table.csv": csv_text(table),
        "scenarios.csv": csv_text(scenarios),
        "curves.csv": curves_csv(trained),
    }
    if drawing is not None:
        drawn = drawing.chart_files(curves_chart(plan, trained, evaluated))
        contents |= {FIGURE + Path(name).suffix: content for name, content in drawn.items()}
    contents["summary.json"] = summary_json(plan, trained, evaluated, workers)
    return Outcome(folder, table, write_results(folder, contents))
