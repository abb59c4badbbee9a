"""The rows of a trace file as texts, whatever its format."""

from __future__ import annotations

import csv
import gzip
import zlib
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import polars as pl

from gpusched_env.errors import InputError
from gpusched_env.files import unpack
from gpusched_env.parsing import parse_json
from gpusched_env.workload.traces import UTF_8
from gpusched_env.workload.traces.cells import OddLines, are_even, rows_of
from gpusched_env.workload.traces.job_tables import (
    is_gavel,
    jobs_of_json,
    jobs_of_philly,
    read_gavel,
    with_pollux,
    with_slurmdbd,
)
from gpusched_env.workload.traces.journal import is_journal
from gpusched_env.workload.traces.presets import (
    GAVEL,
    GENERIC,
    JOURNAL,
    PAI,
    PHILLY_JSON,
    POLLUX,
    ROW,
    SACCT,
    SLURMDBD,
    SWF,
    Preset,
    preset_of_columns,
    table_preset,
)
from gpusched_env.workload.traces.sacct import OF_SLURM, jobs_of_sacct
from gpusched_env.workload.traces.seen_jobs import SeenCluster
from gpusched_env.workload.traces.swf import is_swf, read_swf

UNREADABLE = (OSError, ValueError, EOFError, zlib.error, pl.exceptions.PolarsError)
"""What reading a file may raise that is not compressed as it says, or holds no text."""

_GZIP = b"\x1f\x8b"
_ZSTD = b"\x28\xb5\x2f\xfd"
_OTHERS = {b"BZh": "bzip2", b"\xfd7zXZ\0": "xz", b"PK\x03\x04": "zip"}
UTF_16 = (b"\xff\xfe", b"\xfe\xff")
"""How a text in UTF-16 begins, as PowerShell writes it."""
_HEAD = 1 << 16
MOST_OF_LINE = 1 << 24
"""Bytes of a line at most, in a table that is compressed: a small file may open to one huge cell."""
_NOWHERE = "\x01"  # a separator that stands in no text, so that lines stay whole


def first_line(path: Path) -> str:
    """Return the first line that holds something; empty where it cannot be told."""
    try:
        if not path.is_file():
            return ""
        kind = _kind(path)
        if kind == _ZSTD:
            return next((line for line in _lines(path, 100) if line), "")
        with path.open("rb") if kind != _GZIP else gzip.open(path) as file:
            begin = file.read(_HEAD)
        encoding = "utf-16" if begin[:2] in UTF_16 else "utf-8"
        return begin.decode(encoding, errors="replace").lstrip().split("\n", 1)[0]
    except InputError:
        raise
    except UNREADABLE:
        return ""


def check_lines(path: Path) -> None:
    """Check that no line of a table that gzip compressed is too long to be one."""
    if _kind(path) != _GZIP:
        return
    begun = 0  # bytes of the line so far
    with gzip.open(path) as file:
        while part := file.read(MOST_OF_LINE):
            first = part.find(b"\n")
            if begun + (len(part) if first < 0 else first) > MOST_OF_LINE:
                raise InputError(path.name, "a line that is longer", f"lines of {MOST_OF_LINE:,} bytes at most")
            begun = begun + len(part) if first < 0 else len(part) - part.rfind(b"\n") - 1


def text_of(path: Path) -> str | bytes:
    kind = _kind(path)
    if kind == _ZSTD:
        return "\n".join(_lines(path))
    return unpack(path.read_bytes())


def _kind(path: Path) -> bytes:
    with path.open("rb") as file:
        begin = file.read(len(_ZSTD) + 2)
    for magic, name in _OTHERS.items():
        if begin.startswith(magic):
            raise InputError(path.name, f"compressed with {name}", "a file as it is, or compressed with gzip or zstd")
    return next((magic for magic in (_GZIP, _ZSTD) if begin.startswith(magic)), b"")


