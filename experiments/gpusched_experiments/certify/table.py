"""The gaps of certified runs as tables: by problem and instance, and by policy."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from gpusched_experiments.certify.certify import PROBLEMS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gpusched_experiments.certify.certify import CertifiedRun, Problem

FORMAT = "gpusched certificate"
VERSION = 1


@dataclass(frozen=True, slots=True)
class CertifiedPolicy:
    """One policy over all instances of one problem.

    Attributes:
        problem: The problem.
        policy: Name of the policy.
        instances: Number of instances.
        median_gap: Median of the gaps to the bound.
        worst_gap: Largest gap.
        within_1_percent: Share of the instances with a gap of at most 1 %.
        optimal: Share of the instances where it is surely optimal.
    """

    problem: Problem
    policy: str
    instances: int
    median_gap: float
    worst_gap: float
    within_1_percent: float
    optimal: float


def by_policy(runs: Sequence[CertifiedRun]) -> tuple[CertifiedPolicy, ...]:
    """Summarise the runs by problem and policy.

    An instance with a bound of 0 has no gap; only its share of optimal ones counts.
    """
    rows = []
    for problem in PROBLEMS:
        for policy in dict.fromkeys(run.policy for run in runs):
            own = [run for run in runs if (run.problem, run.policy) == (problem, policy)]
            if not own:
                continue
            gaps = np.array([run.gap for run in own if not math.isnan(run.gap)])
            rows.append(
                CertifiedPolicy(
                    problem=problem,
                    policy=policy,
                    instances=len(own),
                    median_gap=float(np.median(gaps)) if len(gaps) else math.nan,
                    worst_gap=float(gaps.max()) if len(gaps) else math.nan,
                    within_1_percent=float(np.mean([run.gap <= 0.01 or run.optimal for run in own])),
                    optimal=float(np.mean([run.optimal for run in own])),
                )
            )
    return tuple(rows)


def policy_table(runs: Sequence[CertifiedRun]) -> list[list[str]]:
    """Give the summary by policy, with its heading."""
    heading = ["problem", "policy", "instances", "median gap", "largest gap", "within 1 %", "optimal"]
    cells = [
        [
            row.problem,
            row.policy,
            str(row.instances),
            gap_text(row.median_gap),
            gap_text(row.worst_gap),
            f"{row.within_1_percent:.0%}",
            f"{row.optimal:.0%}",
        ]
        for row in by_policy(runs)
    ]
    return [heading, *cells]


def instance_table(runs: Sequence[CertifiedRun], policies: Sequence[str]) -> list[list[str]]:
    """Give a row for every instance, with its heading: the solver's solution, bound, gap and time, and all gaps."""
    rows = [["problem", "seed", "best €", "bound €", "solver gap", "solver s", *policies]]
    ordered = sorted(runs, key=lambda run: (PROBLEMS.index(run.problem), run.seed))
    for _, group in groupby(ordered, key=lambda run: (run.problem, run.seed)):
        own = list(group)
        first = own[0]
        gaps = {run.policy: gap_text(run.gap) for run in own}
        solver = [
            f"{first.best_eur:.4f}",
            f"{first.bound_eur:.4f}",
            gap_text(first.solver_gap),
            f"{first.solver_s:.1f}",
        ]
        rows.append([first.problem, str(first.seed), *solver, *(gaps[policy] for policy in policies)])
    return rows


def gap_text(gap: float) -> str:
    """Write a gap: a percentage, or from a thousand percent on a multiple of the bound."""
    if math.isnan(gap):
        return "n/a"
    if gap >= 10.0:
        return f"{1.0 + gap:,.0f} x"
    return f"{max(0.0, gap):+.2%}"


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
    document = {
        "format": FORMAT,
        "version": VERSION,
        "provenance": dict(provenance),
        "policies": [_finite({name: getattr(row, name) for name in row.__slots__}) for row in by_policy(runs)],
        "runs": [_finite(run.as_dict()) for run in runs],
    }
    return json.dumps(document, indent=1, allow_nan=False, ensure_ascii=False) + "\n"


def _finite(values: dict[str, Any]) -> dict[str, Any]:
    return {k: None if isinstance(v, float) and not math.isfinite(v) else v for k, v in values.items()}
