"""A journal: what happened on a live cluster, one JSON object a line, in a folder with one file a day.

Every file begins with a line of the kind `head`: how it was made. A line is there when its line feed is: what a crash
left of one is cut off when the journal goes on, and not read before that.
"""

from __future__ import annotations

import gzip
import json
import logging
import os
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, fields
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

from gpusched_env.errors import InputError, RunError
from gpusched_env.files import unpack, write_atomically
from gpusched_env.provenance import provenance
from gpusched_env.workload.traces.journal import ENDING, KIND, PACKED, PREFIX, TIME, journal_files, read_journal
from gpusched_operations.live.state import LiveCluster, LiveJob, LiveNode
from gpusched_operations.service.logs import TAKEN, log_event

__all__ = ["Journal", "read_journal", "read_states"]

HEAD, ROUND, STATE = "head", "round", "state"
NO_EVENTS, FAILURES = (STATE, "job", "progress", "watch"), ("round-failed", "refused", "not-started")
"""Kinds of lines that the log leaves out, and that it writes as warnings."""
FORM = 1
"""The number of this form of journals."""


def log_line(kind: str, fields: Mapping[str, Any]) -> None:
    """Write a line of a journal to the log, if it tells of an event; a listener."""
    if kind not in NO_EVENTS:
        level = logging.WARNING if kind in FAILURES or str(fields.get("event")).endswith("-failed") else logging.INFO
        log_event(kind, level, **{f"of_{name}" if name in TAKEN else name: value for name, value in fields.items()})


class Journal:
    """A journal that is written; one that is there goes on.

    A day of the calendar (UTC) has a file; the files of former days are compressed. Times never lead back to a former
    file: when the clock is set back, the newest one goes on.

    Args:
        path: Its folder; made if it is not there.
        seed: The seed of the policy that decides; None: there is none.
        clock: What tells the Unix time [s].

    Attributes:
        listeners: Called with kind and fields of every line that is written.

    Raises:
        InputError: The path is not a folder.
        RunError: Another process writes this journal.
    """

    def __init__(self, path: str | Path, *, seed: int | None = None, clock: Callable[[], float] = time.time) -> None:
        self.path = Path(path)
        self._seed, self._clock = seed, clock
        self.listeners: list[Callable[[str, Mapping[str, Any]], None]] = []
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError("journal", str(path), "a folder, new or of a journal") from error
        self._lock = _locked(self.path)
        self._file: IO[bytes] | None = None
        self._day = ""
        self._said: dict[str, dict[str, dict[str, Any]]] | None = None  # the state that this file says

    def append(self, kind: str, **fields: Any) -> dict[str, Any]:
        """Write a line; with the kind `round` all lines so far are on the disk when this returns.

        Args:
            kind: What the line tells.
            fields: What it tells, as JSON can say it. `time`, the Unix time [s], is now unless it is given.

        Returns:
            The line.
        """
        return self._append(self._clock(), kind, fields)

    def _append(self, now_s: float, kind: str, fields: Mapping[str, Any]) -> dict[str, Any]:
        file = self._file_of(now_s)
        line = {TIME: round(now_s, 3), KIND: kind, **fields}
        _write(file, line)
        if kind == ROUND:
            os.fsync(file.fileno())
        for listener in self.listeners:
            listener(kind, fields)
        return line

    def append_state(self, cluster: LiveCluster) -> dict[str, Any] | None:
        """Write what changed since the state before: in a new file, and first of all, the whole state.

        Returns:
            The line of the kind `state`; None if nothing changed, and nothing was written.
        """
        now = {
            "nodes": {node.name: _plain(node) for node in cluster.nodes},
            "jobs": {job.id: _plain(job) for job in cluster.jobs},
        }
        now_s = self._clock()
        self._file_of(now_s)  # may begin a file, with a whole state
        full = self._said is None
        before = self._said or {"nodes": {}, "jobs": {}}
        lines = {what: _changes(before[what], own, _DEFAULTS[what], whole=full) for what, own in now.items()}
        gone = [sorted(before[what].keys() - now[what].keys()) for what in ("jobs", "nodes")]
        self._said = now
        if not full and not any(lines.values()) and not any(gone):
            return None
        more = {"gone_nodes": gone[1]} if gone[1] else {}
        line = {"read": cluster.read_s, "full": full, "manager": cluster.manager, **lines, "gone": gone[0], **more}
        return self._append(now_s, STATE, line)

    def close(self) -> None:
        """Write all to the disk and let others write; the journal cannot be used after that."""
        if self._file is not None:
            os.fsync(self._file.fileno())
            self._file.close()
            self._file = None
        self._lock.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _name_of(self, now_s: float) -> str:
        day = datetime.fromtimestamp(now_s, UTC).date().isoformat()
        names = [file.name.removesuffix(PACKED) for file in journal_files(self.path)[-1:]]
        return max([f"{PREFIX}{day}{ENDING}", *names])

    def _file_of(self, now_s: float) -> IO[bytes]:
        """Return the file for a line of this time: the open one, or that of a new day."""
        day = datetime.fromtimestamp(now_s, UTC).date().isoformat()
        if self._file is not None and day <= self._day:
            return self._file
        name = self._name_of(now_s)
        if self._file is not None:
            self._file.close()
        for former in journal_files(self.path):
            if former.suffix != PACKED and former.name != name:
                _pack(former)
        self._said = None
        self._day = name.removeprefix(PREFIX).removesuffix(ENDING)
        self._file = self._open(self.path / name, now_s)
        return self._file

    def _open(self, path: Path, now_s: float) -> IO[bytes]:
        packed = path.with_name(path.name + PACKED)
        if packed.exists() and not path.exists():  # the clock was set back to a day that is over
            try:
                write_atomically(path, unpack(packed.read_bytes()))
            except ValueError as error:
                raise InputError("journal", str(packed), f"a file that can be read ({error})") from error
            packed.unlink()
        file = path.open("ab+", buffering=0)
        whole = _whole_length(file)
        file.truncate(whole)
        if not whole:
            made = provenance(seed=self._seed)
            _write(file, {TIME: round(now_s, 3), KIND: HEAD, "form": FORM, **made})
        return file


