"""A journal: what happened on a live cluster, one JSON object a line, in a folder with one file a day.

Every file begins with a line of the kind `head`: how it was made. A line is there when its line feed is: what a crash
left of one is cut off when the journal goes on, and not read before that.
"""

from __future__ import annotations

import gzip
import json
import os
import time
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

from gpusched_env.errors import InputError, RunError
from gpusched_env.files import write_atomically
from gpusched_env.provenance import provenance

KIND, TIME, HEAD, ROUND = "kind", "time", "head", "round"
FORM = 1
"""The number of this form of journals."""
PREFIX, ENDING, PACKED = "journal-", ".jsonl", ".gz"


class Journal:
    """A journal that is written; one that is there goes on.

    A day of the calendar (UTC) has a file; the files of former days are compressed. Times never lead back to a former
    file: when the clock is set back, the newest one goes on.

    Args:
        path: Its folder; made if it is not there.
        seed: The seed of the policy that decides; None: there is none.
        clock: What tells the Unix time [s].

    Raises:
        InputError: The path is not a folder.
        RunError: Another process writes this journal.
    """

    def __init__(self, path: str | Path, *, seed: int | None = None, clock: Callable[[], float] = time.time) -> None:
        self.path = Path(path)
        self._seed, self._clock = seed, clock
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError("journal", str(path), "a folder, new or of a journal") from error
        self._lock = _locked(self.path)
        self._file: IO[bytes] | None = None
        self._day = ""

    def append(self, kind: str, **fields: Any) -> dict[str, Any]:
        """Write a line; with the kind `round` all lines so far are on the disk when this returns.

        Args:
            kind: What the line tells.
            fields: What it tells, as JSON can say it. `time`, the Unix time [s], is now unless it is given.

        Returns:
            The line.
        """
        now_s = self._clock()
        file = self._file_of(now_s)
        line = {TIME: round(now_s, 3), KIND: kind} | fields
        _write(file, line)
        if kind == ROUND:
            os.fsync(file.fileno())
        return line

    @property
    def file_name(self) -> str:
        """The name of the file that the next line goes to."""
        return self._name_of(self._clock())

    def close(self) -> None:
        """Write all to the disk and let others write; the journal cannot be used after that."""
        if self._file is not None:
            os.fsync(self._file.fileno())
            self._file.close()
            self._file = None
        self._lock.close()

    def __enter__(self) -> Self:
        """Return the journal."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close it."""
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
        self._day = name.removeprefix(PREFIX).removesuffix(ENDING)
        self._file = self._open(self.path / name, now_s)
        return self._file

    def _open(self, path: Path, now_s: float) -> IO[bytes]:
        packed = path.with_name(path.name + PACKED)
        if packed.exists() and not path.exists():  # the clock was set back to a day that is over
            write_atomically(path, gzip.decompress(packed.read_bytes()))
            packed.unlink()
        file = path.open("ab+", buffering=0)
        whole = _whole_length(file)
        file.truncate(whole)
        if not whole:
            made = provenance(seed=self._seed)
            _write(file, {TIME: round(now_s, 3), KIND: HEAD, "form": FORM, **made})
        return file


def journal_files(path: str | Path) -> list[Path]:
    """Return the files of a journal, oldest first; a file that is compressed and is not, too, counts once."""
    folder = Path(path)
    names = {file.name.removesuffix(PACKED): file for file in sorted(folder.glob(f"{PREFIX}*{ENDING}{PACKED}"))}
    names |= {file.name: file for file in folder.glob(f"{PREFIX}*{ENDING}")}
    return [names[name] for name in sorted(names)]


def is_journal(path: str | Path) -> bool:
    """Return whether a path is a journal: its folder, or one of its files."""
    own = Path(path)
    return bool(journal_files(own)) if own.is_dir() else own.name.removesuffix(PACKED).endswith(ENDING)


def read_journal(path: str | Path) -> Iterator[dict[str, Any]]:
    """Yield the lines of a journal in order, those of the kind `head` too; also while it is written.

    Args:
        path: Its folder, or one of its files.

    Raises:
        InputError: There is no journal, or a line of it is none.
    """
    own = Path(path)
    files = journal_files(own) if own.is_dir() else [own]
    if not files:
        raise InputError("journal", str(path), "a folder that gpusched slurm watch or drive wrote")
    for file in files:
        yield from _lines_of(file)


def _lines_of(path: Path) -> Iterator[dict[str, Any]]:
    try:
        with gzip.open(path) if path.suffix == PACKED else path.open("rb") as file:
            for number, text in enumerate(file, 1):
                if text.endswith(b"\n"):
                    yield _line_of(text, path, number)
    except (OSError, EOFError) as error:
        raise InputError("journal", str(path), f"a file that can be read ({error})") from error


def _line_of(text: bytes, path: Path, number: int) -> dict[str, Any]:
    try:
        line = json.loads(text)
    except ValueError:
        line = None
    if not isinstance(line, dict) or not isinstance(line.get(KIND), str) or not isinstance(line.get(TIME), int | float):
        raise InputError(f"{path}:{number}", text.decode(errors="replace"), "a JSON object with time and kind")
    return line


def _write(file: IO[bytes], line: Mapping[str, Any]) -> None:
    """Write a line in one call, so that no other can stand in between."""
    file.write(json.dumps(line, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode() + b"\n")


def _whole_length(file: IO[bytes]) -> int:
    """Return the number of bytes up to the last line feed."""
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
