"""Start-up by method and model, from layers and the machine, beside figures 5, 7, 8 and 9."""

from __future__ import annotations

from gpusched_env.workload.start_up.architectures import layers_of
from gpusched_env.workload.start_up.pipeline import Method, start_up_s
from gpusched_experiments.report.chart import Chart, Panel, Series
from gpusched_experiments.report.estimate import Estimate
from gpusched_reproductions.systems.checks import Check, Kind, Measured
from gpusched_reproductions.systems.pipeswitch.published import (
    LOG,
    MODELS,
    OTHER_MPS_MS,
    OTHER_PIPELINED_MS,
    OTHER_READY_MS,
    OTHER_RUN,
    READY_MS,
    START_UP_MS,
)

FITTED: tuple[Method, ...] = (
    "per layer, no pipeline",
    "no memory management",
    "no IPC optimisation",
    "unified memory",
    "one process",
    "two processes",
)
"""Methods whose latency for the first model gave a constant of the machine."""
TOLERANCE = 0.2
FROM, TO = 10.0, 50.0  # times better than MPS, by the abstract


def predicted_ms(method: Method, model: str, ready_ms: float) -> float:
    return 1e3 * start_up_s(method, layers_of(MODELS[model]), ready_ms / 1e3)


def start_up(quick: bool) -> Measured:
    del quick  # it takes a second
    checks = []
    for method, (figure, published) in START_UP_MS.items():
        for model, ready_ms, value in zip(MODELS, READY_MS, published, strict=True):
            kind: Kind = "fitted" if method in FITTED and model == next(iter(MODELS)) else "prediction"
            what, source = f"{method}, {model}: latency [ms]", f"{LOG}, figure {figure}"
            checks.append(Check.within(what, predicted_ms(method, model, ready_ms), value, TOLERANCE, source, kind))
    return Measured(tuple(checks), _chart())


def against_mps(quick: bool) -> Measured:
    """Predict the latencies of another run, and how much more MPS's start-up adds, which is put in."""
    del quick
    checks = []
    for i, model in enumerate(MODELS):
        ready_ms = OTHER_READY_MS[i]
        ours = predicted_ms("pipelined", model, ready_ms)
        what = f"pipelined, {model}, another run: latency [ms]"
        checks.append(Check.within(what, ours, OTHER_PIPELINED_MS[i], TOLERANCE, f"{OTHER_RUN}, a run kept aside"))
        mps_ms, published_ms = OTHER_MPS_MS[i] - ready_ms, OTHER_PIPELINED_MS[i] - ready_ms
        what = f"{model}: what MPS adds (measured) / what PipeSwitch adds (predicted)"
        source = f"abstract: {FROM:g} to {TO:g} times; {OTHER_RUN}"
        checks.append(Check(what, mps_ms / (ours - ready_ms), FROM, TO, mps_ms / published_ms, source, "prediction"))
    return Measured(tuple(checks))


def _chart() -> Chart:
    panels = []
    for i, model in enumerate(MODELS):
        methods = [method for method in START_UP_MS if method != "two processes"]
        published = [(method, Estimate(START_UP_MS[method][1][i], None, 1)) for method in methods]
        ours = [(method, Estimate(predicted_ms(method, model, READY_MS[i]), None, 1)) for method in methods]
        drawn = Series("predicted from layers", tuple(ours)), Series("published", tuple(published))
        panels.append(Panel(model, "latency [ms]", "", drawn, kind="dots", categories=tuple(methods)))
    return Chart("Latency of a task that takes the place of another one, by method", (tuple(panels),), (4.6, 3.6))
