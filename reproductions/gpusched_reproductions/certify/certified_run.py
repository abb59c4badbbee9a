"""Certify policies: how far each is from the optimum of small instances, by a solver's own bound; and the tables."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import groupby, product
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
import polars as pl

from gpusched_baselines.hindsight import with_known_needs
from gpusched_baselines.search.proxy_parts import proxy_cost
from gpusched_baselines.solvers import SolverFailedError
from gpusched_env.errors import InputError
from gpusched_env.model import Instance, checks
from gpusched_env.simulator import Policy, State, View, simulate
from gpusched_env.simulator.policy import memory_columns
from gpusched_experiments.report.store import document_json
from gpusched_experiments.report.table import PLAIN, Column, Form, Table
from gpusched_reproductions.certify.round import certify_round
from gpusched_reproductions.certify.static import certify_static, refuse_spread


def static_instance(instance: Instance, *, known: bool) -> Instance:
    """Put all jobs of an instance at time 0, with as much time to their due dates as before, and no restart overhead.

    Args:
        known: Whether every job needs all its epochs, and policies know it: what they then cost too much is not for
            want of knowledge.
    """
    jobs = instance.jobs
    due_s = jobs.due_s - jobs.submission_s
    jobs = replace(jobs, submission_s=np.zeros(len(jobs)), due_s=due_s, restart_s=np.zeros(len(jobs)))
    if known:
        jobs = replace(jobs, epochs_needed=jobs.max_epochs)
    static = replace(instance, jobs=jobs)
    return with_known_needs(static) if known else static


Problem: TypeAlias = Literal["round", "known", "hidden"]
PROBLEMS: tuple[Problem, ...] = get_args(Problem)
TOLERANCE = 1e-6  # relative: what the solver's tolerances may let a cost be below its bound
OPTIMAL = 1e-4  # relative: closer than this is the optimum


class BoundBrokenError(RuntimeError):
    """A policy costs less than a bound that no policy can undercut: simulator, policy or program are wrong."""


@dataclass(frozen=True, slots=True)
class CertifiedRun:
    """One policy on one small problem.

    Attributes:
        problem: "round": the proxy cost of the first round. "known": the cost of the whole instance if every job needs
            all its epochs and policies know it. "hidden": the same with epochs drawn and hidden, as usual; the bound
            knows them.
        seed: Seed of the instance and of the policy's randomness.
        jobs: Number of jobs.
        nodes: Number of nodes.
        policy: Name of the policy.
        cost_eur: What the policy costs [€].
        best_eur: The best solution that the solver found [€].
        bound_eur: The solver's bound: no policy costs less [€].
        solver_s: Wall clock of the solver [s].
    """

    problem: Problem
    seed: int
    jobs: int
    nodes: int
    policy: str
    cost_eur: float
    best_eur: float
    bound_eur: float
    solver_s: float

    @property
    def gap(self) -> float:
        """Return how far the policy is from the optimum at most: cost / bound - 1; NaN if the bound is 0."""
        return self.cost_eur / self.bound_eur - 1.0 if self.bound_eur > 0.0 else math.nan

    @property
    def solver_gap(self) -> float:
        return self.best_eur / self.bound_eur - 1.0 if self.bound_eur > 0.0 else math.nan

    @property
    def optimal(self) -> bool:
        return self.cost_eur <= self.bound_eur * (1.0 + OPTIMAL)

    def as_dict(self) -> dict[str, Any]:
        return {**asdict(self), "gap": self.gap, "solver_gap": self.solver_gap, "optimal": self.optimal}


def certify(
    make: Callable[[int], Instance],
    policies: Sequence[Policy],
    seeds: Sequence[int],
    *,
    problems: Iterable[Problem] = PROBLEMS,
    limit_s: float = 10.0,
    on_problem: Callable[[], None] | None = None,
) -> tuple[CertifiedRun, ...]:
    """Solve small problems by mixed-integer programs, and compare every policy with the solver's bound.

    Args:
        make: Gives the instance of a seed, always the same one; all its jobs are put at time 0.
        problems: Which problems to make of every instance.
        limit_s: Most wall clock of the solver for each problem [s], > 0.

    Raises:
        InputError: There is no policy or seed, an instance is not small, jobs on one GPU slow one another down, or GPUs
            are spread.
        SolverMissingError: Pyomo or highspy is missing.
        SolverFailedError: The solver found no solution of a problem.
        BoundBrokenError: A policy costs less than the bound.
    """
    chosen = tuple(problems)
    for field, values in (("policies", policies), ("seeds", seeds), ("problems", chosen)):
        if not values:
            raise InputError(field, list(values), "one or more")
    checks.positive("limit_s", limit_s)
    runs: list[CertifiedRun] = []
    for seed in seeds:
        instance = make(checks.whole("seed", seed, 0))
        for problem in chosen:
            try:
                runs += _certified(problem, instance, policies, seed, limit_s)
            except SolverFailedError as error:
                reason = f"{error.reason} on problem {problem}, seed {seed}; a larger limit or fewer jobs may help"
                raise SolverFailedError(error.solver, reason) from error
            if on_problem is not None:
                on_problem()
    return tuple(runs)


def _certified(
    problem: Problem, instance: Instance, policies: Sequence[Policy], seed: int, limit_s: float
) -> Iterator[CertifiedRun]:
    if problem not in PROBLEMS:
        raise InputError("problems", problem, f"one of {', '.join(PROBLEMS)}")
    refuse_spread(instance)
    static = static_instance(instance, known=problem == "known")
    if problem == "round":
        optimum = certify_round(_first_round(static), limit_s=limit_s)
        best_eur, bound_eur, solver_s = optimum.best_eur, optimum.bound_eur, optimum.seconds
    else:
        whole = certify_static(static, limit_s=limit_s)
        best_eur, bound_eur, solver_s = whole.best_eur, whole.bound_eur, whole.seconds
    for policy in policies:
        if problem == "round":
            cost_eur = _round_eur(static, policy, seed)
        else:
            cost_eur = simulate(static, policy, seed=seed, record=False).total_eur
        if cost_eur < bound_eur * (1.0 - TOLERANCE):
            raise BoundBrokenError(
                f"policy {policy.name} costs {cost_eur} € on problem {problem}, seed {seed}, below {bound_eur} €"
            )
        size = len(static.jobs), len(static.nodes)
        yield CertifiedRun(problem, seed, *size, policy.name, cost_eur, best_eur, bound_eur, solver_s)


def _first_round(instance: Instance, preemption: bool = True, columns: int | None = None) -> View:
    state = State(instance, record=False, memory_columns=columns)
    state.advance()
    state.begin_round(preemption)
    return state.view


def _round_eur(instance: Instance, policy: Policy, seed: int) -> float:
    view = _first_round(instance, policy.preemption, memory_columns(policy, instance))
    policy.decide(view, np.random.default_rng(seed))
    return float(proxy_cost(view.board, view.active))


EUROS: Form = "{:.4f}".format
SECONDS: Form = "{:.1f}".format
WHOLE: Form = "{:.0%}".format  # percent


def policy_table(runs: Sequence[CertifiedRun]) -> Table:
    """Summarise the runs by problem and policy.

    An instance with a bound of 0 has no gap; only its share of optimal ones counts.
    """
    columns: tuple[Column[list[CertifiedRun]], ...] = (
        Column("problem", "problem", lambda own: own[0].problem),
        Column("policy", "policy", lambda own: own[0].policy),
        Column("instances", "instances", len, PLAIN),
        Column("median_gap", "median gap", lambda own: _of_gaps(own, np.median), gap_text),
        Column("worst_gap", "largest gap", lambda own: _of_gaps(own, np.max), gap_text),
        Column("within_1_percent", "within 1 %", lambda own: _share(r.gap <= 0.01 or r.optimal for r in own), WHOLE),
        Column("optimal", "optimal", lambda own: _share(run.optimal for run in own), WHOLE),
    )
    policies = dict.fromkeys(run.policy for run in runs)
    groups = [[run for run in runs if (run.problem, run.policy) == each] for each in product(PROBLEMS, policies)]
    return Table.of("Policies", columns, filter(None, groups))


def instance_table(runs: Sequence[CertifiedRun], policies: Sequence[str]) -> Table:
    """Make the table of the instances: the solver's solution, bound, gap and time, and the gaps of these policies."""
    columns: tuple[Column[dict[str, CertifiedRun]], ...] = (
        Column("problem", "problem", lambda by: _first(by).problem),
        Column("seed", "seed", lambda by: _first(by).seed, PLAIN),
        Column("best_eur", "best €", lambda by: _first(by).best_eur, EUROS),
        Column("bound_eur", "bound €", lambda by: _first(by).bound_eur, EUROS),
        Column("solver_gap", "solver gap", lambda by: _first(by).solver_gap, gap_text),
        Column("solver_s", "solver s", lambda by: _first(by).solver_s, SECONDS),
        *map(_gap_of, policies),
    )
    ordered = sorted(runs, key=lambda run: (PROBLEMS.index(run.problem), run.seed))
    instances = groupby(ordered, key=lambda run: (run.problem, run.seed))
    return Table.of("Instances", columns, ({run.policy: run for run in own} for _, own in instances))


