"""The `epochs` section of a scenario: which family the distributions of epochs come from.

Every parameter is a range [lowest, highest]; each distribution of the library draws its own value uniformly from it.
The defaults of every family give a mean need of about 40 % of the maximum epochs, averaged over the library.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Literal, Self

import numpy as np
from pydantic import BeforeValidator, Discriminator, Field, model_validator

from gpusched_env.errors import InputError
from gpusched_env.model import EpochDistribution
from gpusched_env.model.checks import LONGEST, LONGEST_S
from gpusched_env.workload.scenario.settings import (
    FractionRange,
    Many,
    NotNegative,
    Positive,
    PositiveRange,
    ProbabilityRange,
    Seconds,
    Settings,
    range_check,
    setting,
    whole,
)
from gpusched_env.workload.tables.applications import Application

if TYPE_CHECKING:
    from numpy.random import Generator
    from numpy.typing import NDArray

Masses = Many[Many[float]]


MOST_BINS = 10_000
"""Bins of a distribution, and distributions of a library: more only cost memory."""

MostBins = Annotated[int, whole(1, MOST_BINS)]


GIVEN_HISTOGRAMS = ("masses", "library", "runs")
"""Settings of the histogram family with given distributions: at most one of them."""


def _range_or_file(value: object) -> object:
    return value if isinstance(value, str) else _RUNS(value)


_RUNS = range_check("> 0 and <= 1,000,000", lambda x: 0.0 < x <= 1e6)
RunsOrFile = Annotated[str | tuple[float, float], BeforeValidator(_range_or_file)]


class _EpochFamily(Settings):
    bins: MostBins = setting(100, "Equal bins of (0, E].")
    library_size: MostBins = setting(20, "Distributions in the library; each job draws one uniformly.")


class HistogramEpochs(_EpochFamily):
    """Empirical histograms of past runs, made up or given."""

    family: Literal["histogram"] = setting("histogram", "Family of the distributions.")
    mean: FractionRange = setting((0.2, 0.6), "Mean need of the past runs, as a fraction of the maximum epochs.")
    concentration: PositiveRange = setting((2.0, 8.0), "How narrow the needs of past runs are (beta distribution).")
    runs: RunsOrFile = setting(
        (50.0, 500.0), "Past runs behind each made-up histogram; or a CSV file with a row for each of your runs."
    )
    masses: Masses | None = setting(None, "Your own histograms, one list of weights each, instead of made-up ones.")
    library: str | None = setting(
        None, "Or a CSV file whose columns are histograms; published, mlperf: those of the published runs, of MLPerf's."
    )
    by_application: bool = setting(
        False, "Whether an application has the histogram of its name in library or runs; else jobs draw one."
    )

    @model_validator(mode="after")
    def _check_masses(self) -> Self:
        files = [name for name in ("library", "runs") if isinstance(getattr(self, name), str)]
        if self.masses is not None and files:
            raise InputError(files[0], getattr(self, files[0]), "nothing beside masses: one way to give histograms")
        if len(files) == 2:
            raise InputError("runs", self.runs, "a range beside library: one way to give histograms")
        if self.by_application and not files:
            raise InputError("by_application", True, "false without library or runs, a file with a name for each")
        if self.masses is not None and not self.masses:
            raise InputError("masses", [], "one histogram or more")
        for index, masses in enumerate(self.masses or ()):
            try:
                EpochDistribution.from_masses(masses)
            except InputError as error:
                raise InputError(f"masses[{index}]", error.value, error.allowed) from None
        return self


class LognormalEpochs(_EpochFamily):
    """Lognormal needs, truncated to the maximum epochs."""

    family: Literal["lognormal"] = setting("lognormal", "Family of the distributions.")
    median: FractionRange = setting((0.2, 0.6), "Median before truncation, as a fraction of the maximum epochs.")
    sigma: PositiveRange = setting((0.3, 0.9), "Standard deviation of the logarithm.")


class BetaEpochs(_EpochFamily):
    """Beta-distributed needs."""

    family: Literal["beta"] = setting("beta", "Family of the distributions.")
    mean: FractionRange = setting((0.2, 0.6), "Mean need as a fraction of the maximum epochs.")
    concentration: PositiveRange = setting((2.0, 8.0), "Sum of both shape parameters.")


class GeometricEpochs(_EpochFamily):
    """The same hazard of stopping in every bin; survivors need all epochs."""

    family: Literal["geometric"] = setting("geometric", "Family of the distributions.")
    stop_rate: PositiveRange = setting(
        (1.0, 4.0), "Expected stops over the maximum epochs if a job continued after each."
    )


class TwoPointEpochs(_EpochFamily):
    """Fails early or runs on; uses two bins of its own instead of `bins`."""

    family: Literal["two-point"] = setting("two-point", "Family of the distributions.")
    early_at: FractionRange = setting((0.05, 0.3), "Where early jobs end, as a fraction of the maximum epochs.")
    early_probability: ProbabilityRange = setting((0.6, 0.85), "Probability of ending there.")


def _with_family(value: object) -> object:
    return {"family": "histogram", **value} if isinstance(value, Mapping) and "family" not in value else value


Epochs = Annotated[
    HistogramEpochs | LognormalEpochs | BetaEpochs | GeometricEpochs | TwoPointEpochs,
    Discriminator("family"),
    BeforeValidator(_with_family),
]


class DueDates(Settings):
    """When jobs are due: submission + slack · U(least, greatest full execution time)."""

    slack: Positive = setting(
        1.0, "Factor on the time from submission to due date: 1 is the published rule, below 1 is tighter."
    )
    gpu_types: Many[str] = setting(
        (), "With cluster.pools: GPU types that the cluster lacks; due dates follow from their times too."
    )


def due_dates(
    rule: DueDates, submission_s: NDArray[np.float64], full_s: NDArray[np.float64], rng: Generator
) -> NDArray[np.float64]:
    """Draw each job's due date: submission + slack · U(min, max) of its full execution times.

    Args:
        submission_s: Submission times [s], shape (J,).
        full_s: Execution time of all epochs on every configuration [s], shape (J, C); inf where not allowed.

    Returns:
        Due dates [s], shape (J,).
    """
    least = full_s.min(axis=1)
    greatest = np.where(np.isfinite(full_s), full_s, 0.0).max(axis=1)
    share = rng.random(len(submission_s))
    with np.errstate(over="ignore"):
        due: NDArray[np.float64] = submission_s + rule.slack * (least + share * (greatest - least))
    if not np.all(due <= LONGEST_S):
        raise InputError("due_dates.slack", rule.slack, f"a factor with which no job is due later than {LONGEST}")
    return due


def _by_gpus(value: object) -> object:
    if isinstance(value, list | tuple):
        return {str(gpus): seconds for gpus, seconds in enumerate(value, start=1)}
    return dict(value) if isinstance(value, Mapping) else value


ByGpus = Annotated[dict[str, Positive], BeforeValidator(_by_gpus)]


class OwnApplication(Settings):
    """An application of your own; one with the name of a built-in one adds to its times."""

    name: str = Field(description="Name.")
    max_epochs: Positive = Field(description="Most epochs of a run.")
    memory_gib: NotNegative = setting(0.0, "Memory on each GPU [GiB]; 0 fits everywhere.")
    restart_s: Seconds = setting(0.0, "Seconds without progress after a change.")
    state_gib: NotNegative = setting(0.0, "State that is moved when jobs are switched [GiB].")
    seconds_per_epoch: dict[str, ByGpus] | None = setting(
        None, 'Time of an epoch [s], by GPU type: for 1, 2, ... GPUs, or by number { "1" = 90.0, "2*8" = 7.0 }.'
    )
    seconds: dict[str, ByGpus] | None = setting(None, "Or the time of all epochs [s].")

    @model_validator(mode="after")
    def _check(self) -> Self:
        if not self.name:
            raise InputError("name", self.name, "a text that is not empty")
        if (self.seconds_per_epoch is None) == (self.seconds is None):
            given = None if self.seconds is None else "both"
            raise InputError("seconds_per_epoch", given, "times of an epoch, or `seconds` of all epochs, but not both")
        for gpu_type, times in self._given().items():
            where = f"{'seconds' if self.seconds else 'seconds_per_epoch'}.{gpu_type}"
            sizes = [_size(where, size) for size in times]
            if len(set(sizes)) < len(sizes):
                raise InputError(where, list(times), "each number of GPUs once")
        return self

    def application(self) -> Application:
        """Make the application."""
        part = 1.0 if self.seconds is None else 1.0 / self.max_epochs
        given = self._given().items()
        times = {(v, *_size(v, size)): seconds * part for v, sizes in given for size, seconds in sizes.items()}
        facts = {name: getattr(self, name) for name in ("max_epochs", "memory_gib", "restart_s", "state_gib")}
        return Application.of_times(self.name, facts, times)

    def _given(self) -> dict[str, dict[str, float]]:
        return self.seconds_per_epoch or self.seconds or {}


def _size(where: str, text: str) -> tuple[int, int]:
    """Read `4`, GPUs of one node, or `2*8`, nodes of so many GPUs each."""
    parts = text.split("*")
    if len(parts) > 2 or not all(part.isascii() and part.isdigit() and int(part) > 0 for part in parts):
        raise InputError(where, text, 'a number of GPUs such as "4", or of whole nodes such as "2*8"')
    nodes, gpus = (1, int(parts[0])) if len(parts) == 1 else (int(parts[0]), int(parts[1]))
    return nodes, gpus
