"""Fields of a JSON file: checked one by one, an error names the first invalid one."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpusched_env.errors import InputError

_KINDS: dict[type, tuple[frozenset[type], str]] = {
    float: (frozenset({float, int}), "a finite number"),
    int: (frozenset({int}), "a whole number"),
    str: (frozenset({str}), "a text"),
    bool: (frozenset({bool}), "true or false"),
}
_LARGEST: dict[type, float] = {float: sys.float_info.max, int: 2**63 - 1, str: 0, bool: 1}

Schema = Any
"""Schema of a value: float, int, str or bool; a list of one schema; a dictionary of schemas by field, optional ones
with `?`; or a tuple of a schema and None for a value that may be null. None is not checked."""


def checked(where: str, value: Any, schema: Schema) -> Any:
    """Return `value`, at the place `where`, checked by `schema`, with whole numbers as floats where it asks so."""
    if schema is None or isinstance(schema, tuple):
        return value if schema is None or value is None else checked(where, value, schema[0])
    if isinstance(schema, type):
        return value_of(where, value, schema)
    if isinstance(schema, list):
        if schema[0] is None or isinstance(schema[0], type):
            return values_of(where, value, schema[0]) if schema[0] else json_list(where, value)
        return [checked(f"{where}[{i}]", each, schema[0]) for i, each in enumerate(json_list(where, value))]
    there = value.keys() if isinstance(value, dict) else ()
    given = {name.rstrip("?"): kind for name, kind in schema.items() if name[-1] != "?" or name[:-1] in there}
    check_fields(where, value, set(given))
    return {name: checked(f"{where}.{name}" if where else name, value[name], kind) for name, kind in given.items()}


def check_fields(where: str, value: Any, names: set[str]) -> None:
    """Check that `value` is an object that has just the fields `names`; `where` is its place in the file."""
    if not isinstance(value, dict):
        raise InputError(where, type(value).__name__, "a JSON object")
    prefix = f"{where}." if where else ""
    for name in sorted(names - value.keys()):
        raise InputError(f"{prefix}{name}", None, "a value: the field is missing")
    for name in sorted(value.keys() - names):
        raise InputError(f"{prefix}{name}", "...", f"no such field; one of {', '.join(sorted(names))}")


def json_list(where: str, value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise InputError(where, type(value).__name__, "a JSON list")
    return value


def values_of(where: str, values: Any, kind: type) -> list[Any]:
    """Return the column `values`, all of one kind; a whole number must fit 64 bits."""
    column = json_list(where, values)
    largest = _LARGEST[kind]
    if set(map(type, column)) <= _KINDS[kind][0] and (kind is str or all(-largest <= v <= largest for v in column)):
        return [float(value) for value in column] if kind is float else column
    for index, value in enumerate(column):
        value_of(f"{where}[{index}]", value, kind)
        if kind is int and not -largest <= value <= largest:
            break
    raise InputError(f"{where}[{index}]", value, f"a whole number from {-largest} to {largest}")


def value_of(where: str, value: Any, kind: type) -> Any:
    """Return `value`, which must be of one kind; a float may be written as a whole number."""
    kinds, allowed = _KINDS[kind]
    # 1e999 reads as inf, and a whole number may be too large for a float.
    if type(value) not in kinds or (kind is float and not -_LARGEST[float] <= value <= _LARGEST[float]):
        raise InputError(where, value, allowed)
    return float(value) if kind is float else value


def check_provenance(where: str, value: Any) -> None:
    """Check that `value` is an object, and so are its `facts`, if there are any."""
    if not isinstance(value, dict) or not isinstance(value.get("facts", {}), dict):
        raise InputError(f"{where}: provenance", value, "an object, with `facts` that are one")


def check_lengths(where: str, columns: Mapping[str, list[Any]]) -> None:
    first, *others = columns
    for name in others:
        if len(columns[name]) != len(columns[first]):
            allowed = f"{len(columns[first])}, as {first} has"
            raise InputError(f"{where}.{name}", f"{len(columns[name])} values", allowed)


def array_of(where: str, table: list[Any], dimensions: int) -> NDArray[np.float64]:
    """Make an array of lists of lists of numbers; all must be as long as the first ones."""
    shape: list[int] = []
    first: Any = table
    for _ in range(dimensions):
        shape.append(len(first))
        first = first[0] if first else []

    def check(where: str, part: list[Any], shape: list[int]) -> None:
        if len(part) != shape[0]:
            raise InputError(where, f"{len(part)} values", f"{shape[0]} values, as the first has")
        for index, each in enumerate(part if shape[1:] else ()):
            check(f"{where}[{index}]", each, shape[1:])

    check(where, table, shape)
    return np.array(table, dtype=np.float64).reshape(shape)
