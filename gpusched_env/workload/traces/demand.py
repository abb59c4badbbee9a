"""What the GPUs that a traced job asked for allow it to be given."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gpusched_env.errors import InputError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from gpusched_env.workload.scenario.scenario import Scenario
    from gpusched_env.workload.site import Site
    from gpusched_env.workload.traces.trace import Trace


def offered(
    scenario: Scenario, trace: Trace, site: Site, names: tuple[str, ...], seconds: NDArray[np.float64]
) -> NDArray[np.bool_]:
    """Say which configurations each job is offered, by the rule `trace.gpu_demand`, shape (J, C).

    Args:
        scenario: The scenario of the replay.
        trace: The trace, clipped to the largest configuration.
        site: The cluster and its configurations.
        names: Name of every job's application, for errors.
        seconds: τ of every job on every configuration, shape (J, C); inf where it cannot run.

    Raises:
        InputError: The rule leaves a job nothing that it can run on.
    """
    rule = "elastic" if scenario.trace is None else scenario.trace.gpu_demand
    if rule == "elastic":
        return np.ones(seconds.shape, dtype=np.bool_)
    size = np.array([c.gpus for c in site.configurations])
    demand = demand_of(trace, site, size, np.isfinite(seconds))[:, None]
    allowed: NDArray[np.bool_] = size == demand if rule == "exact" else size <= demand
    _check(rule, trace, site, names, np.any(allowed & np.isfinite(seconds), axis=1))
    return allowed


def demand_of(trace: Trace, site: Site, size: NDArray[np.float64], known: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Give the number of GPUs, or the share of one, that each job's demand counts as, shape (J,).

    Whole GPUs of a node count as the next smaller number that is offered, else as the least. A share counts as the
    next smaller one that is offered and that the job's memory fits, else as the least such, else as the least number of
    whole GPUs. More GPUs than a node has count as the next smaller number on several whole nodes on which the job's
    application can run, else as those of the largest node.
    """
    counts = np.unique(size[site.of_kind("single-node")])
    demand: NDArray[np.float64] = counts[np.maximum(np.searchsorted(counts, trace.gpus, side="right") - 1, 0)]
    shared, several = site.of_kind("shared"), site.of_kind("multi-node")
    for job in np.flatnonzero((trace.gpus < 1.0) | (trace.gpus > site.most_gpus)):
        asked = trace.gpus[job]
        fit = size[known[job] & (shared if asked < 1.0 else several)]
        if np.any(fit <= asked):
            demand[job] = fit[fit <= asked].max()
        elif asked < 1.0 and len(fit):
            demand[job] = fit.min()
    return demand


def _check(rule: str, trace: Trace, site: Site, names: tuple[str, ...], fits: NDArray[np.bool_]) -> None:
    """Check that the rule leaves every job something that it can run on."""
    if not np.all(fits):
        job = int(np.argmin(fits))
        offers = ", ".join(c.name for c in site.configurations)
        allowed = (
            f"a rule that offers every job a configuration: job {job} of the trace ({names[job]}, {trace.gpus[job]:g} "
            f"GPUs) cannot run on so many; the cluster has {offers}"
        )
        raise InputError("trace.gpu_demand", rule, allowed)
