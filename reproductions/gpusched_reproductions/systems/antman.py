"""AntMan: guaranteed and opportunistic jobs on shared GPUs, on Muri's published traces."""

from __future__ import annotations

from math import inf

import numpy as np

from gpusched_baselines import AntMan, make_policy
from gpusched_env import Result, simulate
from gpusched_experiments.report.chart import Chart, Level, Panel, Series, series
from gpusched_experiments.report.estimate import Estimate
from gpusched_experiments.report.usage import JobTimes, Usage
from gpusched_reproductions.systems.checks import Check, Measured, Part
from gpusched_reproductions.systems.muri.ratios import (
    COMPLETION,
    MAKESPAN,
    NAMES,
    Ratios,
    named_trace,
    ratios,
)
from gpusched_reproductions.systems.muri.traces import GPUS, MURI, NODES, TraceJob, muri_instance, path_of, read_trace

QUICK = 200
"""Jobs of a quick run."""
TRACE_3 = ("3", "3'")
"""The traces of a file that lies apart from the others."""
LOAD_TRACE = 4
LOAD_NODES = (4, 6, 8, 10, 12, 16, 24)
COMPUTING, MEMORY = 0.34, 0.42
"""AntMan's gains in the utilisation of GPUs and of their memory in production (abstract)."""
_FIGURES = "Muri, raw data of figures 9 and 10, simulated by other rules (`gpusched conform muri`)"
DELAYS_S = (1.0, 10.0, 100.0)
_ABSTRACT = "AntMan, abstract: production cluster, whose load is not published"


def traces(quick: bool) -> Measured:
    return _beside_published(("4", "4'") if quick else tuple(name for name in NAMES if name not in TRACE_3), quick)


def trace_3(quick: bool) -> Measured:
    return _beside_published(TRACE_3, quick)


def _beside_published(names: tuple[str, ...], quick: bool) -> Measured:
    found = {name: ratios(named_trace(name)[: QUICK if quick else None]) for name in names}
    each = (
        ("AntMan's mean completion over Tiresias'", "completion", COMPLETION),
        ("AntMan's makespan over SRTF's", "makespan", MAKESPAN),
    )
    checks = [
        Check(f"trace {name}: {what}", getattr(own, field), published=published[name], source=_FIGURES)
        for name, own in found.items()
        for what, field, published in each
    ]
    return Measured(tuple(checks), _ratio_chart(found))


def _ratio_chart(found: dict[str, Ratios]) -> Chart:
    panels = [
        Panel(
            title, "trace", "ratio",
            (
                _by_trace("published", {name: published[name] for name in found}),
                _by_trace("own formula", {name: getattr(each, field) for name, each in found.items()}),
            ),
            kind="bars", levels=(Level(1.0, "equal"),),
        )
        for title, published, field in (
            ("mean completion over Tiresias'", COMPLETION, "completion"),
            ("makespan over SRTF's", MAKESPAN, "makespan"),
        )
    ]  # fmt: skip
    return Chart("AntMan on Muri's traces, 64 GPUs", (tuple(panels),), (5.6, 3.2))


def _by_trace(name: str, values: dict[str, float]) -> Series:
    return series(name, ((trace, Estimate(value, None, 1)) for trace, value in values.items()))


def load(quick: bool) -> Measured:
    """Compare utilisation with exclusive first come, first served, on more and more GPUs."""
    jobs = read_trace(path_of(LOAD_TRACE))[: QUICK if quick else None]
    gains = {nodes: _gains(jobs, nodes) for nodes in ((NODES,) if quick else LOAD_NODES)}
    computing, memory = gains[NODES]
    checks = (
        *(
            Check(f"{what} utilisation, {NODES * GPUS} GPUs: gain", own, -inf, inf, published, _ABSTRACT, "fitted")
            for what, own, published in (("computing", computing, COMPUTING), ("memory", memory, MEMORY))
        ),
        *(
            Check(f"{what} utilisation, {nodes * GPUS} GPUs: gain", gain[i])
            for nodes, gain in gains.items()
            for i, what in enumerate(("computing", "memory"))
            if nodes != NODES
        ),
    )  # fmt: skip
    return Measured(checks, _load_chart(gains))


def _load_chart(gains: dict[int, tuple[float, float]]) -> Chart:
    lines = tuple(
        series(name, ((nodes * GPUS, Estimate(gain[i], None, 1)) for nodes, gain in gains.items()))
        for i, name in enumerate(("GPU time in use", "GPU memory in use"))
    )
    levels = (Level(COMPUTING, "published: computing"), Level(MEMORY, "published: memory"))
    title = f"all jobs of trace {LOAD_TRACE}"
    panel = Panel(title, "GPUs", "gain over exclusive GPUs", lines, percent=True, levels=levels)
    return Chart("AntMan's gain depends on the load", ((panel,),), (6.8, 3.4))


def _gains(jobs: list[TraceJob], nodes: int) -> tuple[float, float]:
    before = Usage.of(simulate(muri_instance(jobs, "alone", nodes=nodes), make_policy("fifo")))
    after = Usage.of(simulate(muri_instance(jobs, "moving", nodes=nodes), AntMan()))
    return after.computing / before.computing - 1.0, after.memory / before.memory - 1.0


def memory(quick: bool) -> Measured:
    """Measure what guaranteed jobs lose while limits adapt, and what memory that moves is worth to the others."""
    jobs = read_trace(path_of(LOAD_TRACE))[: QUICK if quick else None]
    runs = {
        delay_s: simulate(muri_instance(jobs, "moving", adapt_s=delay_s), AntMan())
        for delay_s in ((0.0, 10.0) if quick else (0.0, *DELAYS_S))
    }
    checks = [
        Check(
            f"guaranteed jobs: part of their time lost until limits are right, {delay_s:g} s",
            _lost(run) - _lost(runs[0.0]),
        )
        for delay_s, run in runs.items()
        if delay_s > 0.0
    ]
    moving = JobTimes.by_label(runs[10.0])
    parts = simulate(muri_instance(jobs, "utilisation"), AntMan())
    checks += [
        Check(
            f"{name} jobs: mean completion with memory that moves over that with fixed parts",
            moving[name].completion_s / times.completion_s,
        )
        for name, times in JobTimes.by_label(parts).items()
    ]
    return Measured(tuple(checks))


def _lost(result: Result) -> float:
    """Return the time that guaranteed jobs held GPUs without progress after their start, as a part of that alone."""
    jobs = result.instance.jobs
    chosen = ~jobs.opportunistic
    held_s = (result.completion_s - result.start_s - jobs.start_s)[chosen]
    alone_s = jobs.epochs_needed[chosen]
    return float(np.sum(held_s - alone_s) / np.sum(alone_s))


PARTS = (
    Part("antman", "traces", "AntMan by our own formula on Muri's traces 1, 2 and 4", traces, MURI),
    Part("antman", "trace-3", "the same on traces 3 and 3', of github.com/pkusys/Muri", trace_3, path_of(3)),
    Part("antman", "load", "AntMan against exclusive GPUs, by the number of GPUs", load, MURI),
    Part("antman", "memory", "memory that moves, and the delay of its limits", memory, MURI),
)
