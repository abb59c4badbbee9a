"""Parsing what comes from outside: whatever is wrong with it, and whatever the parser raises, is a ValueError."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def _one_kind() -> Iterator[None]:
    try:
        yield
    except RecursionError:
        raise ValueError("nested too deeply") from None


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
