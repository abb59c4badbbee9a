"""Conduct a study from its trainings, several at once, each in a process of its own, to its files."""

from __future__ import annotations

import multiprocessing
import sys
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpusched_agents.study import finished_training, train
from gpusched_agents.training.algorithm_config import EsConfig
from gpusched_env.child_processes import children_ignore_sigint
from gpusched_env.errors import InputError
from gpusched_env.model import checks
from gpusched_env.provenance import provenance
from gpusched_env.rendering import MissingExtraError
from gpusched_experiments.report.processes import PROCESSES, Backend, WorkerError, call_all, start_worker
from gpusched_experiments.report.store import write_results
from gpusched_experiments.report.table import Outcome, csv_text
from gpusched_reproductions.learning.figures import study_charts
from gpusched_reproductions.learning.plan import StudyPlan, TrainingRun, evaluate_all
from gpusched_reproductions.learning.tables import (
    ablation_table,
    curves_csv,
    page,
    read_trained,
    scenario_table,
    summary_json,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from multiprocessing.context import SpawnProcess

    from gpusched_experiments.report.chart import Drawing

NEEDED = ("torch", "stable_baselines3", "sb3_contrib")
INTERRUPTED = 130


def train_all(
    runs: Sequence[TrainingRun],
    folder: Path,
    workers: int,
    on_progress: Callable[[int, int], None],
    backend: Backend = PROCESSES,
) -> None:
    """Train every run that is not finished, each in its subfolder of `folder`, where it goes on if it was stopped.

    Args:
        runs: The trainings, begun in this order.
        folder: Folder of all of them.
        workers: Most at once, ≥ 1; with 1 process everything happens in this one.
        on_progress: Called with the decisions taken so far, over all trainings, and the number of finished trainings;
            those of another machine are heard of when they end.
        backend: What makes the processes; all its machines must see `folder`.

    Raises:
        InputError: A training in `folder` has other settings.
        MissingExtraError: There is something to train, and what trains it is not installed.
        WorkerError: A training ended early; the others were stopped.
    """
    tally = _Tally({run.name: 0 for run in runs}, on_progress)
    waiting = [run for run in runs if finished_training(run.config, folder / run.name) is None]
    for run in runs:
        if run not in waiting:
            tally.end(run)
    if any(not isinstance(run.config.agent, EsConfig) for run in waiting):
        _check_installed()
    command = str(provenance()["command"])
    if backend != PROCESSES:
        _train_elsewhere(waiting, folder, workers, command, tally, backend)
    elif workers == 1:
        for run in waiting:
            train(run.config, folder / run.name, run.name, command, tally.of(run))
            tally.end(run)
    else:
        _train_in_processes(waiting, folder, workers, command, tally)


@dataclass(slots=True)
class _Tally:
    """Adds up how far all trainings are."""

    decisions: dict[str, int]
    on_progress: Callable[[int, int], None]
    finished: int = 0

    def of(self, run: TrainingRun) -> Callable[[int, int, str], None]:
        def report(done: int, _total: int, _text: str) -> None:
            self.decisions[run.name] = done
            self.tell()

        return report

    def end(self, run: TrainingRun) -> None:
        self.decisions[run.name] = run.decisions
        self.finished += 1
        self.tell()

    def tell(self) -> None:
        self.on_progress(sum(self.decisions.values()), self.finished)


@dataclass(slots=True)
class _Process:
    """A training that runs in a process of its own."""

    run: TrainingRun
    process: SpawnProcess
    receiver: Connection[Any, Any]

    def receive(self, tally: _Tally) -> bool:
        """Take what the training says; True when it has ended well.

        Raises:
            InputError: It was given bad input.
            WorkerError: It ended otherwise than well.
        """
        try:
            message = self.receiver.recv()
        except EOFError:
            self.process.join()
            if self.process.exitcode != 0:
                text = f"the training {self.run.name} ended early, perhaps out of memory; try fewer workers"
                raise WorkerError(text) from None
            tally.end(self.run)
            return True
        if isinstance(message, Exception):
            raise message
        tally.of(self.run)(message, self.run.decisions, "")
        return False


def _train_elsewhere(
    waiting: Sequence[TrainingRun], folder: Path, workers: int, command: str, tally: _Tally, backend: Backend
) -> None:
    calls = [partial(_train_quietly, run, folder.absolute(), command) for run in waiting]
    for index, () in call_all(calls, (), workers, backend):
        run = waiting[index]
        if finished_training(run.config, folder / run.name) is None:
            raise InputError(str(folder), run.name, "a folder that all machines share, so that trainings are seen here")
        tally.end(run)


def _train_quietly(run: TrainingRun, folder: Path, command: str) -> tuple[()]:
    try:
        train(run.config, folder / run.name, run.name, command, lambda _done, _total, _text: None)
    except InputError:
        raise
    except Exception as error:
        raise _failed(run, error) from error
    return ()


def _failed(run: TrainingRun, error: Exception) -> WorkerError:
    return WorkerError(f"the training {run.name} failed: {type(error).__name__}: {error}")


def _train_in_processes(
    waiting: Iterable[TrainingRun], folder: Path, workers: int, command: str, tally: _Tally
) -> None:
    left, running = list(waiting), list[_Process]()
    try:
        while left or running:
            while left and len(running) < workers:
                running.append(_begin(left.pop(0), folder, command))
            said = wait([each.receiver for each in running])
            running = [each for each in running if each.receiver not in said or not each.receive(tally)]
    finally:
        for each in running:  # they are at a checkpoint or lose what came after it
            each.process.terminate()
        for each in running:
            each.process.join()


def _begin(run: TrainingRun, folder: Path, command: str) -> _Process:
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_work, args=(sender, run, folder, command), name=run.name)
    with children_ignore_sigint():
        process.start()
    sender.close()  # so that the receiver notices when the process has ended
    return _Process(run, process, receiver)


