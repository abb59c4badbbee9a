"""What a traced job's size says of the fraction φ of its epochs that it needs: nothing, however closely one looks.

The traces here are in whole seconds on one GPU. Without dither, E · φ · τ is whole for the true φ, and rarely for
others: three in five jobs could be guessed by that alone.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
import pytest

from gpusched_env import Instance
from gpusched_env.workload import builtin_applications, make_instance, scenario_for_trace
from gpusched_env.workload.traces import replay as dither
from gpusched_env.workload.traces.trace import Trace

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

TAU = {name: one.seconds_per_epoch["V100", 1] for name, one in builtin_applications().items()}


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write 3,000 jobs of a second to some days, log-normal."""
    seconds = np.random.default_rng(0).lognormal(7.0, 1.5, 3_000).astype(int) + 1
    path = tmp_path_factory.mktemp("trace") / "trace.csv"
    rows = "".join(f"{60 * job},{duration},1\n" for job, duration in enumerate(seconds))
    path.write_text("submission_s,duration_s,gpus\n" + rows, encoding="utf-8")
    return path


def replayed(trace: Path, jobs: int = 3_000) -> Instance:
    return make_instance(scenario_for_trace(trace, jobs=jobs, nodes=40), 9000)


def undithered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Size jobs by the trace's durations."""
    monkeypatch.setattr("gpusched_env.workload.traces.replay.dithered", lambda epochs, *_: epochs)


def full_s(instance: Instance) -> np.ndarray:
    """Return E · τ on one GPU of the reference type [s], (J,)."""
    jobs = instance.jobs
    return jobs.max_epochs * np.array([TAU[jobs.applications[a]] for a in jobs.application])


def percent(instance: Instance) -> np.ndarray:
    """Return 100 φ, (J,)."""
    return np.round(100 * instance.jobs.epochs_needed / instance.jobs.max_epochs).astype(int)


def guesses(seconds: float, masses: np.ndarray, tolerance_s: float) -> tuple[int, int]:
    """Guess 100 φ of a job with full time `seconds`: by its distribution alone, and among those that look whole."""
    needed = seconds * np.arange(1, 101) / 100
    whole = np.where(np.abs(needed - np.round(needed)) < tolerance_s, masses, 0.0)
    return int(np.argmax(masses)) + 1, int(np.argmax(whole if whole.any() else masses)) + 1


def rates(instance: Instance, tolerance: Callable[[float], float]) -> tuple[float, float]:
    """Return how many jobs are guessed right without and with a look at whole seconds."""
    jobs, true = instance.jobs, percent(instance)
    pairs = [
        guesses(seconds, jobs.distributions[d].masses, tolerance(seconds))
        for seconds, d in zip(full_s(instance).tolist(), jobs.distribution.tolist(), strict=True)
    ]
    right = np.array(pairs) == true[:, None]
    return float(right[:, 0].mean()), float(right[:, 1].mean())


@pytest.mark.parametrize("tolerance", [1e-9, 1e-4, 1e-2, 0.1])
def test_what_a_view_shows_does_not_help_to_guess(trace: Path, tolerance: float):
    """3,000 guesses that are right one time in 25 are so within 0.4 %: three times that is noise."""
    without, looking = rates(replayed(trace), lambda seconds: tolerance + 1e-14 * seconds)
    assert looking < without + 0.012


def test_without_dither_it_would(trace: Path, monkeypatch: pytest.MonkeyPatch):
    undithered(monkeypatch)
    without, looking = rates(replayed(trace), lambda seconds: 1e-9 + 1e-14 * seconds)
    assert without < 0.06
    assert looking > 0.5


def test_the_part_of_a_second_is_spread_evenly_for_the_true_fraction_as_for_any_other(trace: Path):
    """In tenths of a second: 300 jobs each, within 16; four times that is noise."""
    instance = replayed(trace)
    for number in (percent(instance), np.full(3_000, 50), np.full(3_000, 37)):
        part = np.histogram((full_s(instance) * number / 100) % 1.0, np.linspace(0.0, 1.0, 11))[0]
        assert np.all(np.abs(part - 300) < 66)


def reachable(epochs: np.ndarray, divisor: np.ndarray) -> float:
    """Return the share of `epochs` that are the quotient of some number and the `divisor` to the last bit."""
    found = 0
    for quotient, by in zip(epochs.tolist(), divisor.tolist(), strict=True):
        exact = float(Fraction(quotient) * Fraction(by))
        found += any(near / by == quotient for near in (exact, np.nextafter(exact, 0.0), np.nextafter(exact, np.inf)))
    return found / len(epochs)


def test_the_last_bits_do_not_tell_by_which_fraction_was_divided(trace: Path):
    """One number in ten is no quotient by φ · τ, so one that is would be a hint; 3,000 are so within 0.6 %."""
    instance = replayed(trace)
    epochs, phi = instance.jobs.max_epochs, percent(instance) / 100
    tau = np.array([TAU[instance.jobs.applications[a]] for a in instance.jobs.application])
    other = np.random.default_rng(1).integers(1, 101, len(phi)) / 100
    assert reachable(epochs * phi * tau / (phi * tau), phi * tau) == 1.0
    assert reachable(epochs, phi * tau) == pytest.approx(reachable(epochs, other * tau), abs=0.025)


def test_a_realised_run_is_within_half_a_second_of_the_traces_duration_and_never_without_one():
    seconds = np.array([1e-3, 0.5, 1.0, 2.0, 50.0, 3_600.0, 1e6] * 500)
    trace = Trace("made up", np.zeros(len(seconds)), seconds, np.ones(len(seconds)))
    epochs = dither.dithered(seconds / 7.0, trace, 1.0, np.random.default_rng(0))
    realised = epochs * 7.0
    assert np.all(realised > 0.0)
    off = (realised - seconds) / np.minimum(1.0, seconds)
    assert np.all(np.abs(off) < 0.5 + 1e-6)
    assert np.histogram(off, np.linspace(-0.5, 0.5, 6))[0] == pytest.approx(700.0, abs=100.0)


def test_durations_in_minutes_are_blurred_within_a_minute_if_the_scenario_says_so():
    seconds = np.full(1_000, 600.0)
    trace = Trace("made up", np.zeros(1_000), seconds, np.ones(1_000))
    off = dither.dithered(seconds, trace, 60.0, np.random.default_rng(0)) - 600.0
    assert -30.0 < off.min() < -28.0
    assert 28.0 < off.max() < 30.0


def test_a_job_that_asked_for_more_than_there_is_is_blurred_as_long_as_it_runs_here():
    """Whole seconds on 16 GPUs are even ones on 8: the blur is two seconds wide."""
    trace = Trace("made up", np.zeros(1_000), np.full(1_000, 50.0), np.full(1_000, 16.0)).clip(8)
    off = dither.dithered(trace.duration_s, trace, 1.0, np.random.default_rng(0)) - 100.0
    assert -1.0 <= off.min() < -0.95
    assert 0.95 < off.max() <= 1.0
