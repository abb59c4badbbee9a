"""Forecasts for a state: quantiles of starts and ends, the chance of being late, and what is still to pay."""

from __future__ import annotations

import math
from copy import deepcopy
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from gpusched_env.errors import InputError
from gpusched_env.mechanisms.cap.model import PowerCap
from gpusched_env.model import checks
from gpusched_env.simulator import State
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.due_dates import MISSED_S
from gpusched_operations.forecast.draws import ArrivalModel, Draws, stratified
from gpusched_operations.forecast.rollout import Outcomes, RollOuts

if TYPE_CHECKING:
    from numpy.random import Generator
    from numpy.typing import NDArray

    from gpusched_env.arrays import Floats
    from gpusched_env.simulator import Policy

MOST_SAMPLES, MOST_COMING, MOST_ROWS = 10_000, 1_000, 400_000
"""Most rollouts, most jobs to come in one, and most of them in all."""
PILOTS = 3
"""Rollouts without jobs to come, which show for how long such are needed."""
COMING_MORE, COMING_LEAST = 1.5, 10
"""Jobs to come that are drawn, as a multiple of those expected in the longest of these rollouts, and at least."""


@dataclass(frozen=True, slots=True)
class ForecastSettings:
    """How a forecast is made.

    Args:
        samples: Rollouts, from 1 to `MOST_SAMPLES`.
        quantiles: Probabilities, rising, each > 0 and < 1.
        seed: Seed of what is drawn.
        horizon_s: How long after the present time rollouts stop [s], > 0; None: once the jobs that are there are over.
        longest_s: Time after which no other rollout begins [s], > 0; None: none.

    Raises:
        InputError: One of them is out of its range.
    """

    samples: int = 100
    quantiles: tuple[float, ...] = (0.1, 0.5, 0.9)
    seed: int = 0
    horizon_s: float | None = None
    longest_s: float | None = None

    def __post_init__(self) -> None:
        if checks.whole("samples", self.samples) > MOST_SAMPLES:
            raise InputError("samples", self.samples, f"a whole number from 1 to {MOST_SAMPLES:,}")
        checks.seed(self.seed)
        for name in ("horizon_s", "longest_s"):
            value = getattr(self, name)
            if value is not None:
                checks.duration(name, value)
        given = (0.0, *self.quantiles, 1.0)
        if not self.quantiles or any(not low < high for low, high in pairwise(given)):
            raise InputError("quantiles", list(self.quantiles), "numbers > 0 and < 1 that rise, one or more")


@dataclass(frozen=True, slots=True, eq=False)
class Forecast:
    """What rollouts say of the jobs that are there, in the order of the state's active jobs.

    Attributes:
        outcomes: What came of them, draw by draw.
        quantiles: The probabilities of its quantiles, (Q,).
        now_s: The present time [s].
        due_s: Due dates [s], (A,).
        until_s: When rollouts stopped at the latest [s]; inf: once the jobs were over.
        coming: Most jobs that could come in a rollout; 0: none came.
        eur_per_kwh: Price of a kWh at the meter, if there is one price and nothing else is in the bill; else NaN.
    """

    outcomes: Outcomes
    quantiles: tuple[float, ...]
    now_s: float
    due_s: Floats
    until_s: float
    coming: int
    eur_per_kwh: float

    @property
    def samples(self) -> int:
        """The number of rollouts, D."""
        return len(self.outcomes.end_s)

    @property
    def start_s(self) -> Floats:
        """Quantiles of the first start of every job [s], (Q, A); inf: after the horizon."""
        return quantiles_of(self.outcomes.start_s, self.quantiles)

    @property
    def end_s(self) -> Floats:
        """Quantiles of the end of every job [s], (Q, A); inf: after the horizon."""
        return quantiles_of(self.outcomes.end_s, self.quantiles)

    @property
    def missed(self) -> NDArray[np.bool_]:
        """Whether a job ended after its due date, or had not by then, (D, A); with due dates after the horizon: no."""
        over = np.isfinite(self.outcomes.end_s) | (self.due_s <= self.until_s)
        return over & (self.outcomes.end_s > self.due_s + MISSED_S)

    @property
    def late(self) -> Floats:
        """The chance of every job to end after its due date, (A,); NaN: it may be over and due after the horizon."""
        known = np.isfinite(self.outcomes.end_s).all(axis=0) | (self.due_s <= self.until_s)
        return np.where(known, self.missed.mean(axis=0), np.nan)

    def cluster(self) -> dict[str, Floats]:
        """Return sums over the jobs, and the last end [s], of every rollout, (D,)."""
        energy, tardiness = (each.sum(axis=1) for each in (self.outcomes.energy_eur, self.outcomes.tardiness_eur))
        return {
            "end_s": self.outcomes.end_s.max(axis=1),
            "late_jobs": self.missed.sum(axis=1).astype(np.float64),
            "energy_eur": energy,
            "kwh": energy / self.eur_per_kwh,
            "tardiness_eur": tardiness,
            "total_eur": energy + tardiness,
        }


