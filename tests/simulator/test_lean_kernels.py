"""Lean kernels count no references, whichever function calls first; and what a stored kernel must not outlive."""

import numba
import numpy as np
import pytest

from gpusched_env import kernel as module
from gpusched_env.kernel import kernel, lean_kernel

compiled_only = pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="NUMBA_DISABLE_JIT is set")


@kernel
def makes(n: int) -> float:
    return np.arange(float(n)).sum()


@lean_kernel
def adds(values: np.ndarray) -> float:
    total = 0.0
    for i in range(values.shape[0]):
        total += values[i]
    return total


@lean_kernel
def calls(values: np.ndarray) -> float:
    return adds(values[1:]) + makes(3)


@lean_kernel
def of_rows(values: np.ndarray, out: np.ndarray) -> None:
    for i in range(values.shape[0]):
        out[i] = adds(values[i])


@compiled_only
def test_a_lean_kernel_makes_no_array():
    @lean_kernel
    def wrong(n: int) -> float:
        return np.zeros(n).sum()

    with pytest.raises(numba.core.errors.NumbaError):
        wrong(3)


def test_a_lean_kernel_may_call_one_that_makes_arrays_and_one_of_rows_computes_the_same():
    assert calls(np.array([1.0, 2.0, 4.0])) == 9.0
    assert makes(4) == 6.0
    out = np.zeros(2)
    of_rows(np.arange(6.0).reshape(2, 3), out)
    assert out.tolist() == [3.0, 12.0]


@compiled_only
def test_lean_kernels_call_nothing_that_counts():
    fresh = numba.njit(**module.LEAN)(adds.py_func)  # what is stored on disk cannot be looked into
    fresh(np.ones(3))
    assert "NRT_incref" not in "".join(fresh.inspect_llvm().values())
