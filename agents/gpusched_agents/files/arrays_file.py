"""Arrays by name as the bytes of a file of NumPy's (`.npz`, without compression). Reading it runs no code in it."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

NUMBERS = tuple(np.dtype(kind) for kind in ("f4", "f8", "i4", "i8", "u1", "u4", "u8", "?"))


def arrays_bytes(arrays: Mapping[str, NDArray[Any]]) -> bytes:
    """Return arrays of numbers as the bytes of a file; equal arrays have equal bytes."""
    text = io.BytesIO()
    with zipfile.ZipFile(text, "w") as archive:
        for name in sorted(arrays):
            with archive.open(zipfile.ZipInfo(f"{name}.npy"), "w", force_zip64=True) as file:
                np.lib.format.write_array(file, np.array(arrays[name], order="C"), allow_pickle=False)
    return text.getvalue()


def read_arrays(data: bytes) -> dict[str, NDArray[Any]]:
    """Read the bytes of `arrays_bytes`; the arrays belong to the caller.

    Raises:
        ValueError: They are not those of a whole file of arrays of numbers, or are compressed.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            if any(each.compress_type != zipfile.ZIP_STORED for each in archive.infolist()):
                raise ValueError("an array is compressed")
        with np.load(io.BytesIO(data), allow_pickle=False) as file:
            found = {name: file[name] for name in file.files}
    except (zipfile.BadZipFile, EOFError, OSError, KeyError, MemoryError, OverflowError, RuntimeError) as error:
        raise ValueError(str(error) or type(error).__name__) from error
    arrays = {name: array.copy() for name, array in found.items() if isinstance(array, np.ndarray)}
    odd = next((name for name in found if name not in arrays or arrays[name].dtype not in NUMBERS), None)
    if odd is not None:
        raise ValueError(f"{odd} is no array of numbers")
    return arrays