def gap_text(gap: float) -> str:
    return f"{1.0 + gap:,.0f} x" if gap >= 10.0 else f"{max(0.0, gap):+.2%}"


def notes(runs: Sequence[CertifiedRun], limit_s: float) -> tuple[str, ...]:
    solved = {(run.problem, run.seed): run.solver_gap for run in runs}
    closed = sum(not gap > 1e-4 for gap in solved.values())
    return (
        f"{len(solved)} problems, of which the solver closed {closed} to 0.01 % within {limit_s:g} s each.",
        "Gap: cost / the solver's bound - 1. Nothing costs less than the bound, so the optimum is at most so far off.",
        "known: the whole instance; policies know every job's epochs, and lose by how they decide alone.",
        "hidden: the same with epochs drawn and hidden from policies; the bound knows them.",
        "round: the proxy cost of the first round, in which a job left out counts a hundredfold.",
    )


def certificate_csv(runs: Sequence[CertifiedRun]) -> str:
    return pl.DataFrame([run.as_dict() for run in runs]).fill_nan(None).write_csv()


def certificate_json(runs: Sequence[CertifiedRun], provenance: Mapping[str, Any]) -> str:
    """Write every run, the summary by policy and where they come from as JSON; what is not a number becomes null."""
    policies = policy_table(runs).as_dicts()
    return document_json("gpusched certificate", provenance, policies=policies, runs=[run.as_dict() for run in runs])


def _first(by_policy: Mapping[str, CertifiedRun]) -> CertifiedRun:
    return next(iter(by_policy.values()))


def _gap_of(policy: str) -> Column[dict[str, CertifiedRun]]:
    return Column(policy, policy, lambda by: by[policy].gap, gap_text)


def _of_gaps(runs: Sequence[CertifiedRun], statistic: Callable[[list[float]], float]) -> float:
    gaps = [run.gap for run in runs if not math.isnan(run.gap)]
    return float(statistic(gaps)) if gaps else math.nan


def _share(those: Iterable[bool]) -> float:
    return float(np.mean(list(those)))
