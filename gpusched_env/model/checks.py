"""Checks of single values, shared by everything that validates input where it is made."""

from __future__ import annotations

import math
from dataclasses import fields
from typing import TYPE_CHECKING

import numpy as np

from gpusched_env.errors import InputError

if TYPE_CHECKING:
    from _typeshed import DataclassInstance
    from numpy.typing import ArrayLike, NDArray

DAY_S = 86_400.0
LONGEST_S, LONGEST = 1e12, "1e12 s"
"""The largest time and duration that is allowed: 30,000 years. 64-bit floats of this size still tell 0.1 ms apart."""


def positive(field: str, value: float) -> float:
    return _number(field, value, "a finite number > 0", lowest=0.0, strict=True)


def not_negative(field: str, value: float) -> float:
    return _number(field, value, "a finite number >= 0", lowest=0.0, strict=False)


def duration(field: str, value: float) -> float:
    """Return `value` [s]; raise InputError unless it is a number above 0, `LONGEST_S` at most."""
    allowed = f"a number > 0 and <= {LONGEST}"
    return _number(field, value, allowed, lowest=0.0, strict=True, highest=LONGEST_S)


def seconds(field: str, value: float) -> float:
    """Return `value` [s]; raise InputError unless it is a number from 0 to `LONGEST_S`."""
    allowed = f"a number >= 0 and <= {LONGEST}"
    return _number(field, value, allowed, lowest=0.0, strict=False, highest=LONGEST_S)


def finite(field: str, value: float) -> float:
    return _number(field, value, "a finite number", lowest=-math.inf, strict=False)


def whole(field: str, value: int, lowest: int = 1) -> int:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < lowest:
        raise InputError(field, value, f"a whole number >= {lowest}")
    return int(value)


def short_repr(value: DataclassInstance) -> str:
    """Write a dataclass in a line: of arrays the shape, of long tuples the length."""
    parts = ((field.name, getattr(value, field.name)) for field in fields(value) if field.repr)
    return f"{type(value).__name__}({', '.join(f'{name}={_short(part)}' for name, part in parts)})"


def _short(part: object) -> str:
    if isinstance(part, np.ndarray):
        return f"<{' x '.join(map(str, part.shape))} numbers>"
    return f"<{len(part)} values>" if isinstance(part, tuple) and len(part) > 3 else repr(part)


def seed(value: int, field: str = "seed") -> int:
    """Return `value`; raise InputError unless it is a whole number from 0 to 2^63 - 1, which run files can hold."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or not 0 <= value < 2**63:
        raise InputError(field, value, "a whole number >= 0 and < 2^63")
    return int(value)


def frozen_array(values: ArrayLike, dtype: type = np.float64) -> NDArray[np.float64]:
    """Return a read-only, C-contiguous copy of `values`."""
    array: NDArray[np.float64] = np.array(values, dtype=dtype, order="C")
    array.setflags(write=False)
    return array


def rebuilt(value: DataclassInstance) -> tuple[type, tuple[object, ...]]:
    """Return the value of `__reduce__`: the constructor and its arguments.

    A copy or an unpickled value then passes through the constructor again. NumPy alone would return writable arrays,
    which are another type to Numba: every kernel would be compiled again.
    """
    return type(value), tuple(getattr(value, field.name) for field in fields(value) if field.init)


def _number(field: str, value: float, allowed: str, *, lowest: float, strict: bool, highest: float = math.inf) -> float:
    good = isinstance(value, int | float | np.number) and not isinstance(value, bool) and math.isfinite(value)
    if not good or not lowest <= value <= highest or (strict and value == lowest):
        raise InputError(field, value, allowed)
    return float(value)
