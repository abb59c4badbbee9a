"""What a driver or a watcher counts, in the form that Prometheus reads: rounds, actions, jobs, energy, forecasts.

All comes from two places that are there anyway: the events of the journal, and the answers of the policy. What a policy
has saved is not counted: that needs another run of the same jobs, as in the report of `gpusched slurm watch`.
"""

from __future__ import annotations

import statistics
import threading
import time
from bisect import bisect_right
from collections import Counter as Counts
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from prometheus_client import Counter, Gauge, Histogram, generate_latest

from gpusched_operations.live.state import Clock
from gpusched_operations.service.fields import PriceFields
from gpusched_operations.service.metrics import SECONDS, new_registry

PREFIX = "gpusched_live"
LAST_ENDS = 100
"""Ends of jobs that the error of forecasts is taken over."""
OF_A_ROUND = {"read": "read_s", "ask": "ask_s", "act": "act_s"}
DONE = {
    "start": "start", "stop": "stop", "held": "hold", "released": "release", "power-down": "power-down",
    "not-started": "start",
}  # fmt: skip
"""Actions by the events that tell of them."""
FAILED = ("not-started",)


@dataclass
class _Rate:
    """What energy costs, since a time of the steady clock."""

    since_s: float
    eur_per_h: float
    kw: float
    kg_per_kwh: float

    @classmethod
    def of(cls, fields: Mapping[str, Any], answer: Mapping[str, Any], since_s: float) -> _Rate:
        """Read the rate of an answer, and the price that it is at: the reference price, whatever prices do over time.

        Prices of held GPUs are in the costs of an answer, too; then the power is not known, and stands as 0.
        """
        prices = PriceFields.model_validate(fields.get("prices") or {})
        eur_per_h, price = float(answer["energy_eur_per_h"]), prices.energy_eur_per_kwh
        kw = eur_per_h / price if price > 0.0 and not prices.gpu_hour_eur else 0.0
        series = prices.series or {}
        grams, starts = series.get("g_per_kwh"), series.get("start_s", [])
        place = bisect_right(starts, fields["now_s"]) - 1
        return cls(since_s, eur_per_h, kw, grams[place] / 1000.0 if grams and place >= 0 else 0.0)


