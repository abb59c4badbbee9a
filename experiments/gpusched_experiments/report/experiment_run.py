"""Run an experiment from its cells to its files, going on where a former command stopped."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from gpusched_agents.any_policy import is_agent, known_policies, make_any_policy, shown_name
from gpusched_env.errors import InputError
from gpusched_env.files import write_atomically
from gpusched_env.model import checks
from gpusched_env.simulator.policy import check_fit
from gpusched_env.workload.mixture import variants_of
from gpusched_experiments.report.cell import Cell, origin, run_cells
from gpusched_experiments.report.code_version import code_version, mechanisms_of
from gpusched_experiments.report.experiment import Experiment, Selection, available, page_markdown
from gpusched_experiments.report.processes import PROCESSES, Backend
from gpusched_experiments.report.record import RunProgress, record_json, recorded_facts
from gpusched_experiments.report.run import Runs, Values
from gpusched_experiments.report.store import Store, stored_places, stored_values, write_results
from gpusched_experiments.report.table import Outcome, Table, csv_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from gpusched_experiments.report.cell import Change
    from gpusched_experiments.report.chart import Drawing

RESULTS = ("table.md", "table.csv", "summary.csv", "figure.svg")
"""Files that are made from the finished cells; `cells.csv` and `record.json` stand beside them."""


class Watcher(Protocol):
    """Receives the progress of an experiment."""

    def note(self, text: str) -> None:
        """Take a note for readers of the results."""

    def begin(self, experiment: Experiment, runs: int, finished: int) -> None:
        """Take the number of runs, and of those that are finished already, before the first run."""

    def finished(self) -> None:
        """Count one more finished run."""


def reproduce(
    experiment: Experiment,
    choice: Selection,
    out: str | Path,
    *,
    workers: int = 1,
    watcher: Watcher,
    drawing: Drawing | None = None,
    backend: Backend = PROCESSES,
) -> Outcome:
    """Run what is not finished yet of an experiment, and write its tables and figure, as `run_experiment` does.

    Args:
        out: Folder of all experiments; this one's files go to its subfolder with the experiment's name.
        drawing: What draws; without it there is no figure.
        backend: What makes the processes; timings run in this one.
    """
    folder = Path(out) / experiment.name
    return run_experiment(
        experiment, choice, folder, workers=workers, watcher=watcher, drawing=drawing, backend=backend
    )


def run_experiment(
    experiment: Experiment,
    choice: Selection,
    folder: Path,
    *,
    workers: int = 1,
    watcher: Watcher,
    drawing: Drawing | None = None,
    backend: Backend = PROCESSES,
) -> Outcome:
    """Run what is not finished yet of an experiment, and write its tables and figure.

    Finished cells are taken from the experiment's folder, and from the folders beside it if another experiment had the
    same runs, but only if their definition and the code that made them are the same; times also only if the machine
    is. So the results do not depend on how often the command was stopped, nor on `workers`, but for the times.

    Args:
        drawing: What draws; without it there is no figure.
        backend: What makes the processes; timings run in this one.

    Raises:
        InputError: There is no such policy, none is left, an agent does not fit a workload, or the folder cannot be
            written or holds a foreign file.
    """
    checks.whole("workers", workers)
    begin = time.monotonic()
    cells = planned_cells(experiment, choice, watcher)
    keys = dict(cells)  # cells of different places in the experiment may be one and the same run
    known = _known(experiment, folder, keys, watcher)
    progress = RunProgress(len(keys), len(known), 1 if experiment.alone else workers)
    store = Store(folder / "cells.csv", experiment.labels)

    def record(progress: RunProgress) -> None:
        text = record_json(experiment.name, cells, progress, quick=choice.quick, reported=experiment.reported)
        write_atomically(folder / "record.json", text)

    record(progress)
    others = store.elsewhere({Store.place(cell, experiment.labels) for cell in keys.values()})
    store.write(((key, cell, known[key]) for key, cell in cells if key in known), others)
    watcher.begin(experiment, len(keys), len(known))
    where = PROCESSES if experiment.alone else backend
    values = run_cells(keys, known, store, progress.workers, watcher.finished, where)
    store.write(((key, cell, values[key]) for key, cell in cells), others)
    shown = {name: shown_name(name) for name in {cell.policy for _, cell in cells}}
    runs = Runs.of((dict(cell.labels), shown[cell.policy], cell.seed, values[key]) for key, cell in cells)
    summary, files = write_tables(experiment, folder, runs, drawing)
    runs_s = sum(float(each["run_s"]) for each in values.values())
    record(replace(progress, duration_s=time.monotonic() - begin, runs_s=runs_s, finished=True))
    return Outcome(folder, summary, (*files, "cells.csv", "record.json"))


def planned_cells(experiment: Experiment, choice: Selection, watcher: Watcher) -> tuple[tuple[str, Cell], ...]:
    """List the cells of a choice with their keys, in the experiment's order."""
    for name in choice.policies or ():
        make_any_policy(name)  # names what there is, if there is no such policy
    policies, missing = available(choice.policies or experiment.policies, (*known_policies(), *(choice.policies or ())))
    planned = experiment.cells(choice, policies)
    if not planned:
        raise InputError("--policies", ",".join(policies), f"one or more that {experiment.name} can run")
    if missing:
        watcher.note(f"{experiment.name}: without {', '.join(missing)}, which this version does not have")
    _check_agents(planned)
    used: dict[tuple[int, Change | None], tuple[str, ...]] = {}
    return tuple((cell.key(_origin_of(cell, used)), cell) for cell in planned)


