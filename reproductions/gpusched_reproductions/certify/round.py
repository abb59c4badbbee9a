"""How far what a policy decides in a round can be from the least proxy cost: the optimum of the round, and a bound."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from gpusched_baselines.solvers.pyomo_highs import load_pyomo, new_highs, solve
from gpusched_env.model import checks
from gpusched_reproductions.certify.round_program import RoundProgram

if TYPE_CHECKING:
    from gpusched_env.simulator import View


@dataclass(frozen=True, slots=True)
class RoundCertificate:
    """The least proxy cost of a round.

    Attributes:
        best_eur: Least proxy cost found [€]; the optimum if it equals the bound.
        bound_eur: Nothing that the jobs can hold has a smaller proxy cost [€].
        held: What each active job holds then: a configuration, or -1, in the order of `view.active`.
        programs: How many mixed-integer programs were solved.
        seconds: Wall clock [s].
    """

    best_eur: float
    bound_eur: float
    held: tuple[int, ...]
    programs: int
    seconds: float


def certify_round(view: View, *, limit_s: float = 20.0) -> RoundCertificate:
    """Find the least proxy cost of the round of `view`, over everything that its active jobs can hold.

    The proxy multiplies the nodes' rate by the time to the first completion, so one program is solved for every
    time at which a job could be the first to end, shortest first; one that cannot beat the best so far is left out
    or infeasible. If the time runs out, what was not solved counts with a bound of its own: the cost of the jobs
    without energy.

    Args:
        view: The present state; the round begins from an empty cluster.
        limit_s: Most wall clock [s], > 0.

    Raises:
        SolverMissingError: Pyomo or highspy is missing.
        SolverFailedError: HiGHS fails on one of the programs.
    """
    checks.positive("limit_s", limit_s)
    begin = time.perf_counter()
    program = RoundProgram(load_pyomo(), view)
    best, held = float(program.postponed_eur.sum()), (-1,) * len(program.postponed_eur)
    bound, programs = best, 0
    for first_s in np.unique(program.time_s[np.isfinite(program.time_s)]).tolist():
        least = float(np.minimum(program.running_eur(first_s), program.postponed_eur).sum())
        if least >= best:
            continue
        left = limit_s - (time.perf_counter() - begin)
        if left <= 0.0:
            bound = min(bound, least)
            continue
        program.fix_first(first_s, best)
        programs += 1
        solved = solve(new_highs(seconds=left), program.model)
        if solved is None:
            continue
        bound = min(bound, solved.bound)
        if solved.objective < best:
            best, held = solved.objective, _held(program)
    return RoundCertificate(best, max(0.0, min(bound, best)), held, programs, time.perf_counter() - begin)


def _held(program: RoundProgram) -> tuple[int, ...]:
    held = [-1] * len(program.postponed_eur)
    for j, c in program.model.allowed:
        if program.model.holds[j, c].value > 0.5:
            held[j] = c
    return tuple(held)