class LiveMetrics:
    """The figures of a driver or a watcher.

    Args:
        clock: The clock of the policy.
        drives: Whether what the policy says is done; else only what runs already is forecast, and no energy is counted.
        now: Tells the Unix time [s].
        steady: Tells seconds of a clock that nobody sets.
    """

    def __init__(
        self,
        clock: Clock,
        *,
        drives: bool,
        now: Callable[[], float] = time.time,
        steady: Callable[[], float] = time.monotonic,
    ) -> None:
        self._clock, self._drives, self._now, self._steady = clock, drives, now, steady
        self._lock = threading.Lock()
        self._round_s = steady()
        self._lease_s: float | None = None
        self._rate: _Rate | None = None
        self._expected: dict[str, float] = {}
        self._errors: deque[float] = deque(maxlen=LAST_ENDS)
        self._registry = registry = new_registry()

        def gauge(name: str, said: str, *labels: str) -> Gauge:
            return Gauge(f"{PREFIX}_{name}", said, labels, registry=registry)

        def counter(name: str, said: str, *labels: str) -> Counter:
            return Counter(f"{PREFIX}_{name}", said, labels, registry=registry)

        self._rounds = counter("rounds", "Rounds, by whether they came to their end.", "result")
        self._took = Histogram(
            f"{PREFIX}_round_seconds", "Time of a round, by step: read Slurm, ask the policy, act.", ("step",),
            buckets=SECONDS, registry=registry,
        )  # fmt: skip
        self._calls = counter("slurm_calls", "Calls of Slurm's commands.")
        self._events = counter("events", "Events, by kind.", "kind")
        self._actions = counter("actions", "What was done to jobs and nodes, by result.", "action", "result")
        self._jobs = gauge("jobs", "Jobs that the policy is told of, by what it gives them.", "action")
        self._left_out = gauge("jobs_left_out", "Jobs that the policy cannot be told of.")
        self._eur_h = gauge("energy_eur_per_hour", "Cost of the energy of all driven jobs now, as modelled.")
        self._kw = gauge("power_kilowatts", "Power of all driven jobs' nodes now with PUE, as modelled.")
        self._eur = counter("energy_eur", "Cost of energy since the start, as modelled.")
        self._kwh = counter("energy_kilowatt_hours", "Energy since the start, as modelled.")
        self._kg = counter("carbon_kilograms", "CO2 of that energy, where prices tell the grams of a kWh.")
        self._error = gauge("end_error_seconds", f"Median absolute error of the expected ends of the last {LAST_ENDS}.")
        self._ends = counter("ends", "Ends of jobs that were compared with the expected ones.")
        self._age = gauge("round_age_seconds", "Time since the last round that came to its end.")
        self._lease = gauge("lease_left_seconds", "Time until a watchdog undoes what the driver did.")
        for result in ("done", "failed"):
            self._rounds.labels(result)

    def asking(self, ask: Callable[[Mapping[str, Any]], Mapping[str, Any]]) -> Callable[..., Mapping[str, Any]]:
        def asked(fields: Mapping[str, Any]) -> Mapping[str, Any]:
            answer = ask(fields)
            self.answer(fields, answer)
            return answer

        return asked

    def event(self, kind: str, fields: Mapping[str, Any]) -> None:
        with self._lock:
            self._events.labels(kind).inc()
            if kind == "drive":
                self._lease_s, self._round_s = float(fields["lease_s"]), self._steady()
            elif kind == "round":
                self._count_round(fields)
            elif kind == "round-failed" or fields.get("event") in ("read-failed", "decide-failed"):
                self._rounds.labels("failed").inc()
            self._count_actions(kind, fields)
            if kind == "stop":
                self._expected.pop(fields["job"], None)
            elif kind == "ended":
                self._compare(fields["job"], fields.get("outcome"), fields.get("end_s"))
            elif kind == "state":
                for job, changed in fields.get("jobs", {}).items():
                    self._compare(job, changed.get("outcome"), changed.get("end_s"))

    def _count_actions(self, kind: str, fields: Mapping[str, Any]) -> None:
        if kind == "refused":
            self._actions.labels(str(fields.get("action", "")), "refused").inc()
        elif kind in DONE:
            number = len(fields["jobs"]) if "jobs" in fields else 1
            self._actions.labels(DONE[kind], "failed" if kind in FAILED else "done").inc(number)

    def answer(self, fields: Mapping[str, Any], answer: Mapping[str, Any]) -> None:
        """Count an answer of the policy, as of now.

        Args:
            answer: The answer; in that of a driver the expected ends are those of what it is about to do.
        """
        with self._lock:
            actions = Counts(job["action"] for job in answer["jobs"])
            for action in ("start", "keep", "change", "stop", "wait"):
                self._jobs.labels(action).set(actions[action])
            for job in answer["jobs"]:
                end_s, new = job.get("expected_end_s"), job["action"] in ("start", "change")
                if end_s is not None and (self._drives if new else job["id"] not in self._expected):
                    self._expected[job["id"]] = self._clock.unix_s(end_s)
            if self._drives:
                self._spend()
                self._set_rate(_Rate.of(fields, answer, self._steady()))

    def text(self) -> bytes:
        with self._lock:
            self._spend()
            age = self._steady() - self._round_s
            self._age.set(age)
            self._lease.set(0.0 if self._lease_s is None else max(0.0, self._lease_s - age))
            return generate_latest(self._registry)

    def _count_round(self, fields: Mapping[str, Any]) -> None:
        self._round_s = self._steady()
        self._rounds.labels("done").inc()
        for step, name in OF_A_ROUND.items():
            if name in fields:
                self._took.labels(step).observe(fields[name])
        if "seconds" in fields:  # a watcher's
            self._took.labels("ask").observe(fields["seconds"])
        self._calls.inc(fields.get("calls", 0))
        self._left_out.set(fields.get("left_out", 0))
        if fields.get("told") == 0:  # the policy was not asked
            self._jobs.clear()
            self._spend()
            self._set_rate(None)

    def _set_rate(self, rate: _Rate | None) -> None:
        self._rate = rate
        self._eur_h.set(0.0 if rate is None else rate.eur_per_h)
        self._kw.set(0.0 if rate is None else rate.kw)

    def _compare(self, job: str, outcome: str | None, end_s: float | None) -> None:
        if not outcome:
            return
        expected_s = self._expected.pop(job, None)
        if expected_s is not None and end_s is not None and outcome == "completed":
            self._errors.append(abs(expected_s - end_s))
            self._ends.inc()
            self._error.set(statistics.median(self._errors))

    def _spend(self) -> None:
        now_s, rate = self._steady(), self._rate
        if rate is not None:
            hours = (now_s - rate.since_s) / 3600.0 * self._clock.speed
            self._eur.inc(rate.eur_per_h * hours)
            self._kwh.inc(rate.kw * hours)
            self._kg.inc(rate.kg_per_kwh * rate.kw * hours)
            rate.since_s = now_s
