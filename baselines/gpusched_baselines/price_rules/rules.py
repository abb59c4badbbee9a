"""When a job starts, or in which hours it runs: the rules of GAIA (Hanafy et al., ASPLOS 2024) and of their sources.

Each is a function of the signal, the present time, the job's length as the rule knows it, and how long the job may
wait. Nothing else is known to them. Lowest-Slot, Lowest-Window and Carbon-Time choose one start; Ecovisor (Souza et
al., ASPLOS 2023) and Wait AWhile (Wiesner et al., Middleware 2021) pause jobs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from gpusched_baselines.price_rules.signal import Signal

HOUR = 3600.0
QUANTILE = 0.3  # Ecovisor runs in hours that are cheaper than this part of the next day
DAY = 24 * HOUR


class StartRule(Protocol):
    """A rule that chooses when a job starts, once and for all."""

    def __call__(self, signal: Signal, now_s: float, length_s: float, limit_s: float) -> float:
        """Return the start [s], from `now_s` to `now_s + limit_s`, of a job of length `length_s` ≥ 0."""
        ...  # pragma: no cover


def at_once(signal: Signal, now_s: float, length_s: float, limit_s: float) -> float:  # noqa: ARG001 - it needs none
    return now_s


def at_limit(signal: Signal, now_s: float, length_s: float, limit_s: float) -> float:  # noqa: ARG001 - nor prices
    return now_s + limit_s


def lowest_slot(signal: Signal, now_s: float, length_s: float, limit_s: float) -> float:  # noqa: ARG001 - no length
    """Start at the first moment with the least value; the length plays no part."""
    edges, values = signal.steps(now_s, np.nextafter(now_s + limit_s, np.inf))
    return float(edges[int(np.argmin(values))])


def lowest_window(signal: Signal, now_s: float, length_s: float, limit_s: float) -> float:
    """Start now or so many whole hours later that the integral over the length is least; of equals the first."""
    starts = _hourly(now_s, limit_s)
    return float(starts[int(np.argmax(_saved(signal, starts, length_s)))])


def carbon_time(signal: Signal, now_s: float, length_s: float, limit_s: float) -> float:
    """Start at the whole hour from now that saves most per second until the end; of equals the first.

    What is saved is the integral over the length from now, less that from the start.
    """
    starts = _hourly(now_s, limit_s)
    return float(starts[int(np.argmax(_saved(signal, starts, length_s) / np.maximum(starts - now_s + length_s, 1.0)))])


def _hourly(now_s: float, limit_s: float) -> NDArray[np.float64]:
    return now_s + HOUR * np.arange(int(np.floor(limit_s / HOUR + 1e-9)) + 1, dtype=np.float64)


def _saved(signal: Signal, starts: NDArray[np.float64], length_s: float) -> NDArray[np.float64]:
    """Return what each start saves against the first, as a part of the largest integral.

    Differences of sums that are only rounding are none.
    """
    sums = signal.integral(starts, starts + length_s)
    return np.round((sums[0] - sums) / max(float(np.max(np.abs(sums))), 1e-300), 12)


def threshold(signal: Signal, now_s: float, part: float = QUANTILE) -> float:
    """Return Ecovisor's threshold: the value that the signal stays at or below for `part` of the 24 hours from now."""
    edges, values = signal.steps(now_s, now_s + DAY)
    order = np.argsort(values, kind="stable")
    until = np.cumsum(np.diff(edges)[order])
    return float(values[order[int(np.searchsorted(until, part * DAY * (1.0 - 1e-12)))]])


def below_threshold(signal: Signal, most: float, now_s: float, waiting_s: float) -> tuple[bool, float]:
    """Return whether an Ecovisor job runs now, and until when that holds.

    It runs while the signal is below `most`, and always once no waiting is left.

    Args:
        waiting_s: How long the job may still wait [s].

    Returns:
        Whether it runs, and the time [s] of the next change: inf for none.
    """
    if waiting_s <= 0.0:
        return True, np.inf
    runs = signal.at(now_s) < most
    later = signal.start_s > now_s
    changes = signal.start_s[later][(signal.value[later] < most) != runs]
    change = float(changes[0]) if len(changes) else np.inf
    return runs, change if runs else min(change, now_s + waiting_s)


def below_threshold_pieces(signal: Signal, now_s: float, length_s: float, limit_s: float) -> list[tuple[float, float]]:
    """List when an Ecovisor job of that length that arrives now runs: begin and end of each piece [s]."""
    most, pieces, time, left, waiting = threshold(signal, now_s), [], now_s, length_s, limit_s
    while left > 0.0:
        runs, until = below_threshold(signal, most, time, waiting)
        until = min(until, time + left) if runs else until
        if runs:
            left -= until - time
            pieces.append((time, until))
        else:
            waiting -= until - time
        time = until
    return joined(pieces)


def cheapest_hours(signal: Signal, now_s: float, length_s: float, end_s: float) -> list[tuple[float, float]]:
    """List when a Wait AWhile job runs: the cheapest parts of the hours from now to `end_s` that sum to its length.

    Of equally cheap hours the earlier ones; of the last hour that is needed its beginning.

    Args:
        length_s: What the job has to run [s]; if that is longer than until `end_s`, it runs on after that.
        end_s: When it should be done [s].

    Returns:
        Begin and end of each piece [s], in order; pieces do not touch.
    """
    if now_s + length_s >= end_s:
        return [(now_s, now_s + length_s)] if length_s > 0.0 else []
    edges, values = signal.steps(now_s, end_s)
    pieces, left = [], length_s
    for k in np.argsort(values, kind="stable").tolist():
        if left <= 0.0:
            break
        part = min(left, float(edges[k + 1] - edges[k]))
        pieces.append((float(edges[k]), float(edges[k]) + part))
        left -= part
    return joined(sorted(pieces))


def joined(pieces: list[tuple[float, float]]) -> list[tuple[float, float]]:
    found: list[tuple[float, float]] = []
    for begin, end in pieces:
        if found and begin <= found[-1][1]:
            found[-1] = (found[-1][0], end)
        else:
            found.append((begin, end))
    return found


def may_start(now_s: float, planned_s: float, gpus: float, reserved_free: float) -> bool:
    return now_s >= planned_s or gpus <= reserved_free
