"""Four policies drive 20 jobs on real Slurm, each on a cluster of its own, side by side: 24 GPUs, time 1:600."""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

from gpusched_operations.live.emulated import EmulatedCluster
from slurm_clusters import needs_slurm
from slurm_comparison import Agreement, agreement, driven, round_length_s, simulated
from slurm_trials import Trial, drawn_jobs
from waiting import eventually

pytestmark = needs_slurm

POLICIES = ("edf", "sts", "sts-x", "agent:default")


def tried(folder: Path, policy: str) -> tuple[Trial, Agreement, dict[str, str], str]:
    """Let a policy drive; return the trial, how far `simulate` agrees, Slurm's states, and what the audit says."""
    with EmulatedCluster(folder / "cluster") as cluster:
        trial = Trial(cluster)
        with trial.driving(policy, "--out", str(folder / "out")) as driver:
            trial.warm_up()
            trial.submit_all(drawn_jobs(20, 1, 2.0))
            eventually(lambda: trial.all_ended() or driver.poll() is not None, 600.0, 0.5)
            trial.wait_for_rounds(2, driver)  # so that the driver hears of the last end
        states = trial.states()
    audit = subprocess.run(
        [sys.executable, "-m", "gpusched_experiments", "audit", str(folder / "out")],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    found = agreement(driven(trial), simulated(trial, policy, folder / "simulated"))
    return trial, found, states, f"{audit.returncode} {audit.stdout}{audit.stderr}"


def test_every_job_ends_once_and_no_two_runs_hold_a_gpu_at_once(tmp_path):
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
        # Shown with -s. How far they agree depends on how long a round takes: see the page.
        sys.stdout.write(
            f"{policy}: same configurations {found.same:.0%}, first ones {found.same_first:.0%}, rank correlation of"
            f" starts {found.rank_correlation:.3f}, starts apart by {np.median(apart_s):.1f} s (median),"
            f" {apart_s.max():.1f} s (most), {np.mean(apart_s <= round_s):.0%} within a round of {round_s:.1f} s;"
            f" first other one: {found.differs_first or 'none'}\n"
        )
