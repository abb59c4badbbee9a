"""The rows of a trace file as texts, whatever its format."""

from __future__ import annotations

import zlib
from dataclasses import dataclass, replace
from pathlib import Path

import polars as pl

from gpusched_env.errors import InputError
from gpusched_env.workload.traces.packed import check_lines, first_line, text_of
from gpusched_env.workload.traces.presets import (
    GENERIC,
    PAI,
    PHILLY_JSON,
    SACCT,
    Preset,
    preset_of_columns,
    table_preset,
)
from gpusched_env.workload.traces.sacct import jobs_of_sacct, read_philly_json

ROW = "row of the trace"
"""Column with the number of the row: 1 is the first below the header, or the first of a file without one."""

_PAI_COLUMNS = (
    "job_name", "task_name", "inst_num", "status", "start_time", "end_time", "plan_cpu", "plan_mem", "plan_gpu",
    "gpu_type",
)  # fmt: skip
_PAI_STATES = {"Terminated", "Running", "Failed", "Waiting"}
UTF_8 = "utf-8"
_SEPARATORS = (",", ";", "\t", "|")


@dataclass(frozen=True, slots=True)
class Layout:
    """How a file is laid out.

    Attributes:
        preset: Where it says what.
        separator: What stands between cells.
        header: Names of its columns where it has no header line; None: it has one.
        encoding: Its encoding, as Python names it.
    """

    preset: Preset
    separator: str = ","
    header: tuple[str, ...] | None = None
    encoding: str = UTF_8


def layout_of(path: str | Path, name: str | None = None, encoding: str = UTF_8) -> Layout:
    """Tell how a file is laid out by how it begins.

    Args:
        path: The file.
        name: Its format; by default that is told, too.
        encoding: Its encoding, as Python names it.

    Raises:
        InputError: The file cannot be read.
    """
    return replace(_layout_of(Path(path), name, encoding), encoding=encoding)


def _layout_of(path: Path, name: str | None, encoding: str) -> Layout:
    first = first_line(path)
    if first.lstrip("\ufeff \t").startswith(("[", "{")) and name in {None, "philly"}:
        return Layout(PHILLY_JSON)
    cells = first.rstrip("\r\n").split(",")
    if name in {None, "pai"} and len(cells) == len(_PAI_COLUMNS) and cells[3] in _PAI_STATES:
        return Layout(PAI, header=_PAI_COLUMNS)
    piped = "|" in first and "," not in first.split("|", 1)[0]
    if name == "sacct" or (name is None and piped and "JobID" in first):
        return Layout(SACCT, "|" if piped else ",")
    separator = next((sign for sign in _SEPARATORS if sign in first), ",")
    names = _read_text(path, Layout(GENERIC, separator, encoding=encoding), rows=0).columns if name is None else []
    return Layout(preset_of_columns(names) if name is None else table_preset(name), separator)


def read_rows(path: str | Path, layout: Layout) -> pl.DataFrame:
    """Read a file as texts; blank lines are left out, and the column `ROW` numbers the others.

    Raises:
        InputError: The file cannot be read, or has no rows.
    """
    path = Path(path)
    table = read_philly_json(path) if layout.preset is PHILLY_JSON else _read_text(path, layout)
    rows = table.with_row_index(ROW, offset=1).filter(~pl.all_horizontal(pl.col(table.columns).is_null()))
    if layout.preset is SACCT:
        rows = jobs_of_sacct(rows)
    if rows.is_empty():
        raise InputError(path.name, "no rows", "at least one row below the header")
    return rows


def _read_text(path: Path, layout: Layout, rows: int | None = None) -> pl.DataFrame:
    try:
        exists = path.is_file()
    except (OSError, ValueError):  # a name too long for any file
        exists = False
    if not exists:
        raise InputError("trace.path", str(path), "a CSV file that exists")
    piped = layout.separator == "|"
    try:
        check_lines(path)
        table = pl.read_csv(
            path if layout.encoding == UTF_8 else _recoded(path, layout.encoding),
            infer_schema=False,
            n_rows=rows,
            separator=layout.separator,
            quote_char=None if piped else '"',
            has_header=layout.header is None,
        )
    except pl.exceptions.NoDataError:
        raise InputError(path.name, "empty file", "a header and at least one row below it") from None
    except (pl.exceptions.PolarsError, OSError, EOFError, zlib.error, UnicodeError) as error:
        other = "; --encoding cp1252 (trace.encoding) reads another encoding" if layout.encoding == UTF_8 else ""
        encoding = layout.encoding.upper()
        allowed = f"a whole CSV file in {encoding} with a header and as many cells in every row{other}"
        raise InputError(path.name, str(error).splitlines()[0], allowed) from None
    if layout.header is not None:
        return table.rename(dict(zip(table.columns, layout.header, strict=True)))
    _check_header(path.name, table.columns)
    return table


def _recoded(path: Path, encoding: str) -> bytes:
    text = text_of(path)
    return text.encode() if isinstance(text, str) else text.decode(encoding).encode()


def _check_header(file: str, names: list[str]) -> None:
    if any("\0" in name for name in names):
        raise InputError(file, "binary data", "a CSV file in UTF-8 with a header")
    for name in names:
        # So polars names a column whose name stands further left already; empty names are no column's.
        first, copy, _ = name.rpartition("_duplicated_")
        if copy and first and first in names:
            raise InputError(f"{file}: columns", first, "names that stand once in the header")
