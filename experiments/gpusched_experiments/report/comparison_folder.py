"""The folder of a comparison: finished runs while it goes on, then its tables, figures and recorded runs."""

from __future__ import annotations

import hashlib
import re
import shutil
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import IO, Any

from gpusched_env.errors import InputError
from gpusched_env.files import one_error
from gpusched_env.formats import read_run, write_run
from gpusched_env.formats.run_folder import MAY_HOLD, RUN_FILES
from gpusched_env.model import Instance
from gpusched_env.simulator import Result
from gpusched_experiments.report.comparison_table import (
    comparison_table,
    groups_table,
    metrics_table,
    runs_csv,
    tables_markdown,
)
from gpusched_experiments.report.recorded_times import AS_TRACED, ReplayTimes, Traced
from gpusched_experiments.report.run_summary import RunSummary
from gpusched_experiments.report.statistics import (
    GroupStatistics,
    PolicyStatistics,
    summarise,
    summarise_groups,
    without_savings,
)
from gpusched_experiments.report.store import Place, Store, document_json, stored_values
from gpusched_experiments.report.table import Table, csv_text

RECORDED, CELLS = "runs", "cells.csv"
FIGURES = tuple(f"{name}.{form}" for name in ("costs", "gantt") for form in ("png", "svg", "pdf"))
JOURNAL_TRACE, JOURNAL_PAGE = "trace.csv", "journal.md"
"""Of a comparison on the journal of a watched cluster: the jobs that it saw, and what is said of them on the page."""
FILES = (
    "results.json", "runs.csv", "table.md", "groups.csv", "report.html", "scenario.toml", "instance.json", *FIGURES,
    CELLS, JOURNAL_TRACE, JOURNAL_PAGE,
)  # fmt: skip
MOST_RECORDED = 300_000
"""Jobs times configurations beyond which the runs of the first seed are not recorded: their files would be large."""


@dataclass(frozen=True, slots=True)
class Compared:
    """What came out under one rule for the GPUs that the jobs of a trace are offered, or without a trace.

    Attributes:
        gpu_demand: The rule; empty without a trace.
        runs: Every run.
        rows: The statistics of every policy.
        groups: Those of every tenant and class, where there are several.
        modelled: What the figures depend on that a trace does not say, a sentence each.
        traced: What the trace knows of the schedule that ran; None without a trace.
    """

    gpu_demand: str
    runs: tuple[RunSummary, ...]
    rows: tuple[PolicyStatistics, ...]
    groups: tuple[GroupStatistics, ...]
    modelled: tuple[str, ...]
    traced: Traced | None = None

    @classmethod
    def of(
        cls,
        runs: Sequence[RunSummary],
        reference: str,
        gpu_demand: str = "",
        modelled: tuple[str, ...] = (),
        traced: Traced | None = None,
    ) -> Compared:
        """Summarise these runs; a replay that is not the schedule that ran has no savings, and none are against it."""
        made = cls(gpu_demand, tuple(runs), summarise(runs, reference), summarise_groups(runs), modelled, traced)
        rows = tuple(
            without_savings(row) if made.not_claimed and made.not_claimed in {row.policy, reference} else row
            for row in made.rows
        )
        return replace(made, rows=rows)

    @property
    def replay(self) -> ReplayTimes | None:
        return ReplayTimes.of(self.traced, self.rows)

    @property
    def not_claimed(self) -> str:
        return AS_TRACED if self.replay is not None and not self.replay.is_what_ran else ""

    @property
    def best(self) -> str:
        return min(self.rows, key=lambda row: row.total_eur).policy

    def tables(self, reference: str, instance: str | None = None) -> tuple[Table, ...]:
        """List its tables: costs, jobs and machines, the replay beside the record, and tenants and classes.

        The last two are there where it is known what ran, and where there are several of them.
        """
        costs = comparison_table(self.rows, reference, instance, of_trace=bool(self.gpu_demand))
        if self.not_claimed == reference:
            none = f"Saving: n/a, since {reference} is not the schedule that ran."
            costs = replace(costs, notes=tuple(none if n.startswith("Saving:") else n for n in costs.notes))
        groups = (groups_table(self.groups),) if self.groups else ()
        replayed = () if self.replay is None else (self.replay.table(),)
        tables = (costs, metrics_table(self.rows), *replayed, *groups)
        return (
            tuple(replace(t, title=f"{t.title}, GPU demand: {self.gpu_demand}") for t in tables)
            if self.gpu_demand
            else tables
        )

    def markdown(self, reference: str, instance: str | None) -> str:
        texts = [tables_markdown(self.tables(reference, instance), titled=bool(self.gpu_demand))]
        if self.modelled:
            texts.append("What these figures depend on:\n\n" + "".join(f"- {each}\n" for each in self.modelled))
        return "\n".join(texts)


