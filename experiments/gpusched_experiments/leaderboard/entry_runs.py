"""The runs of an entry: every worker has a process of its own, and stores each run the moment it is finished."""

from __future__ import annotations

import threading
import time
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from typing import TYPE_CHECKING

from gpusched_experiments.report.code_version import code_version
from gpusched_experiments.report.measure import whole_run
from gpusched_experiments.untrusted.errors import EntryError
from gpusched_experiments.untrusted.process import Process
from gpusched_experiments.untrusted.remote_policy import RemotePolicy, policy_seed

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from gpusched_experiments.report.cell import Cell
    from gpusched_experiments.report.run import Values
    from gpusched_experiments.report.store import Store
    from gpusched_experiments.untrusted.entry import Entry
    from gpusched_experiments.untrusted.limits import Limits

POLL_S = 0.2  # between two looks at whether the command was stopped


def origin_of(entry: Entry) -> str:
    """Say what makes an entry's runs: the version of the code, and its own files."""
    return f"{code_version()}, {entry.sha256}"


class EntryRuns:
    """Runs an entry on cells.

    Args:
        entry: The entry.
        limits: What its processes may take.
        store: Where every finished run is added.
        on_finished: Called after every run, by one worker at a time.
    """

    def __init__(self, entry: Entry, limits: Limits, store: Store, on_finished: Callable[[], None]) -> None:
        self.entry, self.limits, self.store, self.on_finished = entry, limits, store, on_finished
        self._lock, self._stop = threading.Lock(), threading.Event()
        self._until = time.monotonic() + limits.all_s
        self._left: list[tuple[str, Cell]] = []
        self._values: dict[str, Values] = {}
        self._processes: list[Process] = []

    def run(self, cells: Mapping[str, Cell], workers: int) -> dict[str, Values]:
        """Run it on these cells, given by key; give what was measured, by key.

        Raises:
            EntryError: It broke a limit, decided what cannot be, or otherwise when it was run again.
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
        with Process(self.entry, self.limits) as process:
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
            raise EntryError(f"{self.entry.file}: all runs took longer than {self.limits.all_s:g} s")
        policy = RemotePolicy(process, cell.scenario, cell.seed)
        return whole_run(cell.instance(), policy, policy_seed(cell.seed))

    def _end_all(self) -> None:
        """End the processes of workers that are still at something; they find that out themselves."""
        with self._lock:
            for process in self._processes:
                process.kill()
