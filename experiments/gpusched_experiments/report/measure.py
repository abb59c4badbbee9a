"""What is measured of a cell, and the usual measure: a whole run."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpusched_baselines.bounds.capacity import capacity_bound
from gpusched_baselines.bounds.per_job import clairvoyant_bound, non_clairvoyant_bound
from gpusched_env.simulator import simulate
from gpusched_experiments.report.run_summary import RunSummary

if TYPE_CHECKING:
    from collections.abc import Callable

    from gpusched_env.model import Instance
    from gpusched_env.simulator import Policy
    from gpusched_experiments.report.run import Values

BOUNDS: tuple[Callable[[Instance], float], ...] = (clairvoyant_bound, capacity_bound)
"""All that bound the total cost of a run from below, whatever the policy."""


@dataclass(frozen=True, slots=True)
class Measure:
    """A way of measuring a policy on an instance.

    Attributes:
        name: Its name; cells that are measured otherwise are other cells.
        of: Gives what was measured by name, `run_s` among it: the seconds it all took. Takes the policy's seed last.
        timing: Whether it measures times, which are those of one machine.
    """

    name: str
    of: Callable[[Instance, Policy, int], Values]
    timing: bool = False


def whole_run(instance: Instance, policy: Policy, seed: int) -> Values:
    """Run the policy to the end: the `costs` of a `RunSummary`, and `run_s`, the seconds it all took."""
    begin = time.perf_counter()
    result = simulate(instance, policy, seed=seed, record=False)
    summary = RunSummary.of(result, seed, clairvoyant_bound(instance), non_clairvoyant_bound(instance)).costs()
    numbers = {name: value for name, value in summary.items() if name not in {"policy", "seed"}}
    return {**numbers, "run_s": time.perf_counter() - begin}


def bound_of(instance: Instance) -> float:
    """Give the largest of the total costs [€] of which each is known to be undercut by no policy on this instance."""
    return max(bound(instance) for bound in BOUNDS)


def bound_alone(instance: Instance, _policy: Policy, seed: int) -> Values:
    """Work out the bound: as `total_eur`, under the names of a whole run, of which the others say nothing here."""
    begin = time.perf_counter()
    summary = RunSummary("", seed, len(instance.jobs), math.nan, math.nan, 0, math.nan, 0, 0, 0.0, math.nan, math.nan)
    values = summary.costs() | {"total_eur": bound_of(instance)}
    numbers = {name: value for name, value in values.items() if name not in {"policy", "seed"}}
    return {**numbers, "run_s": time.perf_counter() - begin}


WHOLE_RUN = Measure("run", whole_run)
BOUND = Measure("bound", bound_alone)