def quantiles_of(samples: Floats, probabilities: tuple[float, ...]) -> Floats:
    """Return quantiles of n samples along their first axis, (Q, ...).

    They are order statistics: a further sample lies at or below the k-th of n with probability k / (n + 1) or more. So
    below 0.5 it is the k-th with k = q (n + 1) rounded down, above with k rounded up, and at 0.5 the mean of both: the
    interval between q and 1 - q holds a further sample with a probability of at least 1 - 2 q, if n is large enough.
    """
    ranked = np.sort(samples, axis=0)
    n = len(ranked)

    def nth(k: int) -> Floats:
        found: Floats = ranked[min(max(k, 1), n) - 1]
        return found

    rows = []
    for q in probabilities:
        below, above = math.floor(q * (n + 1) + 1e-9), math.ceil(q * (n + 1) - 1e-9)
        rows.append(nth(below) if q < 0.5 else nth(above) if q > 0.5 else (nth(below) + nth(above)) / 2.0)
    return np.array(rows)


def forecast(
    state: State,
    policy: Policy,
    rng: Generator,
    settings: ForecastSettings,
    arrivals: ArrivalModel | None = None,
    *,
    quantiles: Floats | None = None,
    coming: int | None = None,
    threads: int = 1,
) -> Forecast:
    """Forecast the jobs that are there.

    Args:
        state: The state, before the round at its present time.
        policy: The policy that decides from now on; the state has the columns of memory that it needs.
        rng: The policy's randomness from now on.
        settings: How many rollouts, and what is told of them.
        arrivals: Jobs to come; None: none.
        quantiles: Quantiles of what the jobs need, (D, A), if they are drawn already: `stratified`.
        coming: Most jobs to come in a rollout; None: as many as are needed.
        threads: Rollouts at one time, ≥ 1; what comes out does not depend on it.
    """
    if quantiles is None:
        quantiles = stratified(settings.seed, settings.samples, int(state.board.count[at.ACTIVE]))
    horizon_s = math.inf if settings.horizon_s is None else settings.horizon_s
    later, most = None, 0
    if arrivals is not None:
        most = coming or jobs_to_come(state, policy, rng, arrivals, horizon_s, settings.samples)
        later = arrivals.drawn(state, settings.samples, most, settings.seed)
    longest_s = math.inf if settings.longest_s is None else settings.longest_s
    outcomes = RollOuts(state, policy, rng, most, horizon_s).run_all(
        Draws.of(state, quantiles, later, settings.seed), longest_s, threads
    )
    return told_of(state, outcomes, settings, most)


def told_of(state: State, outcomes: Outcomes, settings: ForecastSettings, coming: int) -> Forecast:
    board, instance = state.board, state.instance
    now_s = float(board.clock[at.NOW])
    one_price = (
        instance.find("prices") is None and board.clock[at.GPU_EUR_PER_S] == 0.0 and instance.of(PowerCap) is None
    )
    price = instance.energy_price_eur_per_kwh if one_price else 0.0
    return Forecast(
        outcomes,
        settings.quantiles,
        now_s,
        board.jobs[board.active[: board.count[at.ACTIVE]], at.DUE].copy(),
        math.inf if settings.horizon_s is None else now_s + settings.horizon_s,
        coming,
        price if price > 0.0 else math.nan,
    )


def jobs_to_come(
    state: State, policy: Policy, rng: Generator, arrivals: ArrivalModel, horizon_s: float, samples: int
) -> int:
    """Return how many jobs may come in a rollout, by some without any."""
    drawn = stratified(0, PILOTS, int(state.board.count[at.ACTIVE]))
    pilots = RollOuts(state, policy, deepcopy(rng), 0, horizon_s).run_all(Draws.of(state, drawn))
    span_s = float(pilots.until_s.max() - state.board.clock[at.NOW])
    most = min(MOST_COMING, MOST_ROWS // samples)
    return min(most, math.ceil(COMING_MORE * arrivals.per_s * span_s) + COMING_LEAST)


def json_number(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


def json_rows(forecast: Forecast) -> list[dict[str, Any]]:
    """Return what is told of every job, in the order of the state's active jobs."""
    start, end, late = forecast.start_s.T, forecast.end_s.T, forecast.late
    energy, tardiness = (each.mean(axis=0) for each in (forecast.outcomes.energy_eur, forecast.outcomes.tardiness_eur))
    return [
        {
            "start_s": [json_number(v) for v in start[i]],
            "end_s": [json_number(v) for v in end[i]],
            "late": json_number(late[i]),
            "expected_energy_eur": float(energy[i]),
            "expected_kwh": json_number(energy[i] / forecast.eur_per_kwh),
            "expected_tardiness_eur": float(tardiness[i]),
        }
        for i in range(len(late))
    ]


def json_cluster(forecast: Forecast) -> dict[str, Any]:
    told: dict[str, Any] = {}
    for name, values in forecast.cluster().items():
        told[name] = [json_number(v) for v in quantiles_of(values, forecast.quantiles)]
        if name != "end_s":
            told[f"expected_{name}"] = json_number(values.mean())
    return told


def json_difference(forecast: Forecast, base: Forecast) -> dict[str, Any]:
    """Return what another forecast has more than the base: quantiles and means over the rollouts that both made."""
    both = min(forecast.samples, base.samples)
    told: dict[str, Any] = {}
    own, others = forecast.cluster(), base.cluster()
    for name in own:
        with np.errstate(invalid="ignore"):  # both after the horizon
            more = own[name][:both] - others[name][:both]
        told[name] = [json_number(v) for v in quantiles_of(more, forecast.quantiles)]
        told[f"expected_{name}"] = json_number(more.mean())
    return told
