"""Completion times and makespans of AntMan over those of rules that preempt, on Muri's traces."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpusched_baselines import AntMan, IndexRule, Tiresias
from gpusched_env import Result, simulate
from gpusched_reproductions.systems.muri.traces import TraceJob, muri_instance, path_of, read_trace

if TYPE_CHECKING:
    from collections.abc import Sequence

NAMES = ("1", "1'", "2", "2'", "3", "3'", "4", "4'")
"""Muri's traces; those with a ' are the same jobs, all submitted at once."""
COMPLETION = dict(zip(NAMES, (1.644, 1.417, 2.116, 1.721, 0.880, 1.208, 1.677, 1.749), strict=True))
MAKESPAN = dict(zip(NAMES, (0.8366, 0.8275, 0.9863, 0.9924, 1.0000, 0.7986, 0.8312, 0.8263), strict=True))
"""Mean completion with AntMan over that with Tiresias, and makespan over that with SRTF: raw data of Muri's figures 9
and 10 (github.com/pkusys/Muri, simulator/draw_fig9-10.py)."""

ALL_BUSY = 1e9
"""The limit M of these simulations, in which every GPU with a guaranteed job may have an opportunistic one."""


@dataclass(frozen=True, slots=True)
class Ratios:
    """Ours for a trace, where opportunistic jobs are slowed by utilisation.

    Attributes:
        completion: Mean completion with AntMan over that with Tiresias.
        makespan: Makespan with AntMan over that with SRTF.
    """

    completion: float
    makespan: float


def named_trace(name: str) -> list[TraceJob]:
    return read_trace(path_of(int(name[0])), at_once=name.endswith("'"))


def ratios(jobs: Sequence[TraceJob]) -> Ratios:
    alone = muri_instance(list(jobs), "alone", needs=False)
    tiresias_s = simulate(alone, Tiresias(), record=False).mean_completion_s
    # Work per weight is time here, since weights are proportional to GPUs: the shortest remaining time first.
    srtf_s = _makespan_s(simulate(alone, IndexRule("srtf", "worst-case"), record=False))
    policy = AntMan(most_busy=ALL_BUSY, promotes=False)
    shared = simulate(muri_instance(list(jobs), "utilisation", needs=False), policy, record=False)
    return Ratios(shared.mean_completion_s / tiresias_s, _makespan_s(shared) / srtf_s)


def _makespan_s(result: Result) -> float:
    return float(result.completion_s.max() - result.instance.jobs.submission_s.min())
