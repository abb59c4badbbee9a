"""GAIA's trace of 1,000 jobs and an hourly signal, in its units: ticks of 5 s, CPUs of 1 W."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from gpusched_baselines.price_rules.rules import HOUR
from gpusched_baselines.price_rules.signal import Signal
from gpusched_env.errors import InputError

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

TICK_S = 5
SHORT_S = 2 * HOUR
"""Jobs shorter than this are in the first of the two queues."""
LIMITS_S = (6 * HOUR, 24 * HOUR)
"""How long jobs of each queue may wait [s]."""
TRACE = "pai_1k.csv"
SKIPPED = {"CISO": 3}
"""Hours at the beginning of a signal that the program did not see. Three hours of CISO in 2022 before its first have no
value; the program counts rows, of which they are none, so it began three hours later than the shipped signal does."""


@dataclass(frozen=True, slots=True, eq=False)
class GaiaTrace:
    """Jobs in the order of arrival.

    Attributes:
        arrival_s: When they arrive [s], whole ticks, (J,).
        length_s: How long they run [s], whole ticks, (J,).
        cpus: CPUs, (J,).
        limit_s: How long they may wait [s], (J,).
        mean_s: Mean length of the jobs of their queue [s], whole ticks, (J,): what a policy knows of the length.
    """

    arrival_s: NDArray[np.float64]
    length_s: NDArray[np.float64]
    cpus: NDArray[np.int64]
    limit_s: NDArray[np.float64]
    mean_s: NDArray[np.float64]


def read_trace(path: Path) -> GaiaTrace:
    """Read a trace with the columns arrival_time [s], length [s] and cpus.

    Raises:
        InputError: It has no such columns.
    """
    rows = _read(path, "arrival_time,length,cpus")
    whole = np.floor(rows[:, :2] / TICK_S) * TICK_S
    short = whole[:, 1] < SHORT_S
    means = [
        np.floor(rows[members, 1].mean() / TICK_S) * TICK_S if members.any() else 0.0
        for members in (rows[:, 1] <= SHORT_S, rows[:, 1] >= SHORT_S)
    ]
    return GaiaTrace(
        arrival_s=whole[:, 0],
        length_s=whole[:, 1],
        cpus=rows[:, 2].astype(np.int64),
        limit_s=np.where(short, *LIMITS_S),
        mean_s=np.where(short, *means),
    )


def read_signal(path: Path) -> Signal:
    """Read an hourly signal [g/kWh] from signal_NAME.csv, from the hour on at which the program began."""
    values = _read(path, "g_per_kwh")[SKIPPED.get(path.stem.removeprefix("signal_"), 0) :, 0]
    return Signal(HOUR * np.arange(len(values), dtype=np.float64), values)


def _read(path: Path, header: str) -> NDArray[np.float64]:
    lines = path.read_text(encoding="utf-8").splitlines()
    if not lines or lines[0].strip() != header or len(lines) < 2:
        raise InputError("files", str(path), f"a table with the columns {header}")
    rows: NDArray[np.float64] = np.loadtxt(lines[1:], delimiter=",", ndmin=2)
    return rows