def _is_utf_16(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(2) in UTF_16


def _lines(path: Path, most: int | None = None) -> list[str]:
    return _series_of_lines(path, most).to_list()


def _series_of_lines(source: Path | bytes, most: int | None = None) -> pl.Series:
    read = pl.read_csv(
        source, has_header=False, separator=_NOWHERE, quote_char=None, infer_schema=False, n_rows=most
    )  # fmt: skip
    return read.to_series().fill_null("")


def _json_of(path: Path) -> Any:
    try:
        return parse_json(text_of(path))
    except UNREADABLE:
        allowed = "a whole JSON file in UTF-8, as cluster_job_log or that of sacct --json"
        raise InputError(path.name, "no JSON document", allowed) from None


_PAI_COLUMNS = (
    "job_name", "task_name", "inst_num", "status", "start_time", "end_time", "plan_cpu", "plan_mem", "plan_gpu",
    "gpu_type",
)  # fmt: skip
_PAI_STATES = {"Terminated", "Running", "Failed", "Waiting"}
_SEPARATORS = (",", ";", "\t", "|")


@dataclass(frozen=True, slots=True)
class Layout:
    """How a file is laid out.

    Attributes:
        preset: Where it says what.
        separator: What stands between cells.
        header: Names of its columns where it has no header line; None: it has one.
        encoding: Its encoding, as Python names it.
        json: Whether it is a JSON document.
    """

    preset: Preset
    separator: str = ","
    header: tuple[str, ...] | None = None
    encoding: str = UTF_8
    json: bool = False


def layout_of(path: str | Path, name: str | None = None, encoding: str = UTF_8) -> Layout:
    if name == JOURNAL.format or (name is None and is_journal(path)):
        return Layout(JOURNAL)
    first = first_line(Path(path))
    begin = first.lstrip("\ufeff \t")
    if begin.startswith(("[", "{")) and name in {None, "philly", "sacct"}:
        json = name == "sacct" or (name is None and begin.startswith("{"))
        return Layout(SACCT if json else PHILLY_JSON, encoding=encoding, json=json)
    for preset, known, separator in ((SWF, is_swf(first), " "), (GAVEL, is_gavel(first), "\t")):
        if name == preset.format or (name is None and known):
            return Layout(preset, separator, encoding=encoding)
    cells = first.rstrip("\r\n").split(",")
    if name in {None, "pai"} and len(cells) == len(_PAI_COLUMNS) and cells[3] in _PAI_STATES:
        return Layout(PAI, header=_PAI_COLUMNS, encoding=encoding)
    separator = next((sign for sign in _SEPARATORS if sign in first), ",")
    piped = "|" in first and "," not in first.split("|", 1)[0]
    names = {each.strip(' "') for each in first.split(separator)}
    by_slurm = "JobID" in (first if piped else first.split()) or ("JobID" in names and names & OF_SLURM)
    if name == "sacct" or (name is None and by_slurm):
        return Layout(SACCT, "|" if piped else separator, encoding=encoding)
    layout = Layout(GENERIC, separator, encoding=encoding)
    found = preset_of_columns(_read_text(Path(path), layout, rows=0)[0].columns) if name is None else table_preset(name)
    return replace(layout, preset=found)


def read_rows(path: str | Path, layout: Layout, *, skips: bool = False) -> tuple[pl.DataFrame, Counter[str]]:
    """Read a file as texts; blank lines are left out, and the column `ROW` numbers the others.

    Lines that are no rows, since they have too few or too many cells, are left out and counted if `skips`; else the
    first one is an error.
    """
    path, odd, bad = Path(path), OddLines(), 0
    if layout.preset is JOURNAL:
        table = SeenCluster.of(path).table()
    elif layout.preset is PHILLY_JSON:
        table, bad = jobs_of_philly(path.name, _json_of(path), skips=skips)
    elif layout.json:
        table, bad = jobs_of_json(path.name, _json_of(path), skips=skips)
    else:
        table, odd = _read_text(path, layout)
    if odd and not skips:
        allowed = "as many cells as in the first line; --skip-invalid (trace.skip_invalid) leaves such rows out"
        raise InputError(f"{path.name} line {odd[0][0]}", f"{odd[0][1]} cells", allowed)
    if layout.separator == ";":  # of those who write a comma before decimals
        table = _with_points(path.name, table)
    rows = table.with_row_index(ROW, offset=1).filter(~pl.all_horizontal(pl.col(table.columns).is_null()))
    made = {SACCT.format: jobs_of_sacct, POLLUX.format: with_pollux, SLURMDBD.format: with_slurmdbd}
    rows = made.get(layout.preset.format, pl.DataFrame.clone)(rows)
    if rows.is_empty():
        raise InputError(
            path.name,
            "no rows",
            "at least one job" if layout.preset is JOURNAL else "at least one row below the header",
        )
    return rows, +Counter({"has another number of cells": len(odd), "is no job of this form": bad})


def _with_points(file: str, table: pl.DataFrame) -> pl.DataFrame:
    """Write a point before decimals in place of a comma; commas that may be between thousands are refused."""
    for column in table:
        cells = column.filter(column.str.contains(r"^-?\d+,\d+$"))
        if len(cells) and cells.str.contains(r"^-?[1-9]\d{0,2},\d{3}$").all():
            allowed = "numbers with a point before decimals, and nothing between thousands"
            raise InputError(f"{file}: {column.name}", cells[0], allowed)
    return table.with_columns(pl.all().str.replace(r"^(-?\d+),(\d+)$", "$1.$2"))


def _read_text(path: Path, layout: Layout, rows: int | None = None) -> tuple[pl.DataFrame, OddLines]:
    try:
        exists = path.is_file()
    except (OSError, ValueError):  # a name too long for any file
        exists = False
    if not exists:
        raise InputError("trace.path", str(path), "a file that exists")
    piped = layout.separator == "|"
    try:
        check_lines(path)
        source: Path | bytes = path
        wide = layout.encoding == UTF_8 and _is_utf_16(path)
        if wide or layout.encoding != UTF_8:
            text = text_of(path)
            source = (text if isinstance(text, str) else text.decode("utf-16" if wide else layout.encoding)).encode()
        if layout.preset in (SWF, GAVEL):
            read = read_swf if layout.preset is SWF else read_gavel
            return read(_series_of_lines(source).to_list())
        if rows is None and not are_even(lines := _series_of_lines(source), layout.separator):
            return _table_of(*rows_of(lines.to_list(), layout.separator, quoted=not piped), path, layout)
        table = pl.read_csv(
            source,
            infer_schema=False,
            n_rows=rows,
            separator=layout.separator,
            quote_char=None if piped else '"',
            has_header=layout.header is None,
        )
    except pl.exceptions.NoDataError:
        raise InputError(path.name, "empty file", "a header and at least one row below it") from None
    except (pl.exceptions.PolarsError, csv.Error, OSError, EOFError, zlib.error, UnicodeError):
        other = "; --encoding cp1252 (trace.encoding) reads another encoding" if layout.encoding == UTF_8 else ""
        encoding = layout.encoding.upper()
        allowed = f"a whole CSV file in {encoding} with a header and as many cells in every row{other}"
        raise InputError(path.name, f"text that cannot be read as a table in {encoding}", allowed) from None
    if layout.header is not None:
        return table.rename(dict(zip(table.columns, layout.header, strict=True))), []
    return _with_checked_names(path, table), []


def _table_of(rows: list[list[str]], odd: OddLines, path: Path, layout: Layout) -> tuple[pl.DataFrame, OddLines]:
    names = list(rows[0] if layout.header is None else layout.header)
    for name in names:
        if names.count(name) > 1:
            raise InputError(f"{path.name}: columns", name, "names that stand once in the header")
    cells = [[cell or None for cell in row] for row in rows[layout.header is None :]]
    return pl.DataFrame(cells, schema=dict.fromkeys(names, pl.String), orient="row"), odd


def _with_checked_names(path: Path, table: pl.DataFrame) -> pl.DataFrame:
    names = table.columns
    if any("\0" in name for name in names):
        raise InputError(path.name, "binary data", "a CSV file in UTF-8 with a header")
    for name in names:
        # So polars names a column whose name stands further left already; empty names are no column's.
        original, copy, _ = name.rpartition("_duplicated_")
        if copy and original and original in names:
            raise InputError(f"{path.name}: columns", original, "names that stand once in the header")
    return table
