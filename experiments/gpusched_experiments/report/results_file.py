"""The files of results: JSON that says what it is and where it comes from, and CSV."""

from __future__ import annotations

import csv
import io
import json
import math
from typing import TYPE_CHECKING, Any

from gpusched_env.files import write_atomically

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path


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
