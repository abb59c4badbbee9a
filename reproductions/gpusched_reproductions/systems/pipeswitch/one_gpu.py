"""Two jobs that take turns on one GPU: throughput by quantum, from predicted start-up, beside figure 6."""

from __future__ import annotations

import numpy as np

from gpusched_baselines import TimeSlice
from gpusched_env import Configuration, EpochDistribution, GpuType, Instance, Job, Node, Policy
from gpusched_env.simulator import State
from gpusched_env.simulator import layout as at
from gpusched_env.workload.scenario.sharing import SwitchingCosts
from gpusched_env.workload.start_up.pipeline import Method
from gpusched_experiments.report.chart import Chart, Panel, Series
from gpusched_experiments.report.estimate import Estimate
from gpusched_reproductions.systems.checks import Check, Measured
from gpusched_reproductions.systems.pipeswitch.published import LOG, QUANTA_S, RATES, READY_MS, READY_RATE
from gpusched_reproductions.systems.pipeswitch.start_up import predicted_ms

SWITCHES = 400
USUAL = 0.001  # weight [€/s]
ENDLESS, MANY_S = EpochDistribution.certain(), 1e9
TRAINING = Configuration("V100", 1)
METHODS: dict[str, Method] = {"PipeSwitch": "pipelined", "stop-start": "two processes"}
CHECKED = {("stop-start", 10.0), ("stop-start", 30.0)}
"""Where a part of the throughput is lost; where it is all or next to nothing it is only drawn."""


def figure_6(quick: bool) -> Measured:
    """Let two endless jobs take turns on one GPU, and compare what they get done with figure 6."""
    del quick  # it takes seconds
    lines: dict[str, list[float]] = {}
    checks = []
    for system, method in METHODS.items():
        costs_s = (predicted_ms(method, "ResNet152", READY_MS[0]) - READY_MS[0]) / 1e3
        for quantum_s, rate, ready in zip(QUANTA_S, RATES[system], READY_RATE, strict=True):
            ours = progress_of_turns(quantum_s, costs_s)
            lines.setdefault(system, []).append(ours)
            what = f"{system}, a switch every {quantum_s:g} s: throughput / that of a model that is ready"
            if (system, quantum_s) in CHECKED:
                checks.append(Check.around(what, ours, rate / ready, 0.05, f"{LOG}, figure 6, ResNet152"))
    return Measured(tuple(checks), _chart(lines))


def progress_of_turns(quantum_s: float, costs_s: float) -> float:
    """Return what two jobs that take turns of `quantum_s` on one GPU get done in 400 turns, of what one would alone."""
    jobs = [endless(SwitchingCosts(costs_s, costs_s, costs_s)) for _ in range(2)]
    instance = Instance.from_jobs([GpuType("V100", 250.0, 300.0, 16.0, 1)], [Node("V100", 1)], jobs, [TRAINING])
    state = run_until(instance, TimeSlice(quantum_s=quantum_s, efficiency=0.0), SWITCHES * quantum_s)
    return float(state.board.jobs[:, at.EPOCHS].sum() / state.board.clock[at.NOW])


def endless(costs: SwitchingCosts, where: Configuration = TRAINING, application: str = "") -> Job:
    return Job(0.0, 1e12, USUAL, MANY_S, ENDLESS, MANY_S, {where: 1.0}, application=application, **costs._asdict())


def run_until(instance: Instance, policy: Policy, horizon_s: float) -> State:
    """Run a policy until the first event at or after `horizon_s`: some jobs never end."""
    state, rng = State(instance, review_s=horizon_s, record=False), np.random.default_rng(0)
    while state.board.clock[at.NOW] < horizon_s and state.advance():
        if state.board.count[at.ACTIVE] > 0:
            state.begin_round(policy.preemption)
            policy.decide(state.view, rng)
            state.commit_round()
    return state


def _chart(lines: dict[str, list[float]]) -> Chart:
    drawn = [Series(f"{system}, simulated", _points(values)) for system, values in lines.items()]
    for system, rates in RATES.items():
        drawn.append(Series(f"{system}, published", _points([a / b for a, b in zip(rates, READY_RATE, strict=True)])))
    panel = Panel("ResNet152", "switch every [s]", "throughput / that of a ready model", tuple(drawn), logarithmic="x")
    return Chart("Training and inference take turns on one V100", ((panel,),), (9.0, 3.4))


def _points(values: list[float]) -> tuple[tuple[float | str, Estimate], ...]:
    return tuple((x, Estimate(y, None, 1)) for x, y in zip(QUANTA_S, values, strict=True))