class ComparisonFolder:
    """A folder that holds a comparison, or nothing yet. Raises InputError: it is a file, or holds something else."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        check_ours(self.path)
        self._store = Store(self.path / CELLS)
        self.runs = stored_values(self._store.path)

    @contextmanager
    def taken(self) -> Iterator[None]:
        """Keep other commands out until the end of the body."""
        with one_error(self.path):
            self.path.mkdir(parents=True, exist_ok=True)
            opened = (self.path / CELLS).open("ab")
        with opened as file:
            if not _locked(file):
                raise InputError("path", str(self.path), "a folder in which no other comparison runs now")
            yield

    def add(self, key: str, run: RunSummary) -> None:
        self.runs[key] = run.stored()
        self._store.append(key, Place((), run.policy, run.seed), self.runs[key])

    def is_recorded(self, policy: str, key: str) -> bool:
        return _key_of(self.recorded(policy)) == key

    def recorded(self, policy: str) -> Path:
        plain = re.sub(r"[^A-Za-z0-9.-]+", "-", policy)[-80:].lstrip(".-")
        name = plain if plain == policy else f"{plain}-{hashlib.sha256(policy.encode()).hexdigest()[:6]}"
        return self.path / RECORDED / name

    def record(self, result: Result, key: str) -> None:
        write_run(result, self.recorded(result.policy), facts={"key": key})

    def keep(self, policies: Collection[str], seeds: Iterable[int], keys: set[str], *, others: bool = True) -> None:
        """Remove drafts, and the finished runs of these policies and seeds that have none of these keys.

        Args:
            others: Whether runs of other policies and seeds stay, for who compares them again.
        """
        self._store.keep(keys, {(policy, str(seed)) for seed in seeds for policy in policies} if others else None)
        own = {self.recorded(policy).name for policy in policies}
        with one_error(self.path):
            for former in () if others else (self.path / RECORDED).glob("*"):
                if former.name not in own:
                    shutil.rmtree(former)
            for draft in self.path.glob(".*.tmp"):
                draft.unlink()
            for draft in (self.path / RECORDED).glob(".*.tmp"):
                shutil.rmtree(draft)


def can_be_recorded(instance: Instance) -> bool:
    return len(instance.jobs) * len(instance.configurations) <= MOST_RECORDED


def comparison_files(
    compared: Sequence[Compared],
    reference: str,
    instance: str | None,
    recorded: Mapping[str, str],
    provenance: Mapping[str, Any],
) -> dict[str, str]:
    """Return the contents of the files that say what came out.

    Args:
        compared: What came out, first what the other files show.
    """
    first = compared[0]
    results = document_json(
        "gpusched comparison",
        provenance,
        reference=reference,
        seeds=sorted({run.seed for run in first.runs}),
        recorded=dict(recorded),
        **_document(first),
        more=[_document(each) for each in compared[1:]],
    )
    files = {
        "results.json": results,
        "runs.csv": _all_runs_csv(compared),
        "table.md": "\n".join(each.markdown(reference, instance) for each in compared),
    }
    if first.groups:
        files["groups.csv"] = _all_groups_csv(compared)
    return files


def _document(compared: Compared) -> dict[str, Any]:
    return {
        "gpu_demand": compared.gpu_demand,
        "modelled": compared.modelled,
        "traced": None if compared.traced is None else asdict(compared.traced),
        "policies": [asdict(row) for row in compared.rows],
        "groups": [asdict(group) for group in compared.groups],
        "runs": [run.as_dict() for run in compared.runs],
    }


def _all_runs_csv(compared: Sequence[Compared]) -> str:
    if len(compared) == 1:
        return runs_csv(compared[0].runs)
    return runs_csv([run for each in compared for run in each.runs], [e.gpu_demand for e in compared for _ in e.runs])


def _all_groups_csv(compared: Sequence[Compared]) -> str:
    texts = [csv_text(groups_table(each.groups, most=None)).splitlines() for each in compared]
    if len(texts) == 1:
        return "\n".join(texts[0]) + "\n"
    rows = [f"{each.gpu_demand},{line}" for each, text in zip(compared, texts, strict=True) for line in text[1:]]
    return "\n".join([f"gpu_demand,{texts[0][0]}", *rows]) + "\n"


def check_ours(folder: Path) -> None:
    """Check that the folder holds nothing but what a comparison writes.

    A folder is a comparison's if its finished runs or its results are there. What a killed command was writing (its
    drafts) is passed over.
    """
    if not folder.exists():
        return
    if not folder.is_dir():
        raise InputError("path", str(folder), "a new folder, not a file")
    comparison = any((folder / name).is_file() for name in (CELLS, "results.json"))
    strangers = [each for entry in sorted(folder.iterdir()) for each in _strangers(entry, comparison=comparison)]
    if strangers:
        allowed = "a new or empty folder, or one that holds nothing but a comparison"
        raise InputError("path", str(folder), f"{allowed} (found {strangers[0]!r})")


def _strangers(entry: Path, *, comparison: bool) -> list[str]:
    if not comparison or entry.is_symlink():
        return [entry.name]
    if entry.name == RECORDED and entry.is_dir():
        return [f"{RECORDED}/{run.name}" for run in sorted(entry.iterdir()) if not _is_ours(run)]
    draft = _DRAFT.fullmatch(entry.name)
    return [] if (draft.group(1) if draft else entry.name) in FILES and not entry.is_dir() else [entry.name]


_DRAFT = re.compile(r"\.(.+)\.[0-9a-f]{12}\.tmp")
"""The name under which `files` writes what gets its own name when it is whole."""


def _is_ours(run: Path) -> bool:
    if run.is_symlink() or not run.is_dir():
        return False
    if _DRAFT.fullmatch(run.name):
        return all(_named(entry) in RUN_FILES for entry in run.iterdir())
    return all(entry.name in MAY_HOLD for entry in run.iterdir()) and _key_of(run) is not None


def _named(entry: Path) -> str:
    draft = _DRAFT.fullmatch(entry.name)
    return draft.group(1) if draft else entry.name


def _key_of(run: Path) -> str | None:
    try:
        key = read_run(run).facts["provenance"]["facts"]["key"]
    except (InputError, KeyError, TypeError):
        return None
    return key if isinstance(key, str) else None


def _locked(file: IO[bytes]) -> bool:
    """Lock the file until it is closed, and say whether that could be done; where there are no locks, it is."""
    try:
        import fcntl  # noqa: PLC0415 - there is none on Windows
    except ImportError:
        return True
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # a file system without locks
        return True
    return True
