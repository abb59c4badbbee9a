"""Errors of solvers: a solver is not installed, or returns no usable result."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from gpusched_env.errors import MissingExtraError


class SolverMissingError(MissingExtraError):
    """A solver is not installed; the message names the package and how to install it.

    Args:
        solver: Name of the solver.
        package: The Python package that could not be imported.
        extra: The extra of this distribution that installs it.
        debian: Debian packages that must be installed first.
        reason: The message of the import, if the package is installed but cannot be loaded.
    """

    def __init__(
        self, solver: str, package: str, extra: str, debian: tuple[str, ...] = (), reason: str | None = None
    ) -> None:
        super().__init__(package, extra, f"plans by {solver}")
        self.solver, self.debian, self.reason = solver, debian, reason
        first = f"; before that, on Debian: apt-get install {' '.join(debian)}" if debian else ""
        cannot = "is not installed" if reason is None else f"cannot be loaded ({reason})"
        needs = f"the solver {solver} needs the package {package}, which {cannot}"
        self.msg = f'{needs}; install it with: pip install "gpusched-env[{extra}]"{first}'

    def __reduce__(self) -> tuple[type[SolverMissingError], tuple[object, ...]]:  # type: ignore[override]
        return type(self), (self.solver, self.package, self.extra, self.debian, self.reason)


class SolverFailedError(RuntimeError):
    """A solver ended without a usable result.

    Args:
        solver: Name of the solver.
        reason: Its message, or the fault of its result.
    """

    def __init__(self, solver: str, reason: str) -> None:
        self.solver, self.reason = solver, reason
        super().__init__(f"the solver {solver} failed: {' '.join(reason.split())}")

    def __reduce__(self) -> tuple[type[SolverFailedError], tuple[str, str]]:
        return type(self), (self.solver, self.reason)


class SolverFallbackWarning(UserWarning):
    """The exact solver is used in place of the chosen one."""


def load(module: str, solver: str, package: str, extra: str, debian: tuple[str, ...] = ()) -> Any:
    """Import `module`; the other arguments are those of `SolverMissingError`."""
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        raise SolverMissingError(solver, package, extra, debian) from error
    except ImportError as error:  # a compiled part that does not fit this machine, or finds no library
        raise SolverMissingError(solver, package, extra, debian, str(error)) from error
