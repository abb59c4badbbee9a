"""Test clusters of Slurm: where it is not installed, tests that need one are skipped."""

import pytest

from gpusched_operations.live.emulated import PACKAGES, EmulatedCluster, missing_programs

needs_slurm = pytest.mark.skipif(bool(missing_programs()), reason=f"Slurm is not installed (Debian: {PACKAGES})")


def states(cluster: EmulatedCluster) -> dict[str, str]:
    lines = cluster.run("squeue", "--noheader", "--states=all", "--format=%i %T").splitlines()
    return dict(line.split() for line in lines)


def state(cluster: EmulatedCluster, job: str) -> str:
    return states(cluster).get(job, "")
