"""Types of the arrays that kernels take, and generators of random numbers from their states."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]
Singles: TypeAlias = NDArray[np.float32]
Ints: TypeAlias = NDArray[np.int64]
Mask: TypeAlias = NDArray[np.int8]


def generator_of(state: Any) -> np.random.Generator:
    """Make the PCG64 generator whose `bit_generator.state` was this, in the form that JSON can hold."""
    bits = np.random.PCG64(0)
    bits.state = state
    return np.random.Generator(bits)
