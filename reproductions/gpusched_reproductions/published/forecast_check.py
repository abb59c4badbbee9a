"""How often the intervals of forecasts of a run hold what then happens: the measure of the experiment `forecasts`."""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from gpusched_env.model import Instance
from gpusched_env.simulator import Policy, State
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.due_dates import MISSED_S
from gpusched_env.simulator.policy import memory_columns
from gpusched_experiments.report.cell import Measure
from gpusched_operations.forecast import ArrivalModel, Forecast, ForecastSettings, forecast
from gpusched_operations.forecast.forecast import jobs_to_come

if TYPE_CHECKING:
    from gpusched_env.arrays import Floats, Ints
    from gpusched_experiments.report.run import Values

NONE, MODELLED, KNOWN = "none", "modelled", "known"
MOMENTS = (0.25, 0.5, 0.7)
"""When forecasts are made: when so many of the jobs are submitted."""
SETTINGS = ForecastSettings(samples=79)
"""Of 79 samples the 8th and the 72nd: a further one lies between them with a probability of 0.8."""
HOUR = 3600.0
HORIZONS = (("short", 0.0, HOUR), ("medium", HOUR, 6.0 * HOUR), ("long", 6.0 * HOUR, np.inf))
"""By the median of the time from the forecast to the end: name, least, most [s]."""
CHANCES = (0.0, 0.05, 0.25, 0.75, 0.95, 1.0 + 1e-9)
SAME_S = 1e-3
"""Times that differ by less are the same: needs are edges of bins, so that many ends are equal but for rounding."""


@dataclass(frozen=True, slots=True, eq=False)
class _Known:
    """The jobs that really come, of which only the needs are drawn: what a forecast would be that knew arrivals."""

    state: State

    def __len__(self) -> int:
        return len(self.state.hidden.jobs) - int(self.state.board.count[at.SUBMITTED])

    def drawn(self, state: State, draws: int, coming: int, seed: int) -> tuple[Floats, Floats, Floats]:
        rows, tau = state.hidden.jobs[-coming:], state.hidden.tau[-coming:]
        quantiles = np.random.default_rng([seed, 2]).random((draws, coming))
        return np.broadcast_to(rows, (draws, *rows.shape)), np.broadcast_to(tau, (draws, *tau.shape)), quantiles


def _forecast(state: State, policy: Policy, rng: np.random.Generator, mode: str) -> Forecast:
    known = _Known(state)
    if mode == NONE or not len(known):
        return forecast(state, policy, rng, SETTINGS)
    if mode == KNOWN:
        of_all: Any = known
        return forecast(state, policy, rng, SETTINGS, of_all, coming=len(known))
    like = ArrivalModel.of_history(state.board)
    if like is None:
        return forecast(state, policy, rng, SETTINGS)
    most = jobs_to_come(state, policy, rng, like, np.inf, SETTINGS.samples)
    return forecast(state, policy, rng, SETTINGS, like, coming=min(most, len(known)))


def check_forecasts(mode: str, instance: Instance, policy: Policy, seed: int) -> Values:
    """Run the policy, forecast at some moments, and count how often what then happened lay in the intervals."""
    begin = time.perf_counter()
    state = State(instance, record=False, memory_columns=memory_columns(policy, instance))
    rng, count = np.random.default_rng(seed), state.board.count
    wanted = [max(1, round(part * len(instance.jobs))) for part in MOMENTS]
    made: list[tuple[Ints, Ints, Forecast]] = []
    while state.advance():
        if count[at.ACTIVE] == 0:
            continue
        if wanted and count[at.SUBMITTED] >= wanted[0]:
            wanted.pop(0)
            present = state.board.active[: count[at.ACTIVE]].copy()
            waits = np.isnan(state.board.jobs[present, at.START_S])
            made.append((present, waits, _forecast(state, policy, rng, mode)))
        state.begin_round(policy.preemption)
        policy.decide(state.view, rng)
        state.commit_round()
    counts: dict[str, float] = {}
    for present, waits, each in made:
        for name, value in count_hits(each, state.board.jobs[present], waits).items():
            counts[name] = counts.get(name, 0.0) + value
    return counts | {"run_s": time.perf_counter() - begin}


def count_hits(made: Forecast, jobs: Floats, waits: Ints) -> dict[str, float]:
    """Compare one forecast with what happened to its jobs, rows of the board at the end."""
    low, median, high = made.end_s
    end, due = jobs[:, at.END_S], jobs[:, at.DUE]
    low, high = low - SAME_S, high + SAME_S
    inside = (low <= end) & (end <= high)
    first, _, last = made.start_s
    started = waits & (first - SAME_S <= jobs[:, at.START_S]) & (jobs[:, at.START_S] <= last + SAME_S)
    late, chance = end > due + MISSED_S, made.late
    found = {
        "jobs": float(len(end)),
        "inside": float(inside.sum()),
        "before": float((end < low).sum()),
        "after": float((end > high).sum()),
        "waiting": float(waits.sum()),
        "start_inside": float(started.sum()),
        "error_s": float(np.abs(end - median).sum()),
        "left_s": float((end - made.now_s).sum()),
        "width_s": float((high - low).sum()),
        "late": float(late.sum()),
        "chance": float(chance.sum()),
        "brier": float(((chance - late) ** 2).sum()),
    }
    ahead = median - made.now_s
    for name, least, most in HORIZONS:
        own = (least <= ahead) & (ahead < most)
        found |= {f"{name}_jobs": float(own.sum()), f"{name}_inside": float((own & inside).sum())}
    for i, (least, most) in enumerate(pairwise(CHANCES)):
        own = (least <= chance) & (chance < most)
        found |= {f"chance{i}_jobs": float(own.sum()), f"chance{i}_late": float((own & late).sum())}
        found[f"chance{i}"] = float(chance[own].sum())
    return found


MEASURES = {mode: Measure(f"forecasts {mode}", partial(check_forecasts, mode)) for mode in (NONE, MODELLED, KNOWN)}
