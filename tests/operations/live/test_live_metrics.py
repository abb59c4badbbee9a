"""What a driver and a watcher count: by hand, from a few events and answers, on a clock of ours."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gpusched_operations.cli.live_options import address_of
from gpusched_operations.live.journal import Journal, log_line
from gpusched_operations.live.state import Clock
from gpusched_operations.service.logs import logging_to_stderr
from refusals import refused

parser = pytest.importorskip("prometheus_client.parser", reason="needs the extra `serve`")
from gpusched_operations.live.metrics import LiveMetrics  # noqa: E402

PRICES = {"energy_eur_per_kwh": 0.2, "pue": 1.5}


class Time:
    """A clock that is set."""

    def __init__(self) -> None:
        self.s = 1000.0

    def __call__(self) -> float:
        return self.s


def figures_of(metrics: LiveMetrics) -> dict[str, float]:
    """Return every figure by its name, and the values of its labels."""
    return {
        " ".join([sample.name.removeprefix("gpusched_live_"), *sample.labels.values()]): sample.value
        for family in parser.text_string_to_metric_families(metrics.text().decode())
        for sample in family.samples
    }


def answer(eur_per_h: float, *jobs: tuple[str, str, float | None]) -> dict[str, Any]:
    told = [{"id": name, "action": action, "expected_end_s": end_s} for name, action, end_s in jobs]
    return {"jobs": told, "energy_eur_per_h": eur_per_h}


def metrics_of(time: Time, *, drives: bool = True, speed: float = 1.0) -> LiveMetrics:
    return LiveMetrics(Clock(speed, 1000.0), drives=drives, steady=time)


def test_energy_is_counted_from_answer_to_answer():
    time = Time()
    metrics = metrics_of(time)
    metrics.asking(lambda _: answer(0.6))({"now_s": 0.0, "prices": PRICES})
    time.s += 1800.0
    metrics.asking(lambda _: answer(1.2))({"now_s": 1800.0, "prices": PRICES})
    time.s += 3600.0
    found = figures_of(metrics)
    assert found["energy_eur_per_hour"] == pytest.approx(1.2)
    assert found["power_kilowatts"] == pytest.approx(6.0)
    assert found["energy_eur_total"] == pytest.approx(0.5 * 0.6 + 1.2)
    assert found["energy_kilowatt_hours_total"] == pytest.approx(0.5 * 3.0 + 6.0)
    metrics.event("round", {"told": 0})  # nobody is there, and the policy is not asked
    time.s += 3600.0
    found = figures_of(metrics)
    assert (found["energy_eur_total"], found["power_kilowatts"]) == (pytest.approx(1.5), 0.0)


def test_grams_of_the_present_period_are_counted():
    time = Time()
    metrics = metrics_of(time)
    series = {"start_s": [0.0, 100.0, 200.0], "eur_per_kwh": [1.0, 1.0, 1.0], "g_per_kwh": [1.0, 500.0, 9.0]}
    metrics.answer({"now_s": 150.0, "prices": PRICES | {"series": series}}, answer(0.6))
    time.s += 3600.0
    assert figures_of(metrics)["carbon_kilograms_total"] == pytest.approx(3.0 * 0.5)


def test_power_is_not_known_where_held_gpus_have_a_price():
    metrics = metrics_of(Time())
    metrics.answer({"now_s": 0.0, "prices": PRICES | {"gpu_hour_eur": 2.0}}, answer(0.6))
    assert figures_of(metrics)["power_kilowatts"] == 0.0


def test_in_a_trial_with_shortened_time_energy_is_that_of_the_model():
    time = Time()
    metrics = metrics_of(time, speed=600.0)
    metrics.answer({"now_s": 0.0, "prices": PRICES}, answer(0.6))
    time.s += 6.0  # an hour of the model
    assert figures_of(metrics)["energy_eur_total"] == pytest.approx(0.6)


def test_expected_ends_are_compared_with_those_that_came():
    metrics = metrics_of(Time())
    jobs = [(name, "start", 2000.0) for name in ("a", "b", "c", "stopped", "failed")]
    metrics.answer({"now_s": 1000.0}, answer(0.0, *jobs))
    metrics.answer({"now_s": 1100.0}, answer(0.0, ("a", "keep", 5000.0), ("b", "change", 3000.0)))
    metrics.event("stop", {"job": "stopped"})
    for job, outcome, end_s in (
        ("a", "completed", 2010.0), ("b", "completed", 2900.0), ("c", "completed", 2030.0), ("c", "completed", 9000.0),
        ("stopped", "completed", 9000.0), ("failed", "failed", 9000.0), ("unknown", "completed", 9000.0),
    ):  # fmt: skip
        metrics.event("ended", {"job": job, "outcome": outcome, "end_s": end_s})
    found = figures_of(metrics)
    assert found["ends_total"] == 3.0
    assert found["end_error_seconds"] == 30.0  # of 10, 100 and 30


def test_a_watcher_forecasts_what_runs_and_counts_no_energy():
    metrics = metrics_of(Time(), drives=False)
    ask = metrics.asking(lambda _: answer(9.0, ("a", "keep", 2000.0), ("b", "start", 2000.0)))
    ask({"now_s": 1000.0})
    ended = {"outcome": "completed", "end_s": 2004.0, "phase": "ended"}
    metrics.event("state", {"jobs": {"a": ended, "b": ended, "c": {"phase": "running"}}})
    found = figures_of(metrics)
    assert (found["ends_total"], found["end_error_seconds"]) == (1.0, 4.0)
    assert (found["energy_eur_per_hour"], found["jobs keep"], found["jobs start"]) == (0.0, 1.0, 1.0)


def test_rounds_calls_and_actions_are_counted_by_their_result():
    time = Time()
    metrics = metrics_of(time)
    metrics.event("drive", {"lease_s": 600.0})
    time.s += 100.0
    one = {"told": 3, "calls": 4, "left_out": 1, "read_s": 0.25, "ask_s": 0.5, "act_s": 2.0}
    metrics.event("round", one)
    metrics.event("round", one)
    metrics.event("round-failed", {"why": "slurmctld is away"})
    metrics.event("held", {"jobs": ["a", "b", "c"]})
    metrics.event("start", {"job": "a"})
    metrics.event("not-started", {"job": "b"})
    metrics.event("refused", {"job": "c", "action": "stop"})
    time.s += 30.0
    found = figures_of(metrics)
    counted = {name: value for name, value in found.items() if name.startswith(("rounds", "actions", "slurm", "jobs_"))}
    assert counted == {
        "rounds_total done": 2.0, "rounds_total failed": 1.0, "slurm_calls_total": 8.0, "jobs_left_out": 1.0,
        "actions_total hold done": 3.0, "actions_total start done": 1.0, "actions_total start failed": 1.0,
        "actions_total stop refused": 1.0,
    }  # fmt: skip
    assert (found["round_seconds_count read"], found["round_seconds_sum act"]) == (2.0, 4.0)
    assert (found["round_age_seconds"], found["lease_left_seconds"]) == (30.0, 570.0)
    assert found["events_total round"] == 2.0
    time.s += 600.0
    assert figures_of(metrics)["lease_left_seconds"] == 0.0


def test_a_journal_tells_figures_and_log_of_every_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    metrics = metrics_of(Time())
    with Journal(tmp_path / "journal") as journal, logging_to_stderr("info", "json"):
        journal.listeners += [log_line, metrics.event]
        journal.append("start", job="7", configuration="V100x2", nodes=["gpu01"])
        journal.append("progress", id="7", epochs=3.0)  # no event
        journal.append("event", event="read-failed", why="slurmctld is away")
    first, second = (json.loads(line) for line in capsys.readouterr().err.splitlines())
    assert (first["event"], first["level"], first["job"], first["nodes"]) == ("start", "info", "7", ["gpu01"])
    assert (second["event"], second["level"], second["of_event"]) == ("event", "warning", "read-failed")
    found = figures_of(metrics)
    assert (found["events_total start"], found["events_total progress"], found["rounds_total failed"]) == (
        1.0,
        1.0,
        1.0,
    )


def test_figures_are_told_at_a_port_of_this_machine_or_at_an_address():
    assert address_of("--metrics", "9101") == ("127.0.0.1", 9101)
    assert address_of("--metrics", "10.0.0.1:9101") == ("10.0.0.1", 9101)
    assert address_of("--metrics", "[::1]:0") == ("::1", 0)
    for wrong in ("", "host", "host:", "70000", "9101/metrics"):
        with refused("--metrics", wrong):
            address_of("--metrics", wrong)
