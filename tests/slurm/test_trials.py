"""Four policies drive 20 jobs on real Slurm, each on a cluster of its own, side by side: 24 GPUs, time 1:600."""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

from gpusched_operations.live.emulated import EmulatedCluster
from slurm_clusters import needs_slurm
from slurm_trials import Trial, drawn_jobs
from waiting import eventually

pytestmark = needs_slurm

POLICIES = ("edf", "sts", "sts-x", "agent:default")


def tried(folder, policy):
    """Let a policy drive; return the trial, Slurm's states, and the audit's result."""
    with EmulatedCluster(folder / "cluster") as cluster:
        trial = Trial(cluster)
        with trial.driving(policy, "--out", str(folder / "out")) as driver:
            trial.warm_up()
            trial.submit_all(drawn_jobs(20, 1, 2.0))
            eventually(lambda: trial.all_ended() or driver.poll() is not None, 600.0, 0.5)
            trial.wait_for_rounds(2, driver)  # so that the driver hears of the last end
        states = trial.states()
    words = [sys.executable, "-m", "gpusched_experiments", "audit", str(folder / "out")]
    return trial, states, subprocess.run(words, capture_output=True, text=True, check=False)


def test_every_job_ends_once_and_no_two_runs_hold_a_gpu_at_once(tmp_path):
    # One test, so that the four run side by side: they sleep most of the time.
    folders = [tmp_path / policy.partition(":")[0] for policy in POLICIES]
    with ThreadPoolExecutor(len(POLICIES)) as pool:
        trials = list(pool.map(tried, folders, POLICIES))
    for policy, (trial, states, audit) in zip(POLICIES, trials, strict=True):
        trial.check_runs()
        assert {states[name] for name in trial.jobs} == {"COMPLETED"}, policy
        assert audit.returncode == 0, (policy, audit)
