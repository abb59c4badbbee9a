"""The files of results: `cells.csv`, in which every finished run is stored at once, and documents of results."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import math
import re
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from gpusched_env.errors import InputError
from gpusched_env.files import one_error, write_atomically

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence
    from pathlib import Path

    from gpusched_experiments.report.run import Label, Values

VERSION = 1


def write_results(folder: Path, contents: Mapping[str, str | bytes]) -> tuple[str, ...]:
    for name, content in contents.items():
        write_atomically(folder / name, content)
    return tuple(contents)


def document_json(form: str, provenance: Mapping[str, Any], **content: Any) -> str:
    """Write a document as JSON; what is not a number becomes null."""
    document = {"format": form, "version": VERSION, "provenance": dict(provenance), **content}
    return json.dumps(finite(document), indent=1, allow_nan=False, ensure_ascii=False) + "\n"


_FORMULA = re.compile(r"'*[=+\-@\t\r]")
"""How a text begins that a spreadsheet takes for a formula, or one that is guarded against that."""


def csv_lines(rows: Iterable[Sequence[object]]) -> str:
    """Return rows as CSV; what a spreadsheet would take for a formula, and is no number, begins with an apostrophe."""
    buffer = io.StringIO()
    csv.writer(buffer, lineterminator="\n").writerows([_guarded(cell) for cell in row] for row in rows)
    return buffer.getvalue()


def _guarded(cell: object) -> object:
    if not isinstance(cell, str) or len(cell) < 2 or not _FORMULA.match(cell):
        return cell
    try:
        float(cell)
    except ValueError:
        return f"'{cell}"
    return cell


def _as_given(cell: str) -> str:
    return cell[1:] if cell.startswith("'") and _FORMULA.match(cell) else cell


def finite(value: Any) -> Any:
    """Return a value as JSON can hold it: what is not a number becomes null."""
    if isinstance(value, dict):
        return {name: finite(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [finite(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


class Placed(Protocol):
    """A run, or what stands for it: a `Cell` or a `Place`."""

    @property
    def labels(self) -> tuple[tuple[str, Label], ...]:
        """Where the run stands in its report."""

    @property
    def policy(self) -> str:
        """The name of its policy."""

    @property
    def seed(self) -> int:
        """Its seed."""


class Place(NamedTuple):
    """Where a finished run that is no `Cell` stands: its labels, the name of its policy, and its seed."""

    labels: tuple[tuple[str, Label], ...]
    policy: str
    seed: int


Finished = tuple[str, Placed, "Values"]

TEXTS = {"groups"}
"""Measured columns that hold texts."""
_WHOLE = re.compile(r"-?[0-9]+")


def key_of(**definition: Any) -> str:
    text = json.dumps(definition, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8")).hexdigest()[:20]


class Store:
    """Finished runs in a file that grows by a line a run: key, labels, policy, seed, then what was measured.

    A line is written in one piece when its run is finished, so whenever the command is killed the file holds every
    finished run, and at most its last line is incomplete.
    """

    def __init__(self, path: Path, labels: Sequence[str] = ()) -> None:
        self.path, self.labels = path, tuple(labels)
        self._whole = False

    def write(self, finished: Iterable[Finished], others: Sequence[list[str]] = ()) -> None:
        """Write just these runs, and `others`, which `elsewhere` returned, if they have the same columns."""
        rows = list(finished)
        header = ["key", *self.labels, "policy", "seed", *rows[0][2]] if rows else next(iter(others), None)
        kept = others[1:] if others and others[0] == header else ()
        if header is None or not (rows or kept):
            self.path.unlink(missing_ok=True)
            return
        write_atomically(self.path, csv_lines([header, *(self._texts(*row) for row in rows), *kept]))

    def elsewhere(self, places: Collection[tuple[str, ...]]) -> list[list[str]]:
        """Return the header and the lines of the runs that stand at none of these places."""
        rows = _rows(self.path)
        end = rows[0].index("seed") + 1 if rows and "seed" in rows[0] else 0
        return [*rows[:1], *(row for row in rows[1:] if tuple(row[1:end]) not in places)]

    def append(self, key: str, run: Placed, values: Values) -> None:
        """Add one finished run; before the first, what a killed command left of a line goes."""
        kept = b"" if self._whole else _whole_lines(self.path)
        header = [] if self._whole or kept else [["key", *self.labels, "policy", "seed", *values]]
        lines = csv_lines([*header, self._texts(key, run, values)]).encode("utf-8")
        with one_error(self.path):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self.path.open("ab", buffering=0) as file:  # in place: a command may hold a lock of it
                file.truncate(None if self._whole else len(kept))
                if file.write(lines) < len(lines):
                    raise InputError("path", str(self.path), "a file on a disk with room")
        self._whole = True

    def keep(self, keys: Collection[str], places: Collection[tuple[str, ...]] | None = None) -> None:
        """Remove the runs that have none of these keys; with `places` only those that stand at one of them."""
        rows, others = _rows(self.path), [] if places is None else self.elsewhere(places)[1:]
        kept = [row for row in rows[1:] if row[0] in keys or row in others]
        write_atomically(self.path, csv_lines([*rows[:1], *kept]))

    def _texts(self, key: str, run: Placed, values: Values) -> list[object]:
        return [key, *self.place(run, self.labels), *values.values()]

    @staticmethod
    def place(run: Placed, labels: Sequence[str]) -> tuple[str, ...]:
        """Return where a run stands: its labels, policy and seed, as texts."""
        own = dict(run.labels)
        return (*(str(own[name]) for name in labels), run.policy, str(run.seed))


def stored_places(path: Path) -> set[tuple[str, ...]]:
    rows = _rows(path)
    end = rows[0].index("seed") + 1 if rows and "seed" in rows[0] else 0
    return {tuple(row[1:end]) for row in rows[1:]}


def stored_values(path: Path) -> dict[str, Values]:
    """Read what was measured in every run of such a file, by key; nothing if there is no file.

    An incomplete last line, as a killed command leaves it, is passed over.
    """
    rows = _rows(path)
    if not rows:
        return {}
    header = rows[0]
    if "seed" not in header:
        raise _not_ours(path, ",".join(header))
    first = header.index("seed") + 1
    found: dict[str, Values] = {}
    for number, row in enumerate(rows[1:], 2):
        try:
            found[row[0]] = dict(zip(header[first:], map(_value, header[first:], row[first:]), strict=True))
        except (ValueError, IndexError, TypeError):
            raise _not_ours(path, f"line {number}: {','.join(row)}") from None
    return found


def _whole_lines(path: Path) -> bytes:
    try:
        content = path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return b""
    if not content.startswith(b"key,"[: len(content)]):
        raise _not_ours(path, content[:80].decode("utf-8", "replace").split("\n")[0])
    return content[: content.rfind(b"\n") + 1]


def _rows(path: Path) -> list[list[str]]:
    try:
        lines = csv.reader(io.StringIO(_whole_lines(path).decode("utf-8")))
        return [[_as_given(cell) for cell in row] for row in lines]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise _not_ours(path, str(error)) from None


def _value(name: str, text: str) -> Any:
    return text if name in TEXTS else int(text) if _WHOLE.fullmatch(text) else float(text or "nan")


def _not_ours(path: Path, found: str) -> InputError:
    return InputError(str(path), found, "finished runs that gpusched wrote; remove it to begin again")
