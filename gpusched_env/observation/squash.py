"""A bounded scale for numbers without bounds."""

from __future__ import annotations

from gpusched_env.kernel import lean_kernel


@lean_kernel
def squash(x: float) -> float:
    """Give x / (1 + |x|)."""
    return x / (1.0 + abs(x))
