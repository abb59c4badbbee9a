"""The price of affinity: how many GPUs quotas must promise until no tenant waits longer than on nodes of its own.

What HiveD's tenants were promised is not public, and decides their delays: a curve, and no prediction.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpusched_experiments.report.chart import Chart, Level, Panel, series
from gpusched_experiments.report.estimate import Estimate
from gpusched_reproductions.systems.checks import Check, Measured
from gpusched_reproductions.systems.hived.anomaly import FITS, SOURCE, WAITS, Backfill, alone, by_tenant, outcome
from gpusched_reproductions.systems.hived.philly import TRACE, read_trace, shared_cluster

if TYPE_CHECKING:
    from collections.abc import Mapping

HEADROOMS = (1.3, 1.5, 1.75, 2.0, 2.25, 2.5)
"""GPUs promised to every tenant over those that it uses in the mean."""
QUICK_HEADROOMS = (1.3, 2.0)
PUBLISHED_MIN, TOLERATED_MIN = 1000.0, 100.0
POLICIES = (Backfill(WAITS, emptiest=True), Backfill(FITS, emptiest=False))


def run(quick: bool) -> Measured:
    """Return the largest extra delay of a tenant by headroom, for both ways to choose nodes; quick: two weeks."""
    curves: dict[str, dict[float, float]] = {policy.name: {} for policy in POLICIES}
    checks = []
    for headroom in QUICK_HEADROOMS if quick else HEADROOMS:
        trace = read_trace(TRACE, quick=quick, headroom=headroom)
        shared = shared_cluster(trace)
        private = by_tenant(trace, alone(trace, shared).delay_min)
        for policy in POLICIES:
            delay = by_tenant(trace, outcome(trace, shared, policy).delay_min) - private
            curves[policy.name][headroom] = most = float(delay.max())
            what = f"largest extra mean delay of a tenant, {policy.name}, {headroom:g} times mean use"
            what += f" ({sum(trace.promised)} GPUs) [min]"
            checks.append(Check(what, most, published=PUBLISHED_MIN, source=SOURCE))
    for name, curve in curves.items():
        what = f"times the mean use from which no tenant waits {TOLERATED_MIN:.0f} min longer, {name}"
        checks.append(Check(what, enough(curve), source="the least of those above"))
    return Measured(tuple(checks), affinity_chart(curves))


def enough(curve: Mapping[float, float]) -> float:
    """Return the least headroom from which on no extra delay exceeds what is tolerated; infinite if there is none."""
    too_long = [headroom for headroom, delay in curve.items() if delay > TOLERATED_MIN]
    return min((headroom for headroom in curve if headroom > max(too_long, default=0.0)), default=float("inf"))


def affinity_chart(curves: Mapping[str, Mapping[float, float]]) -> Chart:
    lines = [
        series(name, ((headroom, Estimate(delay, None, 1)) for headroom, delay in curve.items()))
        for name, curve in curves.items()
    ]
    levels = Level(PUBLISHED_MIN, "published: up to"), Level(TOLERATED_MIN, "tolerated")
    panel = Panel(
        "Against private nodes", "GPUs promised over mean use", "largest extra delay of a tenant [min]", tuple(lines),
        logarithmic="y", levels=levels,
    )  # fmt: skip
    return Chart("Philly's tenants: the price of affinity", ((panel,),), (6.4, 3.8))
