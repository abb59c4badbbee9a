"""The gaps of certified runs as tables: by problem and instance, and by policy."""

from __future__ import annotations

import math
from itertools import groupby, product
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from gpusched_experiments.report.store import document_json
from gpusched_experiments.report.table import PLAIN, Column, Form, Table
from gpusched_reproductions.certify.certified_run import PROBLEMS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from gpusched_reproductions.certify.certified_run import CertifiedRun

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
    """Write a gap: a percentage, or from a thousand percent on a multiple of the bound."""
    return f"{1.0 + gap:,.0f} x" if gap >= 10.0 else f"{max(0.0, gap):+.2%}"


def notes(runs: Sequence[CertifiedRun], limit_s: float) -> tuple[str, ...]:
    """Say what the figures are, a sentence each."""
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
    """Write every run as a line of CSV, with a header; what is not a number is left empty."""
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
    """Give a statistic of the gaps that are numbers; NaN without any."""
    gaps = [run.gap for run in runs if not math.isnan(run.gap)]
    return float(statistic(gaps)) if gaps else math.nan


def _share(those: Iterable[bool]) -> float:
    return float(np.mean(list(those)))
