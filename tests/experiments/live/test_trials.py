"""Four policies drive 40 jobs on real Slurm, each on a cluster of its own, side by side: 24 GPUs, time 1:600."""

from __future__ import annotations

import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from gpusched_experiments.live.emulated import EmulatedCluster
from slurm_clusters import eventually, needs_slurm
from slurm_comparison import Agreement, agreement, driven, round_length_s, simulated
from slurm_trials import Trial, drawn_jobs

POLICIES = ("edf", "sts", "sts-x", "agent:default")


def tried(folder: Path, policy: str) -> tuple[Trial, Agreement, dict[str, str], str]:
    """Let a policy drive; return the trial, how far `simulate` agrees, Slurm's states, and what the audit says."""
    with EmulatedCluster(folder / "cluster") as cluster:
        trial = Trial(cluster)
        with trial.driving(policy, "--out", str(folder / "out")) as driver:
            trial.warm_up()
            trial.submit_all(drawn_jobs(40, 1, 2.0))
            eventually(lambda: trial.all_ended() or driver.poll() is not None, 400.0, 0.5)
            time.sleep(3.0)  # so that the driver hears of the last end
        states = trial.states()
    audit = subprocess.run(
        [sys.executable, "-m", "gpusched_experiments", "audit", str(folder / "out")],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    found = agreement(driven(trial), simulated(trial, policy, folder / "simulated"))
    return trial, found, states, f"{audit.returncode} {audit.stdout}{audit.stderr}"


@needs_slurm
@pytest.mark.slow
def test_every_job_ends_once_and_simulate_gives_nearly_the_same_schedule(tmp_path: Path) -> None:
    # One test, so that the four run side by side: they sleep most of the time.
    folders = [tmp_path / policy.partition(":")[0] for policy in POLICIES]
    with ThreadPoolExecutor(len(POLICIES)) as pool:
        trials = list(pool.map(tried, folders, POLICIES))
    for policy, (trial, found, states, audit) in zip(POLICIES, trials, strict=True):
        trial.check_runs()
        assert {states[name] for name in trial.jobs} == {"COMPLETED"}, policy
        assert audit.startswith("0 "), (policy, audit)
        round_s = round_length_s(trial)
        apart_s = np.abs(found.differences_s)
        sys.stdout.write(  # shown with -s, and when something fails
            f"{policy}: same configurations {found.same:.0%}, first ones {found.same_first:.0%}, rank correlation of"
            f" starts {found.rank_correlation:.3f}, starts apart by {np.median(apart_s):.1f} s (median),"
            f" {apart_s.max():.1f} s (most), {np.mean(apart_s <= round_s):.0%} within a round of {round_s:.1f} s;"
            f" first other one: {found.differs_first or 'none'}\n"
        )
        # A round takes seconds, hours of the model, and what comes meanwhile is decided together: see the page.
        assert found.rank_correlation > 0.8, policy
        assert np.median(apart_s) < round_s, policy
    # EDF stops nothing: no decision rests on how far a job is.
    assert trials[0][1].same_first > 0.5
