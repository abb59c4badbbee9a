"""Mechanisms that keep state of their own: what copies of runs do not have, and what simulated futures draw."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gpusched_env.errors import InputError
from gpusched_env.model.mechanism import model_of
from gpusched_env.parts import part_of

if TYPE_CHECKING:
    from collections.abc import Iterable
    from types import ModuleType

    from numpy.random import Generator


def with_state(mechanisms: Iterable[str]) -> str | None:
    """Return the first of some mechanisms of other packages that keeps state of its own; None: none does."""
    return next((name for name in mechanisms if "." in name and model_of(name).keeps_state), None)


def drawn_future(board: Any, until_s: float, rng: Generator) -> dict[str, Any]:
    """Draw the hidden arrays of mechanisms that keep state of their own for one simulated future, by name.

    The module `futures` of such a mechanism has `draw`, with these arguments, for this.

    Args:
        board: The board; nothing on it changes.
        until_s: The time until which they are needed [s].
        rng: Draws them.

    Raises:
        InputError: A mechanism has no such module.
    """
    drawn = (part.draw(board, until_s, rng) for part in _futures_of(board))
    return {name: array for arrays in drawn for name, array in arrays.items()}


def new_job_rows(board: Any, jobs: int) -> dict[str, Any]:
    """Make rows of the board's arrays of such mechanisms that have one for each job, for jobs to come, by name.

    The module `futures` has `new_job_rows`, with these arguments, for this; of an array that is empty it has no rows.

    Raises:
        InputError: A mechanism has no such module.
    """
    made = (part.new_job_rows(board, jobs) for part in _futures_of(board))
    return {name: rows for arrays in made for name, rows in arrays.items()}


def _futures_of(board: Any) -> Iterable[ModuleType]:
    found = [name for name in type(board).mechanisms if "." in name and model_of(name).keeps_state]
    try:
        return [part_of(name, "futures") for name in found]
    except InputError as error:
        allowed = "one that keeps no state of its own, or has a module futures, which simulations of the future need"
        raise InputError(error.field, error.value, allowed) from None


def check_no_state(mechanisms: Iterable[str], where: str) -> None:
    """Check that no mechanism of other packages keeps state of its own.

    Raises:
        InputError: One does; `where` is what does not have it.
    """
    found = with_state(mechanisms)
    if found is not None:
        raise InputError("mechanisms", found, f"one that keeps no state of its own, which {where} does not have")
