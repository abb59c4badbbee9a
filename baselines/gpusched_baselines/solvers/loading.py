"""Packages that solvers need, imported when they are first needed."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from gpusched_baselines.solvers.errors import SolverMissingError


def load(module: str, solver: str, package: str, extra: str, debian: tuple[str, ...] = ()) -> Any:
    """Import `module`; the other arguments are those of `SolverMissingError`.

    Raises:
        SolverMissingError: The package, or a part of the system that it needs, is missing.
    """
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        raise SolverMissingError(solver, package, extra, debian) from error
    except ImportError as error:  # a compiled part that does not fit this machine, or finds no library
        raise SolverMissingError(solver, package, extra, debian, str(error)) from error