def _origin_of(cell: Cell, used: dict[tuple[int, Change | None], tuple[str, ...]]) -> str:
    """Return what makes a cell; `used`: the mechanisms of workloads, which are added where they are not known."""
    workload = id(cell.scenario), cell.change
    if workload not in used:
        seeds = range(cell.seed, cell.seed + max(1, len(cell.scenario.mixture)))
        instances = (replace(cell, seed=seed).instance() for seed in seeds)
        of_instances = {name for instance in instances for name in mechanisms_of(instance)}
        of_scenarios = {name for each in variants_of(cell.scenario) for name in each.mechanisms}
        used[workload] = tuple(sorted(of_instances | of_scenarios))
    return origin(cell.policy, cell.measure, None if cell.change is None else type(cell.change), used[workload])


def _check_agents(cells: Iterable[Cell]) -> None:
    """Check that every agent can decide on its workloads: equal labels have equal configurations, or one mixture's."""
    for cell in {(cell.policy, cell.labels): cell for cell in cells if is_agent(cell.policy)}.values():
        for seed in range(max(1, len(cell.scenario.mixture))):
            check_fit([make_any_policy(cell.policy)], replace(cell, seed=cell.seed + seed).instance())


def _known(experiment: Experiment, folder: Path, keys: Mapping[str, Cell], watcher: Watcher) -> dict[str, Values]:
    """Take the finished cells that belong to this set, and say what becomes of the others."""
    own = stored_values(folder / "cells.csv")
    found: dict[str, Values] = {}
    for beside in sorted(folder.parent.glob("*/cells.csv")):
        if beside.parent != folder:
            found |= stored_values(beside)
    found |= own
    known = {key: found[key] for key in keys if key in found}
    kept = sum(key in keys for key in own)
    _check_same_set(experiment, folder, keys)
    if len(own) > kept:
        watcher.note(f"{folder}: {_why_left_out(folder, len(own), kept)}")
        if len(known) < len(keys):
            for name in (*RESULTS, *_more_files(experiment)):  # they are of the former set
                (folder / name).unlink(missing_ok=True)
    if known:
        beside_it = "" if kept == len(known) else f", {len(known) - kept} of them from the experiments beside it"
        watcher.note(f"{experiment.name}: {len(known)} of {len(keys)} runs are finished already{beside_it}")
    return known


def _check_same_set(experiment: Experiment, folder: Path, keys: Mapping[str, Cell]) -> None:
    """Check that the folder holds nothing, or runs of places that are asked for: of another set none are removed."""
    stored = stored_places(folder / "cells.csv")
    places = {Store.place(cell, experiment.labels) for cell in keys.values()}
    if stored and stored.isdisjoint(places):
        allowed = (
            f"another folder (--out): its {len(stored)} runs are of other workloads, policies or seeds; or remove it"
        )
        raise InputError("path", str(folder), allowed)


def _why_left_out(folder: Path, stored: int, kept: int) -> str:
    facts = recorded_facts(folder / "record.json")
    by_other_code = facts.get("code") != code_version()
    if kept:
        others = "by other code, or of another set" if by_other_code else "of another set (settings, seeds or agents)"
        return f"{stored - kept} of its {stored} runs are {others}: in no table"
    if by_other_code:
        return f"starts again: its {stored} runs were made by other code ({facts.get('code', 'unknown')})"
    others = "other settings, seeds, agents, or for times another machine"
    return f"starts again: its {stored} runs are of another set ({others})"


def write_tables(
    experiment: Experiment, folder: Path, runs: Runs, drawing: Drawing | None
) -> tuple[Table, tuple[str, ...]]:
    """Write the tables and figures of these runs to a folder; give the short table, and the names of the files."""
    summary, details = experiment.summary(runs), experiment.details(runs)
    more = [table(runs) for table in experiment.more.values()]
    contents: dict[str, str | bytes] = {
        "table.md": page_markdown(experiment, summary, details, more),
        "table.csv": csv_text(details),
        "summary.csv": csv_text(summary),
    }
    contents |= {f"{name}.csv": csv_text(table) for name, table in zip(experiment.more, more, strict=True)}
    if drawing is not None:
        for name, chart in {"figure": experiment.chart, **experiment.figures}.items():
            contents |= drawing.chart_files(chart(runs), name)
    return summary, write_results(folder, contents)


def _more_files(experiment: Experiment) -> list[str]:
    figures = [f"{name}.svg" for name in experiment.figures]
    return [f"{name}.csv" for name in experiment.more] + figures