def _work(sender: Connection[Any, Any], run: TrainingRun, folder: Path, command: str) -> None:
    """Train, in a process that ends with its parent."""
    start_worker(())
    try:
        train(run.config, folder / run.name, run.name, command, lambda done, _total, _text: sender.send(done))
    except InputError as error:
        sender.send(error)
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    except Exception as error:  # noqa: BLE001 - the parent raises it
        sender.send(_failed(run, error))
    sender.close()


def _check_installed() -> None:
    for package in NEEDED:
        if find_spec(package) is None:
            raise MissingExtraError(package, "agents", "algorithms of Stable-Baselines3")


RUNS = "runs"


def study(
    plan: StudyPlan,
    out: str | Path,
    *,
    workers: int = 1,
    on_training: Callable[[int, int, int, int], None],
    on_evaluating: Callable[[int, int], None],
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
        on_training: Called with the decisions taken, of how many at most, and how many trainings have ended, of all.
        on_evaluating: Called with how many runs on held-out workloads are finished, of how many.
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

    def report(done: int, finished: int) -> None:
        on_training(done, total, finished, len(runs))

    train_all(runs, folder / RUNS, workers, report, backend)
    trained = tuple(read_trained(run, folder / RUNS / run.name) for run in runs)
    evaluated = evaluate_all(plan, folder / RUNS, workers, on_evaluating, backend)
    table, scenarios = ablation_table(plan, trained, evaluated), scenario_table(plan, evaluated)
    contents: dict[str, str | bytes] = {
        "table.md": page(plan, (table, scenarios)),
        "table.csv": csv_text(table),
        "scenarios.csv": csv_text(scenarios),
        "curves.csv": curves_csv(trained),
    }
    if drawing is not None:
        for name, chart in study_charts(plan, trained, evaluated, folder / RUNS).items():
            contents |= drawing.chart_files(chart, name)
    contents["summary.json"] = summary_json(plan, trained, evaluated, workers)
    return Outcome(folder, table, write_results(folder, contents))