def read_states(path: str | Path) -> Iterator[LiveCluster]:
    """Yield the states of a journal, one for each line of the kind `state`.

    Args:
        path: Its folder, or one of its files.

    Raises:
        InputError: There is no journal, or a line of it is none.
    """
    nodes: dict[str, dict[str, Any]] = {}
    jobs: dict[str, dict[str, Any]] = {}
    for line in read_journal(path):
        if line[KIND] != STATE:
            continue
        if line["full"]:
            nodes, jobs = {}, {}
        for there, key, gone in ((nodes, "nodes", "gone_nodes"), (jobs, "jobs", "gone")):
            for name in line.get(gone, ()):
                del there[name]
            for name, own in line[key].items():
                there[name] = there.get(name, {}) | own
        yield LiveCluster(
            manager=line["manager"],
            read_s=line["read"],
            nodes=tuple(LiveNode(**_DEFAULTS["nodes"] | {"name": name} | _tuples(own)) for name, own in nodes.items()),
            jobs=tuple(LiveJob(**_DEFAULTS["jobs"] | {"id": name} | _tuples(own)) for name, own in jobs.items()),
        )


def _defaults(kind: type) -> dict[str, Any]:
    return {each.name: each.default for each in fields(kind) if each.default is not MISSING}


_DEFAULTS = {"nodes": _defaults(LiveNode), "jobs": _defaults(LiveJob)}


def _plain(own: LiveNode | LiveJob) -> dict[str, Any]:
    key = "id" if isinstance(own, LiveJob) else "name"
    return {each.name: getattr(own, each.name) for each in fields(own) if each.compare and each.name != key}


def _changes(
    before: dict[str, dict[str, Any]], now: dict[str, dict[str, Any]], usual: dict[str, Any], *, whole: bool
) -> dict[str, dict[str, Any]]:
    """Return by name the fields that are not as before, and of what is new those that are not as usual."""
    changed = {}
    for name, own in now.items():
        former = usual if whole or name not in before else before[name]
        different = {key: value for key, value in own.items() if key not in former or former[key] != value}
        if different or whole or name not in before:
            changed[name] = different
    return changed


def _tuples(own: dict[str, Any]) -> dict[str, Any]:
    return {name: _tuple(value) for name, value in own.items()}


def _tuple(value: Any) -> Any:
    return tuple(map(_tuple, value)) if isinstance(value, list) else value


def _write(file: IO[bytes], line: Mapping[str, Any]) -> None:
    """Write a line in one call, so that no other can stand in between."""
    file.write(json.dumps(line, separators=(",", ":"), allow_nan=False).encode() + b"\n")


def _whole_length(file: IO[bytes]) -> int:
    end = file.seek(0, os.SEEK_END)
    while end > 0:
        begin = max(end - 65536, 0)
        file.seek(begin)
        found = file.read(end - begin).rfind(b"\n")
        if found >= 0:
            return begin + found + 1
        end = begin
    return 0


def _pack(path: Path) -> None:
    """Compress the file of a day that is over, without what a crash left of its last line."""
    with path.open("rb") as file:
        whole = _whole_length(file)
        file.seek(0)
        content = file.read(whole)
    write_atomically(path.with_name(path.name + PACKED), gzip.compress(content, mtime=0))
    path.unlink()


def _locked(folder: Path) -> IO[bytes]:
    """Keep other processes from writing the journal, until the returned file is closed."""
    file = (folder / ".lock").open("wb")
    try:
        import fcntl  # noqa: PLC0415 - there is none on Windows, where Slurm is not either

        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except ImportError:
        pass
    except OSError as error:
        file.close()
        raise RunError(f"another process writes the journal {folder}") from error
    return file
