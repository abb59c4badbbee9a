"""The files of results: `cells.csv`, in which every finished cell is stored at once, and tables of results."""

from __future__ import annotations

import csv
import io
import json
import math
import re
from typing import TYPE_CHECKING, Any

from gpusched_env.errors import InputError
from gpusched_env.files import one_error, write_atomically

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from gpusched_experiments.report.cell import Cell
    from gpusched_experiments.report.run import Values

VERSION = 1


def write_results(folder: Path, contents: Mapping[str, str | bytes]) -> tuple[str, ...]:
    """Write these files to a folder, and give their names.

    Raises:
        InputError: The folder cannot be written.
    """
    for name, content in contents.items():
        write_atomically(folder / name, content)
    return tuple(contents)


def document_json(form: str, provenance: Mapping[str, Any], **content: Any) -> str:
    """Write a document as JSON; what is not a number becomes null.

    Args:
        form: Name of the file's format.
        provenance: Where the results come from, as `gpusched_env.provenance.provenance` says it.
        **content: What else the document holds.
    """
    document = {"format": form, "version": VERSION, "provenance": dict(provenance), **content}
    return json.dumps(finite(document), indent=1, allow_nan=False, ensure_ascii=False) + "\n"


def csv_lines(rows: Iterable[Sequence[object]]) -> str:
    """Write rows as lines of CSV."""
    buffer = io.StringIO()
    csv.writer(buffer, lineterminator="\n").writerows(rows)
    return buffer.getvalue()


def finite(value: Any) -> Any:
    """Give a value as JSON can hold it: what is not a number becomes null."""
    if isinstance(value, dict):
        return {name: finite(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [finite(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


Finished = tuple[str, "Cell", "Values"]

_WHOLE = re.compile(r"-?[0-9]+")


class Store:
    """Appends finished cells to a file: key, labels, policy, seed, then what was measured.

    A line is written in one piece when its cell is finished, so whenever the command is killed the file holds every
    finished cell, and at most its last line is incomplete.

    Args:
        path: The file.
        labels: Names of the cells' labels.
    """

    def __init__(self, path: Path, labels: Sequence[str]) -> None:
        self.path, self.labels = path, tuple(labels)

    def write(self, finished: Iterable[Finished]) -> None:
        """Write the file anew with these cells; without any there is none."""
        rows = list(finished)
        if not rows:
            self.path.unlink(missing_ok=True)
            return
        header = ["key", *self.labels, "policy", "seed", *rows[0][2]]
        write_atomically(self.path, csv_lines([header, *(self._texts(*row) for row in rows)]))

    def append(self, key: str, cell: Cell, values: Values) -> None:
        """Add one finished cell."""
        if not self.path.exists():
            self.write([(key, cell, values)])
            return
        with one_error(self.path), self.path.open("ab", buffering=0) as file:
            file.write(csv_lines([self._texts(key, cell, values)]).encode("utf-8"))

    def _texts(self, key: str, cell: Cell, values: Values) -> list[object]:
        labels = dict(cell.labels)
        return [key, *(labels[name] for name in self.labels), cell.policy, cell.seed, *values.values()]


def stored_values(path: Path) -> dict[str, Values]:
    """Read what was measured in every cell of such a file, by key; nothing if there is no file.

    An incomplete last line, as a killed command leaves it, is passed over.

    Raises:
        InputError: The file is no such file.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except (OSError, UnicodeDecodeError) as error:
        raise _not_ours(path, str(error)) from None
    whole = text[: text.rfind("\n") + 1]
    rows = list(csv.reader(io.StringIO(whole)))
    if not rows:
        return {}
    header = rows[0]
    if header[:1] != ["key"] or "seed" not in header:
        raise _not_ours(path, ",".join(header))
    first = header.index("seed") + 1
    found: dict[str, Values] = {}
    for number, row in enumerate(rows[1:], 2):
        try:
            found[row[0]] = dict(zip(header[first:], map(_number, row[first:]), strict=True))
        except (ValueError, IndexError):
            raise _not_ours(path, f"line {number}: {','.join(row)}") from None
    return found


def _number(text: str) -> int | float:
    return int(text) if _WHOLE.fullmatch(text) else float(text)


def _not_ours(path: Path, found: str) -> InputError:
    return InputError(str(path), found, "a file that gpusched reproduce wrote; remove it to begin again")
