"""Pairs of jobs that were measured on one GPU."""

from __future__ import annotations

import json
import statistics
from dataclasses import dataclass
from functools import cache
from pathlib import Path

GAVEL = Path("../shared/data/gavel")
"""Where Gavel's throughputs (MIT) are looked for; they are not part of the project."""


@dataclass(frozen=True, slots=True)
class Pair:
    """Two jobs on one GPU of a type, as they were measured sharing it by default.

    Attributes:
        first: The job that comes first where there are priorities, as Gavel names it.
        other: The other one.
        slowdown: Factor on the time of the first beside the other, ≥ 1.
        other_slowdown: Factor on the time of the other beside the first, ≥ 1.
        duty: Part of the time for which the first keeps the GPU busy alone: half its slow-down beside itself.
        other_duty: The same of the other.
    """

    first: str
    other: str
    slowdown: float
    other_slowdown: float
    duty: float
    other_duty: float


@cache
def measured_pairs(gpu: str) -> tuple[Pair, ...]:
    """List the ordered pairs in which both jobs made progress on a GPU type, `V100` or `P100`.

    A model that was not run beside itself has the median of the duties of the others.
    """
    table = json.loads((GAVEL / "physical_cluster_throughputs.json").read_text(encoding="utf-8"))[gpu.lower()]
    single = [key for key in table if key.endswith(", 1)")]
    slowdowns = {
        (one, other): max(1.0, float(table[one]["null"]) / float(table[one][other][0]))
        for one in single
        for other in single
        if min(table[one].get(other, (0.0,))) > 0.0
    }
    duties = {one: min(1.0, slowdown / 2.0) for (one, other), slowdown in slowdowns.items() if one == other}
    middle = statistics.median(duties.values())
    return tuple(
        Pair(
            one, other, slowdown, slowdowns.get((other, one), slowdown), duties.get(one, middle),
            duties.get(other, middle),
        )
        for (one, other), slowdown in slowdowns.items()
    )  # fmt: skip
