"""Parsing what comes from outside: whatever is wrong with it, and whatever the parser raises, is a ValueError."""

from __future__ import annotations

import gzip
import io
import json
import lzma
import tomllib
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

LARGEST = 512 * 2**20
"""Bytes at most of what is unpacked as a whole."""
ZIP = b"PK\x03\x04"
"""How a ZIP archive of at least one file begins."""
_UNPACKING = (zlib.error, lzma.LZMAError, zipfile.BadZipFile)
_RAISED = (RecursionError, OSError, EOFError, RuntimeError, NotImplementedError, *_UNPACKING)


@contextmanager
def _one_kind() -> Iterator[None]:
    try:
        yield
    except _RAISED as error:
        deep = isinstance(error, RecursionError)
        raise ValueError("nested too deeply" if deep else str(error) or type(error).__name__) from None


def parse_json(data: str | bytes, constant: Callable[[str], Any] | None = None) -> Any:
    """Return the value of a JSON text; `constant` takes NaN and the infinities, which are no JSON.

    Raises:
        ValueError: It is no JSON, no UTF-8, nested too deeply, or has a number with too many digits.
    """
    with _one_kind():
        return json.loads(data, parse_constant=constant)


def parse_toml(text: str) -> dict[str, Any]:
    """Return the tables of a TOML text. Raises ValueError as `parse_json`."""
    with _one_kind():
        return tomllib.loads(text)


def unpack(data: bytes, most: int = LARGEST) -> bytes:
    """Return the bytes that gzip, or a ZIP archive of one file, packed; all others as they are.

    Args:
        most: How many bytes they may be.

    Raises:
        ValueError: The archive is not whole, has a password or several files, or holds more.
    """
    if not data.startswith((ZIP, b"\x1f\x8b")):
        return data
    with _one_kind():
        if data.startswith(ZIP):
            archive = zipfile.ZipFile(io.BytesIO(data))
            entries = archive.infolist()
            if len(entries) != 1:
                raise ValueError(f"an archive of {len(entries):,} files; one is allowed")
            found = archive.open(entries[0]).read(most + 1)
        else:
            found = gzip.GzipFile(fileobj=io.BytesIO(data)).read(most + 1)
    if len(found) > most:
        raise ValueError(f"more than {most:,} bytes when it is unpacked")
    return found
