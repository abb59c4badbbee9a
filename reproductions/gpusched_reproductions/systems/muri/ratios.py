"""Completion times and makespans of AntMan over those of rules that preempt, on Muri's traces."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpusched_baselines import AntMan, IndexRule, Tiresias
from gpusched_env import Result, simulate
from gpusched_reproductions.systems.muri.traces import Sharing, TraceJob, muri_instance, path_of, read_trace

if TYPE_CHECKING:
    from collections.abc import Sequence

NAMES = ("1", "1'", "2", "2'", "3", "3'", "4", "4'")
"""Muri's traces; those with a ' are the same jobs, all submitted at once."""
COMPLETION = dict(zip(NAMES, (1.644, 1.417, 2.116, 1.721, 0.880, 1.208, 1.677, 1.749), strict=True))
MAKESPAN = dict(zip(NAMES, (0.8366, 0.8275, 0.9863, 0.9924, 1.0000, 0.7986, 0.8312, 0.8263), strict=True))
"""Mean completion with AntMan over that with Tiresias, and makespan over that with SRTF: raw data of Muri's figures 9
and 10 (github.com/pkusys/Muri, simulator/draw_fig9-10.py)."""

TOLERANCE = 0.2
"""Relative deviation from the published ratio that counts as agreement."""
ALL_BUSY = 1e9
"""The limit M of these simulations, in which every GPU with a guaranteed job may have an opportunistic one."""


@dataclass(frozen=True, slots=True)
class Ratios:
    """Ours for a trace.

    Attributes:
        completion: Mean completion with AntMan over that with Tiresias.
        makespan: Makespan with AntMan over that with SRTF.
        antman: The run with AntMan.
    """

    completion: float
    makespan: float
    antman: Result


def named_trace(name: str) -> list[TraceJob]:
    """Read the trace with one of the `NAMES`."""
    return read_trace(path_of(int(name[0])), at_once=name.endswith("'"))


def ratios(jobs: Sequence[TraceJob], sharing: Sharing = "pairs") -> Ratios:
    """Simulate a trace with AntMan, Tiresias and SRTF.

    Args:
        jobs: The jobs of the trace.
        sharing: How opportunistic jobs are slowed: by pairs, as Muri does, or by utilisation, as this project does.
    """
    shared, alone = (muri_instance(list(jobs), each, needs=False) for each in (sharing, "alone"))
    antman = simulate(shared, AntMan(most_busy=ALL_BUSY, promotes=False))
    tiresias = simulate(alone, Tiresias(), record=False)
    # Work per weight is time here, since weights are proportional to GPUs: the shortest remaining time first.
    srtf = simulate(alone, IndexRule("srtf", "worst-case"), record=False)
    return Ratios(
        antman.mean_completion_s / tiresias.mean_completion_s, _makespan_s(antman) / _makespan_s(srtf), antman
    )


def _makespan_s(result: Result) -> float:
    return float(result.completion_s.max() - result.instance.jobs.submission_s.min())
