"""Speed factors of GPU types that were not measured, from the vendors' data sheets; and how far that rule is off."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass(frozen=True, slots=True)
class Sheet:
    """Two peaks of one GPU, by its data sheet.

    Args:
        tflops: Dense half-precision TFLOPS (BF16 or FP16), of the tensor cores where there are some; of a K80 chip,
            which has neither, single precision.
        gb_per_s: Memory bandwidth [GB/s].
        tensor_cores: Whether it has them.
    """

    tflops: float
    gb_per_s: float
    tensor_cores: bool = True

    @property
    def index(self) -> float:
        """Return the geometric mean of the two peaks: what the rule takes for the speed."""
        return math.sqrt(self.tflops * self.gb_per_s)


SHEETS = {
    "K80": Sheet(4.37, 240.0, tensor_cores=False),
    "P100": Sheet(21.2, 732.0, tensor_cores=False),
    "V100": Sheet(125.0, 900.0),
    "T4": Sheet(65.0, 320.0),
    "A100": Sheet(312.0, 1555.0),
    "H100": Sheet(989.0, 3350.0),
    "H200": Sheet(989.0, 4800.0),
    "A10": Sheet(125.0, 600.0),
    "L4": Sheet(121.0, 300.0),
    "L40S": Sheet(362.0, 864.0),
}
UNMEASURED = ("A10", "L4")
BY_MLPERF = ("H100", "H200", "L40S")
"""Types whose factor is MLPerf's, for which the rule is only checked."""


def data_sheet_factors(measured: dict[str, float]) -> dict[str, float]:
    """Return the speed against a V100 of every unmeasured type.

    It is the factor of the nearest measured type with tensor cores, times the ratio of the two indices. The nearest is
    the one with the closest index.

    Args:
        measured: Single-GPU speed against a V100, by measured GPU type.
    """
    return {gpu: _predicted(gpu, measured) for gpu in UNMEASURED}


def data_sheet_report(measured: dict[str, float], by_mlperf: dict[str, float]) -> Iterator[str]:
    """Yield a line for every type: predicted factor; for measured ones, by the others, with its error.

    The last figure of each line is what the ratio of memory bandwidths alone would say.
    """
    for gpu in (*measured, *BY_MLPERF, *UNMEASURED):
        donor = nearest_with_tensor_cores(gpu, measured)
        predicted = _predicted(gpu, measured)
        bandwidth = measured[donor] * SHEETS[gpu].gb_per_s / SHEETS[donor].gb_per_s
        line = f"data sheet speed of one {gpu} against one V100, from {donor}: {predicted:.3f}"
        actual = measured.get(gpu, by_mlperf.get(gpu))
        if actual is not None:
            line += f", measured {actual:.3f}: {predicted / actual - 1.0:+.0%}"
            line += f" (by bandwidth alone {bandwidth:.3f}: {bandwidth / actual - 1.0:+.0%})"
        else:
            line += f" (by bandwidth alone {bandwidth:.3f})"
        yield line


def nearest_with_tensor_cores(gpu: str, measured: dict[str, float]) -> str:
    """Return the measured type with tensor cores, other than `gpu`, whose index is nearest to that of `gpu`."""
    index = SHEETS[gpu].index
    others = [other for other in measured if other != gpu and SHEETS[other].tensor_cores]
    return min(others, key=lambda other: (abs(math.log(SHEETS[other].index / index)), other))


def _predicted(gpu: str, measured: dict[str, float]) -> float:
    donor = nearest_with_tensor_cores(gpu, measured)
    return measured[donor] * SHEETS[gpu].index / SHEETS[donor].index
