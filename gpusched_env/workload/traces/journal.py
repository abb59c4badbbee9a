"""The lines of a journal of a live cluster: one JSON object each, in a folder with one file a day.

`gpusched slurm watch` and `drive` write journals (`gpusched_operations.live.journal`). Every line has the Unix time
`time` [s] and a `kind`; a line is there when its line feed is.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from gpusched_env.errors import InputError
from gpusched_env.parsing import parse_json

TIME, KIND = "time", "kind"
MOST_OF_LINE = 1 << 26
PREFIX, ENDING, PACKED = "journal-", ".jsonl", ".gz"
"""Files are named `journal-DAY.jsonl`, those of former days `journal-DAY.jsonl.gz`."""


def journal_files(folder: str | Path) -> list[Path]:
    """Return the files of a journal, oldest first; one that is there as it is and compressed counts once."""
    place = Path(folder)
    names = {file.name.removesuffix(PACKED): file for file in place.glob(f"{PREFIX}*{ENDING}{PACKED}")}
    names |= {file.name: file for file in place.glob(f"{PREFIX}*{ENDING}")}
    return [names[name] for name in sorted(names)]


def is_journal(path: str | Path) -> bool:
    own = Path(path)
    try:
        if own.is_dir():
            return bool(journal_files(own))
    except (OSError, ValueError):  # a name too long for any file
        return False
    name = own.name.removesuffix(PACKED)
    return name.startswith(PREFIX) and name.endswith(ENDING)


def read_journal(path: str | Path) -> Iterator[dict[str, Any]]:
    """Yield the lines of a journal in order, those of the kind `head` too; also while it is written.

    Args:
        path: Its folder, or one of its files.

    Raises:
        InputError: There is no journal, or a line of it is none; what a crash left of a last line is no error.
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
            for number, text in enumerate(iter(lambda: file.readline(MOST_OF_LINE + 1), b""), 1):
                if len(text) > MOST_OF_LINE:
                    raise InputError(f"{path.name} line {number}", "a longer line", f"{MOST_OF_LINE:,} bytes at most")
                if text.endswith(b"\n"):
                    yield _line_of(text, path, number)
    except (OSError, EOFError, zlib.error) as error:
        raise InputError("journal", str(path), f"a file that can be read ({error})") from error


def _line_of(text: bytes, path: Path, number: int) -> dict[str, Any]:
    try:
        line = parse_json(text)
    except ValueError:
        line = None
    if not isinstance(line, dict) or not isinstance(line.get(KIND), str) or not isinstance(line.get(TIME), int | float):
        shown = text.decode(errors="replace").strip()
        raise InputError(f"{path.name} line {number}", shown, "a JSON object with a time and a kind")
    return line
