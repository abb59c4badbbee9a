"""Gittins' quantum: up to which bin edge a job should run, and what a completion costs on the way."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gpusched_env.kernel import kernel
from gpusched_env.simulator.survival import bin_of

if TYPE_CHECKING:
    from gpusched_env.simulator.survival import Curve

SAME = 1e-12  # quanta whose ratios differ by less, relatively, are equal: then the longest, which interrupts least


@kernel
def best_quantum(curve: Curve, fraction: float, restart: float) -> tuple[float, float]:
    """Find the bin edge ahead to which a run buys completions most cheaply.

    A run from w = `fraction` to the edge x takes ∫ S(y)/S(w) dy from w to x in expectation, and completes the job with
    probability 1 - S(x)/S(w). Their least ratio is 1 / the Gittins index. Jobs end at edges only, so that no other end
    of a run is better.

    Args:
        curve: The survival function.
        fraction: Epochs done, as a fraction of the maximum epochs.
        restart: What a run takes before it begins, likewise.

    Returns:
        The least ratio, as a fraction of the maximum epochs per completion; and the edge, the last of equals. A job
        that should be dead by now is taken to need everything that is left.
    """
    b = bin_of(curve.edges, fraction)
    alive = curve.survival[b]
    if alive <= 0.0:
        return 1.0 - fraction + restart, 1.0
    least, end, spent, bins = np.inf, 1.0, restart * alive, curve.survival.shape[0]
    for k in range(b, bins):
        spent += curve.survival[k] * (curve.edges[k + 1] - max(fraction, curve.edges[k]))
        gone = alive - (curve.survival[k + 1] if k + 1 < bins else 0.0)
        if gone > 0.0 and spent <= least * (1.0 + SAME) * gone:
            least, end = spent / gone, curve.edges[k + 1]
    return least, end
