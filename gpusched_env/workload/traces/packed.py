"""The text of trace files, which may be compressed; that is told by how they begin, not by their names."""

from __future__ import annotations

import gzip
import zlib
from typing import TYPE_CHECKING

import polars as pl

from gpusched_env.errors import InputError

if TYPE_CHECKING:
    from pathlib import Path

UNREADABLE = (OSError, ValueError, EOFError, zlib.error, pl.exceptions.PolarsError)
"""What reading a file may raise that is not compressed as it says, or holds no text."""

_GZIP = b"\x1f\x8b"
_ZSTD = b"\x28\xb5\x2f\xfd"
_OTHERS = {b"BZh": "bzip2", b"\xfd7zXZ\0": "xz", b"PK\x03\x04": "zip"}
_HEAD = 1 << 16
MOST_OF_LINE = 1 << 24
"""Bytes of a line at most, in a table that is compressed: a small file may open to one huge cell."""
_NOWHERE = "\x01"  # a separator that stands in no text, so that lines stay whole


def first_line(path: Path) -> str:
    """Give the first line that holds something; empty where it cannot be told.

    Raises:
        InputError: The file is compressed in a way that is not read.
    """
    try:
        if not path.is_file():
            return ""
        kind = _kind(path)
        if kind == _ZSTD:
            return next((line for line in _lines(path, 100) if line), "")
        with path.open("rb") if kind != _GZIP else gzip.open(path) as file:
            begin = file.read(_HEAD)
        return begin.decode("utf-8", errors="replace").lstrip().split("\n", 1)[0]
    except InputError:
        raise
    except UNREADABLE:
        return ""


def check_lines(path: Path) -> None:
    """Check that no line of a table that gzip compressed is too long to be one.

    Raises:
        InputError: One is.
        UNREADABLE: It cannot be read.
    """
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
    """Give all of a file's text.

    Raises:
        InputError: The file is compressed in a way that is not read.
        UNREADABLE: It cannot be read.
    """
    kind = _kind(path)
    if kind == _ZSTD:
        return "\n".join(_lines(path))
    return gzip.decompress(path.read_bytes()) if kind == _GZIP else path.read_bytes()


def _kind(path: Path) -> bytes:
    """Tell how a file is compressed, by its first bytes; empty: it is not."""
    with path.open("rb") as file:
        begin = file.read(len(_ZSTD) + 2)
    for magic, name in _OTHERS.items():
        if begin.startswith(magic):
            raise InputError(path.name, f"compressed with {name}", "a file as it is, or compressed with gzip or zstd")
    return next((magic for magic in (_GZIP, _ZSTD) if begin.startswith(magic)), b"")


def _lines(path: Path, most: int | None = None) -> list[str]:
    """Read lines as polars unpacks them, which knows zstd."""
    read = pl.read_csv(
        path, has_header=False, separator=_NOWHERE, quote_char=None, infer_schema=False, n_rows=most
    )  # fmt: skip
    return read.to_series().fill_null("").to_list()
