"""How unevenly the jobs of public traces come: by hour of the week, and beyond that."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import numpy as np

from applications.measurements import read_csv

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from numpy.typing import NDArray

DAY_H, WEEK_H, HOUR_S = 24, 168, 3600
PHILLY_BEGINS, PHILLY_WEEKS = datetime(2017, 10, 2, tzinfo=UTC), 9
"""A Monday, and the whole weeks from it in which the traced cluster was in full use."""
OPENB_FIRST_WEEK, OPENB_WEEKS = 17, 4
"""The whole weeks of the trace's own clock in which all pods are there; before, only those that ran for months are."""

PHILLY_SOURCE = (
    "philly/philly.csv: Jeon et al., USENIX ATC'19, github.com/msr-fiddle/philly-traces (CC-BY-4.0); counted by hour, "
    "nine weeks from Monday 2017-10-02"
)
OPENB_SOURCE = (
    "openb_2023/openb_pod_list_default.csv: Weng et al., USENIX ATC'23, github.com/hkust-adsl/"
    "kubernetes-scheduler-simulator commit 8f3d6417353c5083c6d56617f255fadd8dc306bc (Apache-2.0); counted by hour, "
    "weeks 17 to 20 of its clock, whose hour 0 need not be a Monday's"
)


@dataclass(frozen=True, slots=True)
class Burstiness:
    """One line of `arrival_bursts.csv`.

    Args:
        profile: Name of the trace.
        variation: Coefficient of variation of the hourly rate about its weekly profile.
        persistence: Correlation of that rate with the one of the hour before.
        jobs: Jobs that were counted.
        hours: Hours in which they came.
        source: Where they are from.
    """

    profile: str
    variation: float
    persistence: float
    jobs: int
    hours: int
    source: str


def arrival_tables(data: Path) -> tuple[list[list[object]], list[Burstiness]]:
    """Return the rows of `arrival_profiles.csv` with their header, and those of `arrival_bursts.csv`."""
    factors: dict[str, NDArray[np.float64]] = {}
    bursts = []
    for name, counts, source in _traces(data):
        factors[name] = weekly_factors(counts)
        variation, persistence = burstiness(counts, factors[name])
        bursts.append(Burstiness(name, variation, persistence, int(counts.sum()), len(counts), source))
    rows = [[hour, *(float(each[hour]) for each in factors.values())] for hour in range(WEEK_H)]
    return [["hour", *factors], *rows], bursts


def weekly_factors(counts: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the factors on the mean rate by hour of the week, (168,), mean 1: of the day times of the hour.

    Days and hours apart need 31 figures in place of 168, each of which would be the mean of a handful of counts.

    Args:
        counts: Jobs in each hour of whole weeks.
    """
    by_week = counts.reshape(-1, WEEK_H // DAY_H, DAY_H) / counts.mean()
    factors = np.outer(by_week.mean(axis=(0, 2)), by_week.mean(axis=(0, 1))).ravel()
    return factors / factors.mean()


def burstiness(counts: NDArray[np.int64], factors: NDArray[np.float64]) -> tuple[float, float]:
    """Return coefficient of variation, and correlation with the hour before, of the rate about its weekly profile.

    Counts that are Poisson about a rate G · m with E[G] = 1 have the variance m + m² · Var[G], and those of two hours
    the covariance m · m' · Cov[G, G']; both are solved for G's, over all hours.
    """
    mean = np.tile(factors, len(counts) // WEEK_H) * counts.mean()
    beyond = counts - mean
    variance = (beyond @ beyond - mean.sum()) / (mean @ mean)
    covariance = (beyond[1:] @ beyond[:-1]) / (mean[1:] @ mean[:-1])
    return float(np.sqrt(variance)), float(covariance / variance)


def _traces(data: Path) -> Iterator[tuple[str, NDArray[np.int64], str]]:
    """Yield name, jobs in each hour of whole weeks, and source of each trace."""
    philly = [row["timestamp"] for row in read_csv(data / "philly" / "philly.csv") if row["timestamp"]]
    times = [datetime.fromisoformat(text).replace(tzinfo=UTC) for text in philly]
    seconds = np.array([(time - PHILLY_BEGINS).total_seconds() for time in times])
    yield "philly", _hourly(seconds, PHILLY_WEEKS), PHILLY_SOURCE
    pods = read_csv(data / "openb_2023" / "openb_pod_list_default.csv")
    seconds = np.array([float(row["creation_time"]) for row in pods]) - OPENB_FIRST_WEEK * WEEK_H * HOUR_S
    yield "openb", _hourly(seconds, OPENB_WEEKS), OPENB_SOURCE


def _hourly(seconds: NDArray[np.float64], weeks: int) -> NDArray[np.int64]:
    inside = seconds[(seconds >= 0.0) & (seconds < weeks * WEEK_H * HOUR_S)]
    return np.bincount((inside // HOUR_S).astype(np.int64), minlength=weeks * WEEK_H)
