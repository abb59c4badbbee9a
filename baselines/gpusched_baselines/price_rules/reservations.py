"""GPUs of the periods to come that jobs reserve, cheapest first: the plans of CarbonScaler and of capacity curves."""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, eq=False)
class Ladder:
    """Configurations of a job, each larger than the one before, that a plan may use in a period.

    Attributes:
        gpu_type: Index of their GPU type.
        config: Their indices, (K,).
        gpus: GPUs, (K,), rising.
        speed: Epochs per second, (K,), rising.
        rate: Cost rate at the reference price [€/s], (K,).
    """

    gpu_type: int
    config: NDArray[np.int64]
    gpus: NDArray[np.float64]
    speed: NDArray[np.float64]
    rate: NDArray[np.float64]


def scaled(
    ladder: Ladder, price: NDArray[np.float64], length_s: NDArray[np.float64], free: NDArray[np.float64], work: float
) -> tuple[NDArray[np.int64], float]:
    """Plan how large a job is in each period, as CarbonScaler (Hanafy et al., SIGMETRICS 2023) does.

    Steps up the ladder, in all periods, are taken by marginal speed over marginal cost, the best first, as long as the
    steps below it in the period are taken and the GPUs are free. It ends when the work is done.

    Args:
        price: Price of each period, (H,).
        length_s: Length of each period [s], (H,).
        free: Free GPUs in each period, (H,).
        work: Epochs to do.

    Returns:
        The step of each period, (H,), 0 for none, k for `ladder.config[k - 1]`; and the epochs that are not done.
    """
    speed, rate = (np.diff(values, prepend=0.0) for values in (ladder.speed, ladder.rate))
    value = speed / np.maximum(rate, 1e-12)
    steps = np.zeros(len(price), dtype=np.int64)
    heap = [(-value[0] / max(price[h], 1e-12), h) for h in range(len(price)) if ladder.gpus[0] <= free[h]]
    heapq.heapify(heap)
    while heap and work > 0.0:
        _, h = heapq.heappop(heap)
        k = int(steps[h])
        work -= speed[k] * length_s[h]
        steps[h] = k + 1
        if k + 1 < len(value) and ladder.gpus[k + 1] <= free[h]:
            heapq.heappush(heap, (-value[k + 1] / max(price[h], 1e-12), h))
    return steps, max(work, 0.0)


def filled(
    price: NDArray[np.float64], length_s: NDArray[np.float64], free: NDArray[np.float64], gpus: float, seconds: float
) -> NDArray[np.float64]:
    """Fill the cheapest periods with the work of a job; of equally cheap ones the earlier.

    Args:
        price: Price of each period, (H,).
        length_s: Length of each period [s], (H,).
        free: Free GPUs in each period, (H,).
        gpus: Most GPUs that the job uses at a time.
        seconds: What it has to run with them [s].

    Returns:
        Its mean GPUs in each period, (H,).
    """
    found, left = np.zeros(len(price)), gpus * seconds
    for h in np.argsort(price, kind="stable").tolist():
        if left <= 0.0:
            break
        amount = min(left, min(gpus, max(float(free[h]), 0.0)) * float(length_s[h]))
        found[h] = amount / length_s[h]
        left -= amount
    return found
