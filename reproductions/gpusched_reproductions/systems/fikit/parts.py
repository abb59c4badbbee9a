"""FIKIT's figures: speed-up by utilisation of the other job, the share of idle time filled, training jobs in pairs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gpusched_experiments.report.chart import Band, Chart, Level, Panel, Series
from gpusched_experiments.report.estimate import Estimate
from gpusched_reproductions.systems.checks import Check, Measured
from gpusched_reproductions.systems.fikit.cases import (
    BACKGROUND_UTILISATION,
    GAP_EVERY,
    cases,
    kernel_times,
    slowdowns_of_pairs,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from gpusched_env.arrays import Floats

OVERHEAD = 0.03
PUBLISHED = "FIKIT, abstract; kernel times: Orion's benchmarks (MIT)"
LEAST, HALF_ABOVE, GREATEST = 1.32, 3.4, 16.41
UTILISATIONS_OF_OTHER = (0.3, 0.5, 0.7, 0.9, 1.0)
"""Of the job of lower priority. Neither it nor the models are published, so no speed-up is a prediction."""
WAITING = (1, 2, 4, 9)
PARTS_FILLED = ((0.0, 0.05), (0.05, 0.5), (0.5, 0.9), (0.9, 1.0))
_GAP_NAMES = {1: "every kernel", 5: "every fifth", 20: "one in 20", 200: "one in 200"}
_LEVELS = (Level(LEAST, "published least"), Level(HALF_ABOVE, "half above 3.4"), Level(GREATEST, "published greatest"))
_QUANTILES = np.linspace(0.0, 1.0, 21)


def speed_ups(every: int, utilisation: float, one_in: int = 1) -> Floats:
    """Return the time of the first job in a FIFO queue over that with its gaps filled, for every case with one job."""
    each = cases(every, 1, one_in=one_in)
    return np.array([case.by_default(utilisation).first_s / case.filling(utilisation).first_s for case in each])


def speed_up(quick: bool) -> Measured:
    """Show the first job in a FIFO queue over filling, every pair, by how busy the other job is, and by gap."""
    one_in = 9 if quick else 1
    by_use = {f"busy {u:g}": speed_ups(1, u, one_in) for u in UTILISATIONS_OF_OTHER}
    by_gap = {_GAP_NAMES[every]: speed_ups(every, BACKGROUND_UTILISATION, one_in) for every in GAP_EVERY}
    checks = [
        Check(f"other job {name} alone, gap after every kernel: {figure}", ours, published=published, source=PUBLISHED)
        for name, gains in by_use.items()
        for figure, ours, published in (
            ("least", float(gains.min()), LEAST), ("greatest", float(gains.max()), GREATEST),
            ("part above 3.4", _above(gains), 0.5),
        )
    ]  # fmt: skip
    checks += [
        Check(
            f"other job busy {BACKGROUND_UTILISATION:g} alone, gap after {name}: part above 3.4",
            _above(gains),
        )
        for name, gains in list(by_gap.items())[1:]
    ]
    panels = (
        _distribution("other job alone, gap after every kernel", by_use),
        _distribution(f"other job busy {BACKGROUND_UTILISATION:g}, gap after", by_gap),
    )
    return Measured(tuple(checks), Chart("Speed-up of the first job, all pairs", (panels,), (6.4, 3.8)))


def _above(gains: Floats) -> float:
    return float(np.mean(gains > HALF_ABOVE))


def _distribution(title: str, gains: Mapping[str, Floats]) -> Panel:
    lines = tuple(Series(name, _points(_QUANTILES, np.quantile(each, _QUANTILES))) for name, each in gains.items())
    return Panel(title, "part of the pairs", "speed-up at most", lines, logarithmic="y", levels=_LEVELS)


def _points(x: Iterable[float], y: Iterable[float]) -> tuple[tuple[float | str, Estimate], ...]:
    return tuple((float(a), Estimate(float(b), None, 1)) for a, b in zip(x, y, strict=True))


def shares_filled(every: int, waiting: int, one_in: int = 1) -> tuple[Floats, Floats]:
    """Return the part of the idle time that is filled, and the time of the first job over that alone, of every case."""
    outcomes = [(case.filling(), case.alone_s) for case in cases(every, waiting, one_in=one_in)]
    return np.array([one.filled for one, _ in outcomes]), np.array([one.first_s / alone for one, alone in outcomes])


def filled(quick: bool) -> Measured:
    """Return which part of the idle time is filled, by gap and number of waiting jobs, and what the first job loses."""
    outcomes = {
        (every, m): shares_filled(every, m, 9 if quick and m < 9 else 1) for every in GAP_EVERY for m in WAITING
    }
    checks = [
        Check(f"idle time filled, gap after {_GAP_NAMES[every]}, {m} waiting: median", float(np.median(part)))
        for (every, m), (part, _) in outcomes.items()
    ]
    for kind, models in (("inference", kernel_times("fwd")), ("training", kernel_times("fb1"))):
        parts = [case.filling().filled for case in cases(20, 2, among=tuple(models))]
        checks.append(Check(f"the same, gap after one in 20, 2 {kind} jobs waiting: median", float(np.median(parts))))
    part, lost = (np.concatenate(each) for each in zip(*outcomes.values(), strict=True))
    for low, high in PARTS_FILLED:
        chosen = lost[(part >= low) & (part < high)] - 1.0
        checks += [
            Check(f"lost by the first job, {low:.0%} to {high:.0%} filled: {name}", float(value))
            for name, value in (
                ("cases", len(chosen)), ("median", np.median(chosen)), ("95 %", np.quantile(chosen, 0.95)),
                ("greatest", chosen.max()),
            )
        ]  # fmt: skip
    lines = tuple(
        Series(f"{m} waiting", _points(GAP_EVERY, [float(np.median(outcomes[every, m][0])) for every in GAP_EVERY]))
        for m in WAITING
    )
    panel = Panel(
        "median of all sets of waiting jobs", "a gap after so many kernels", "idle time filled", lines, logarithmic="x",
        percent=True,
    )  # fmt: skip
    return Measured(tuple(checks), Chart("Idle time of the first job that others fill", ((panel,),), (6.0, 3.6)))


def training(_quick: bool) -> Measured:
    """Compare training jobs in pairs, as measured by default, with the first job of a pair losing only the overhead."""
    checks, lines = [], []
    for gpu in ("V100", "P100"):
        gains = slowdowns_of_pairs(gpu) / (1.0 + OVERHEAD)
        lines.append(Series(gpu, _points(_QUANTILES, np.quantile(gains, _QUANTILES))))
        checks += [
            *(
                Check(f"{gpu}: speed-up, {q:.0%} quantile", float(np.quantile(gains, q)))
                for q in (0.0, 0.25, 0.5, 0.75, 0.9, 1.0)
            ),
            Check(
                f"{gpu}: part of pairs above 3.4",
                _above(gains),
                published=0.5,
                source="FIKIT, abstract; pairs: Gavel (MIT)",
            ),
        ]
    bands = (Band(LEAST, GREATEST, "published, inference"),)
    panel = Panel("Gavel's pairs", "part of the pairs", "speed-up at most", tuple(lines), logarithmic="y", bands=bands)
    return Measured(tuple(checks), Chart("Training beside training", ((panel,),), (6.0, 3.6)))
