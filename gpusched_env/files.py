"""Writing files and folders as a whole, so that all of it is there or nothing has changed; unpacking of files."""

from __future__ import annotations

import gzip
import io
import lzma
import os
import secrets
import shutil
import zipfile
import zlib
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from gpusched_env.errors import InputError

LARGEST = 512 * 2**20
"""Bytes at most of what is unpacked as a whole."""
ZIP = b"PK\x03\x04"
"""How a ZIP archive of at least one file begins."""
_UNPACKING = (
    OSError, EOFError, RuntimeError, NotImplementedError, zlib.error, lzma.LZMAError, zipfile.BadZipFile,
)  # fmt: skip


@contextmanager
def one_error(path: str | Path) -> Iterator[None]:
    """Turn an OSError of the body into one InputError that names the user's path."""
    try:
        yield
    except OSError as error:
        raise InputError("path", str(path), f"a place that can be written ({error.strerror or error})") from error


def write_atomically(path: str | Path, content: str | bytes) -> None:
    """Write `content` to the file `path` (text as UTF-8), in place of what it held; missing folders are made.

    The content is written under a temporary name beside `path` and renamed at the end: readers see the old file or the
    new one, never half of it, and a failure leaves nothing behind.
    """
    target = Path(path).resolve()
    if target.is_dir():
        raise InputError("path", str(path), "a file, not a folder")
    data = content.encode("utf-8") if isinstance(content, str) else content
    with one_error(path), _parents(target.parent):
        draft = _beside(target)
        try:
            with draft.open("xb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            draft.replace(target)
        except BaseException:
            draft.unlink(missing_ok=True)
            raise


@contextmanager
def new_folder(path: str | Path, *, ours: Collection[str] = ()) -> Iterator[Path]:
    """Make the folder `path`: yield a temporary folder beside it to write into, renamed to `path` at the end.

    If the body raises, the temporary folder is removed and `path` is as it was before. No foreign file is
    ever deleted: an existing folder is replaced only if it is empty or holds nothing but files in `ours`.

    Args:
        ours: Names of the files that a former folder may hold and that the new one replaces.

    Raises:
        InputError: `path` is a file, a folder with other content, or cannot be written. Checked before the body runs.
    """
    target = Path(path).resolve()
    with one_error(path):
        _check_replaceable(path, target, ours)
    with _parents(target.parent, path):
        draft = _beside(target)
        with one_error(path):
            draft.mkdir()
        try:
            yield draft
            with one_error(path):
                _check_replaceable(path, target, ours)
                _move_in(draft, target)
        except BaseException:
            shutil.rmtree(draft, ignore_errors=True)
            raise


def check_new_folder(path: str | Path, *, ours: Collection[str] = ()) -> None:
    """Check early what `new_folder` checks: that no foreign file would be replaced."""
    with one_error(path):
        _check_replaceable(path, Path(path).resolve(), ours)


def _check_replaceable(path: str | Path, target: Path, ours: Collection[str]) -> None:
    if not target.exists():
        return
    if not target.is_dir():
        raise InputError("path", str(path), "a new folder, not a file")
    strangers = sorted(entry.name for entry in target.iterdir() if entry.name not in ours or entry.is_dir())
    if strangers:
        allowed = "a new or empty folder" + (", or one that holds nothing but a former run" if ours else "")
        raise InputError("path", str(path), f"{allowed} (found {strangers[0]!r})")


def _move_in(draft: Path, target: Path) -> None:
    if not target.exists():
        draft.rename(target)
        return
    former = _beside(target)
    target.rename(former)
    try:
        draft.rename(target)
    except BaseException:
        former.rename(target)
        raise
    shutil.rmtree(former, ignore_errors=True)


def _beside(target: Path) -> Path:
    return target.with_name(f".{target.name}.{secrets.token_hex(6)}.tmp")


@contextmanager
def _parents(folder: Path, path: str | Path | None = None) -> Iterator[None]:
    """Make `folder` and its missing parents; remove those that were made if the body fails."""
    missing = [parent for parent in (folder, *folder.parents) if not parent.exists()]
    with one_error(path or folder):
        folder.mkdir(parents=True, exist_ok=True)
    try:
        yield
    except BaseException:
        for parent in missing:
            with suppress(OSError):
                parent.rmdir()
        raise


def unpack(data: bytes, most: int = LARGEST) -> bytes:
    """Return the bytes that gzip, or a ZIP archive of one file, packed; all others as they are.

    Args:
        most: How many bytes they may be.

    Raises:
        ValueError: The archive is not whole, has a password or several files, or holds more.
    """
    if not data.startswith((ZIP, b"\x1f\x8b")):
        return data
    try:
        if data.startswith(ZIP):
            archive = zipfile.ZipFile(io.BytesIO(data))
            entries = archive.infolist()
            if len(entries) != 1:
                raise ValueError(f"an archive of {len(entries):,} files; one is allowed")
            found = archive.open(entries[0]).read(most + 1)
        else:
            found = gzip.GzipFile(fileobj=io.BytesIO(data)).read(most + 1)
    except _UNPACKING as error:
        raise ValueError(str(error) or type(error).__name__) from None
    if len(found) > most:
        raise ValueError(f"more than {most:,} bytes when it is unpacked")
    return found
