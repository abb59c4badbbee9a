"""A check of lists that a user gives."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpusched_env.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence


def each_once(field: str, values: Sequence[object]) -> None:
    """Check that there are one or more of these values, each once.

    Raises:
        InputError: There is none, or one stands twice.
    """
    if not values or len(set(values)) != len(values):
        raise InputError(field, list(values), "one or more, each once")
