"""Mechanisms that keep state of their own: what copies of runs do not have."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpusched_env.errors import InputError
from gpusched_env.model.mechanism import model_of

if TYPE_CHECKING:
    from collections.abc import Iterable


def with_state(mechanisms: Iterable[str]) -> str | None:
    """Return the first of some mechanisms of other packages that keeps state of its own; None: none does."""
    return next((name for name in mechanisms if "." in name and model_of(name).keeps_state), None)


def check_no_state(mechanisms: Iterable[str], where: str) -> None:
    """Check that no mechanism of other packages keeps state of its own.

    Raises:
        InputError: One does; `where` is what does not have it.
    """
    found = with_state(mechanisms)
    if found is not None:
        raise InputError("mechanisms", found, f"one that keeps no state of its own, which {where} does not have")
