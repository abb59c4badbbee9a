"""Test clusters of Slurm: where it is not installed, tests that need one are skipped."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

import pytest

from gpusched_experiments.live.emulated import PACKAGES, EmulatedCluster, missing_programs

Value = TypeVar("Value")

needs_slurm = pytest.mark.skipif(bool(missing_programs()), reason=f"Slurm is not installed (Debian: {PACKAGES})")


def eventually(value: Callable[[], Value], within_s: float = 60.0, every_s: float = 0.1) -> Value:
    """Return the first true value that a function returns; fail if there is none in time."""
    by_s = time.monotonic() + within_s
    while True:
        found = value()
        if found or time.monotonic() > by_s:
            assert found, f"not within {within_s:g} s"
            return found
        time.sleep(every_s)


def states(cluster: EmulatedCluster) -> dict[str, str]:
    """Return the state of each job in Slurm's words, ended ones too."""
    lines = cluster.run("squeue", "--noheader", "--states=all", "--format=%i %T").splitlines()
    return dict(line.split() for line in lines)


def state(cluster: EmulatedCluster, job: str) -> str:
    """Return the state of a job in Slurm's words."""
    return states(cluster).get(job, "")
