"""Dither: a traced job's size, blurred within the resolution of its duration, so that it does not disclose φ."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.random import Generator
    from numpy.typing import NDArray

    from gpusched_env.workload.traces.trace import Trace

BITS = 40
"""Bits that are kept of the maximum epochs, to 1e-12 of them: fewer than a division leaves, so that none shows."""


def dithered(epochs: NDArray[np.float64], trace: Trace, resolution_s: float, rng: Generator) -> NDArray[np.float64]:
    """Size jobs as if each had run for its duration + U(-½, ½) · `resolution_s` on the GPUs that it asked for.

    Durations in whole seconds make E · φ · τ whole: of the hundred fractions that φ can be, few others do. Blurred
    evenly over the second that it stands for, every duration between two whole ones is as likely as any other, and so
    says nothing. A duration below the resolution is blurred by half of itself at most, and stays above 0.

    Args:
        epochs: Maximum epochs by the durations as the trace has them, shape (J,).
        trace: The trace; on how many GPUs its jobs run here, and how many they asked for.
        resolution_s: Unit in which the trace gives durations [s], > 0.
        rng: Randomness.

    Returns:
        Maximum epochs, shape (J,).
    """
    asked = trace.gpus if trace.asked_gpus is None else trace.asked_gpus
    recorded_s = trace.duration_s * (trace.gpus / asked)
    most = np.minimum(resolution_s, recorded_s) / recorded_s
    mantissa, exponent = np.frexp(epochs * (1.0 + rng.uniform(-0.5, 0.5, len(trace)) * most))
    blurred: NDArray[np.float64] = np.ldexp(np.round(np.ldexp(mantissa, BITS)), exponent - BITS)
    return blurred
