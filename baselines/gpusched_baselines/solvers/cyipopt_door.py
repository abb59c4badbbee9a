"""The one door to cyipopt: imported when first needed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from gpusched_baselines.solvers.loading import load

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

NAME = "Ipopt"
DEBIAN = ("coinor-libipopt-dev", "pkg-config", "liblapack-dev", "libblas-dev", "gcc", "python3-dev")
MOST_SECONDS = 30.0
SOLVED, ACCEPTABLE, OUT_OF_ITERATIONS = 0, 1, -1  # Ipopt's own numbers


class Program(Protocol):
    """What Ipopt needs to know of a program, besides the functions that cyipopt calls by name."""

    @property
    def start(self) -> NDArray[np.float64]:
        """Give the point that the solver starts from, (n,)."""

    @property
    def bounds(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Give the least and greatest values of the variables, (n,) each."""

    @property
    def constraint_bounds(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Give the least and greatest values of the constraints, (m,) each."""


@dataclass(frozen=True, slots=True, eq=False)
class Iterate:
    """Where Ipopt stopped.

    Attributes:
        point: The variables, (n,).
        status: Ipopt's own number; 0 and 1: it converged, -1: it was out of iterations.
        message: What that number means.
    """

    point: NDArray[np.float64]
    status: int
    message: str


def load_cyipopt() -> Any:
    """Import `cyipopt`.

    Raises:
        SolverMissingError: cyipopt or the system's Ipopt is missing.
    """
    return load("cyipopt", NAME, "cyipopt", "ipopt", DEBIAN)


def minimise(program: Program, iterations: int, options: Mapping[str, object]) -> Iterate:
    """Run Ipopt, silent, from the program's start for so many iterations at most; it may stop anywhere.

    Raises:
        SolverMissingError: cyipopt or the system's Ipopt is missing.
    """
    lower, upper = program.bounds
    least, most = program.constraint_bounds
    solver = load_cyipopt().Problem(
        n=len(lower), m=len(most), problem_obj=program, lb=lower, ub=upper, cl=least, cu=most
    )
    usual = {"print_level": 0, "sb": "yes", "max_cpu_time": MOST_SECONDS, "max_iter": iterations}
    for option, value in {**usual, **options}.items():
        solver.add_option(option, value)
    point, info = solver.solve(program.start)
    message = info["status_msg"]
    text = message.decode() if isinstance(message, bytes) else str(message)
    return Iterate(np.asarray(point, dtype=np.float64), int(info["status"]), text)
