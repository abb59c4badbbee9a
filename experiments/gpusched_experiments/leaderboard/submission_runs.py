"""The runs of an entry and their checks: every worker has a process of its own, and stores each run when it ends."""

from __future__ import annotations

import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from gpusched_env.audit import audit
from gpusched_env.errors import InputError
from gpusched_env.formats import write_run
from gpusched_env.simulator import Result, simulate
from gpusched_env.workload import Scenario, Track, load_scenario, make_instance
from gpusched_experiments.report.cell import Cell, whole_run
from gpusched_experiments.report.code_version import code_version
from gpusched_experiments.report.run import Values
from gpusched_experiments.report.store import Store
from gpusched_experiments.sandbox.process import Process, RemotePolicy, misfit, policy_seed
from gpusched_experiments.sandbox.submitted import SandboxLimits, Submission, SubmissionError

POLL_S = 0.2  # between two looks at whether the command was stopped


def origin_of(submission: Submission) -> str:
    """Return what makes an entry's runs: the version of the code, and its own files."""
    return f"{code_version()}, {submission.sha256}"


class SubmissionRuns:
    """Runs an entry on cells.

    Args:
        submission: The entry.
        limits: What its processes may take.
        store: Where every finished run is added.
        on_finished: Called after every run, by one worker at a time.
    """

    def __init__(
        self, submission: Submission, limits: SandboxLimits, store: Store, on_finished: Callable[[], None]
    ) -> None:
        self.submission, self.limits, self.store, self.on_finished = submission, limits, store, on_finished
        self._lock, self._stop = threading.Lock(), threading.Event()
        self._until = time.monotonic() + limits.all_s
        self._left: list[tuple[str, Cell]] = []
        self._values: dict[str, Values] = {}
        self._processes: list[Process] = []

    def run(self, cells: Mapping[str, Cell], workers: int) -> dict[str, Values]:
        """Run it on these cells, given by key; give what was measured, by key.

        Raises:
            SubmissionError: It broke a limit, decided what cannot be, or otherwise when it was run again.
            StalledError: It leaves all jobs waiting.
        """
        self._left = list(cells.items())[::-1]
        with ThreadPoolExecutor(max_workers=workers) as pool:
            futures = [pool.submit(self._work) for _ in range(min(workers, len(cells)))]
            try:
                while (state := wait(futures, POLL_S, FIRST_EXCEPTION)).not_done:
                    for future in state.done:
                        future.result()
            finally:
                self._stop.set()
                self._end_all()
        for future in futures:
            future.result()
        return self._values

    def _work(self) -> None:
        """Take a cell after the other; at the end run the first one again, in the same process."""
        with Process(self.submission, self.limits) as process:
            with self._lock:
                self._processes.append(process)
            first: tuple[Cell, Values] | None = None
            while (taken := self._next()) is not None:
                key, cell = taken
                values = self._measured(process, cell)
                first = first or (cell, values)
                with self._lock:
                    self.store.append(key, cell, values)
                    self._values[key] = values
                    self.on_finished()
            if first is not None and not self._stop.is_set():
                cell, values = first
                if self._measured(process, cell)["total_eur"] != values["total_eur"]:
                    where = f"{dict(cell.labels)['track']}, seed {cell.seed}"
                    raise process.wrong(
                        f"decides otherwise when {where} is run again: it keeps something of other runs"
                    )

    def _next(self) -> tuple[str, Cell] | None:
        with self._lock:
            return self._left.pop() if self._left and not self._stop.is_set() else None

    def _measured(self, process: Process, cell: Cell) -> Values:
        if time.monotonic() > self._until:
            raise SubmissionError(f"{self.submission.file}: all runs took longer than {self.limits.all_s:g} s")
        policy = RemotePolicy(process, cell.scenario, cell.seed)
        return whole_run(cell.instance(), policy, policy_seed(cell.seed))

    def _end_all(self) -> None:
        """End the processes of workers that are still at something; they find that out themselves."""
        with self._lock:
            for process in self._processes:
                process.kill()


SMALL, JOBS, SEED = "tiny", 10, 0


@dataclass(frozen=True, slots=True)
class Checked:
    """What is known of an entry that passed.

    Attributes:
        lacking: What this system cannot protect from, a sentence each.
        misfits: Why it cannot decide on a track, by the track's name; no others are in it.
    """

    lacking: tuple[str, ...]
    misfits: dict[str, str]


def check_submission(submission: Submission, limits: SandboxLimits, tracks: Sequence[Track]) -> Checked:
    """Run an entry on a small workload: twice in one process and once in another, and audit what came out.

    Raises:
        SubmissionError: It is no policy, breaks a limit, or decides what cannot be, or not always the same.
        InputError: It can decide on no track.
    """
    with Process(submission, limits) as process:
        misfits = {track.name: misfit(process, track.scenario) for track in tracks}
        fitting = [track for track in tracks if misfits[track.name] is None]
        if not fitting:
            raise InputError(
                "--tracks", ",".join(misfits), f"one that {submission.name} can decide on ({misfits.popitem()[1]})"
            )
        small = _small(process, fitting[0])
        first = _run(process, small)
        found = _audited(first)
        if found:
            raise process.wrong(f"the audit of a small run found a difference: {found}")
        if not _same(first, _run(process, small)):
            raise process.wrong(
                "decides otherwise when it is run again: it keeps something of a run, or draws without rng"
            )
        lacking = process.lacking
    with Process(submission, limits) as another:
        if not _same(first, _run(another, small)):
            raise another.wrong("decides otherwise in another process: it draws without rng")
    return Checked(lacking, {name: why for name, why in misfits.items() if why is not None})


def _small(process: Process, track: Track) -> Scenario:
    """Choose a small workload: a small scenario if the entry can decide on it, else a few jobs of a track."""
    small = load_scenario(SMALL)
    return small if misfit(process, small) is None else track.scenario.replace({"jobs.count": JOBS})


def _run(process: Process, scenario: Scenario) -> Result:
    instance = make_instance(scenario, SEED)
    return simulate(instance, RemotePolicy(process, scenario, SEED), seed=policy_seed(SEED))


def _audited(result: Result) -> str:
    """Return the first difference that the audit finds; an empty text if there is none."""
    with tempfile.TemporaryDirectory(prefix="gpusched-") as folder:
        run = Path(folder) / "run"
        write_run(result, run)
        return next((str(each) for each in audit(run)), "")


def _same(one: Result, other: Result) -> bool:
    costs = (one.energy_eur, one.tardiness_eur) == (other.energy_eur, other.tardiness_eur)
    return costs and np.array_equal(one.log, other.log)
