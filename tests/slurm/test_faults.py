"""A driver on real Slurm, and all that goes wrong there: nothing runs twice, nothing is lost, nothing stays held."""

import itertools
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpusched_operations.live.acting import DriveSettings
from gpusched_operations.live.asking import decider_of
from gpusched_operations.live.driver import Driver
from gpusched_operations.live.emulated import EmulatedCluster
from gpusched_operations.live.emulated_processes import end, processes
from gpusched_operations.live.job_rules import JobRules
from gpusched_operations.live.progress_reports import ProgressReports
from gpusched_operations.live.slurm_commands import SlurmControl
from slurm_clusters import needs_slurm
from slurm_trials import Trial, TrialJob, drawn_jobs, journal_of
from waiting import eventually

pytestmark = needs_slurm


@pytest.fixture
def trial(tmp_path: Path) -> Iterator[Trial]:
    with EmulatedCluster(tmp_path / "cluster") as cluster:
        trial = Trial(cluster)
        try:
            yield trial
        finally:
            if (trial.folder / "driver.log").exists():
                sys.stdout.write(trial.said()[-2000:])  # shown where a test fails
            end(processes(((f"SLURM_CONF={cluster.conf}"),)))  # watchdogs


def lasting(most: float, **more: object) -> TrialJob:
    """Return a job of so many epochs; an epoch takes about a second on an A100."""
    return TrialJob(most=most, needs=most, **more)  # type: ignore[arg-type]


def held(trial: Trial) -> list[str]:
    lines = trial.cluster.run("squeue", "--noheader", "--format=%i %r").splitlines()
    return [line.split()[0] for line in lines if "held" in line or "JobHeld" in line]


def test_driver_killed_at_twenty_random_moments(trial):
    for job in drawn_jobs(24, 2, 0.0):
        trial.submit(job)
    script = Path(__file__).parents[1] / "support" / "killed_driver.py"
    words = [sys.executable, str(script), "sts", str(trial.rules), str(trial.state), str(trial.progress), "20", "5"]
    with (trial.folder / "driver.log").open("wb") as log:
        driver = subprocess.Popen(words, env=trial.environment, cwd=trial.folder, stdout=log, stderr=log)
    ready = "the last one drives"
    eventually(lambda: (trial.all_ended() and ready in trial.said()) or driver.poll() is not None, 600.0, 0.5)
    trial.wait_for_rounds(1, driver)
    driver.send_signal(signal.SIGTERM)
    assert driver.wait(300.0) == 0
    assert trial.said().count("\nkilled ") == 20
    trial.check_runs()


def test_watchdog_releases_what_a_driver_left_that_is_killed_for_good(trial):
    for _ in range(30):  # more than there are GPUs
        trial.submit(lasting(20.0))
    other = trial.cluster.submit("--hold", "--gres=gpu:1", "--output=/dev/null", "--wrap=true")
    driver = trial.driver("edf", "--lease", "0.25")
    trial.wait_for_rounds(1, driver)
    driver.send_signal(signal.SIGKILL)
    driver.wait()
    eventually(lambda: held(trial) == [other])
    eventually(lambda: len({event.job for event in trial.events()}) == 30)  # Slurm starts them by itself


def test_controller_restarted_and_a_node_down_and_back(trial):
    with trial.driving("edf") as driver:
        trial.warm_up()
        for _ in range(12):
            trial.submit(lasting(12.0))
        eventually(lambda: len({event.job for event in trial.events()}) >= 8)
        trial.cluster.restart_controller()
        down = next(event.node for event in trial.events() if event.kind == "start")
        trial.cluster.crash_node(down)
        eventually(lambda: trial.cluster.node_states()[down] == "down*")
        after_s = time.time()
        trial.submit(lasting(3.0))
        eventually(lambda: any(e.kind == "start" and e.at_s > after_s for e in trial.events()))
        assert all(e.node != down for e in trial.events() if e.kind == "start" and e.at_s > after_s)
        trial.cluster.start_node(down)
        eventually(trial.all_ended, every_s=0.5)
        assert driver.poll() is None
    trial.check_runs()


def test_users_cancel_hold_and_change_limits_and_jobs_fail_or_say_nothing(trial):
    def state(job: str) -> str:
        return trial.states()[job]

    with trial.driving("sts") as driver:
        trial.warm_up()
        cancelled = trial.submit(lasting(500.0))
        limited = trial.submit(lasting(500.0))
        fails = trial.submit(lasting(20.0, fails_at=3.0))
        silent = trial.submit(lasting(5.0, reports=False))
        whole = trial.submit(lasting(4.0, checkpoints=False))
        waits = trial.submit(lasting(3.0), "--nodelist=v100-1", "--begin=now+1hour")
        stranger = trial.submit(lasting(2.0), opted_in=False)
        strangers_hold = trial.submit(lasting(2.0), "--hold", opted_in=False)
        eventually(lambda: state(cancelled) == state(limited) == "RUNNING")
        trial.cluster.run("scancel", cancelled)
        trial.cluster.run("scontrol", "update", f"JobId={limited}", "TimeLimit=1")  # a minute
        eventually(lambda: state(cancelled) == "CANCELLED")
        eventually(lambda: state(fails) == "FAILED")
        eventually(lambda: state(silent) == state(whole) == state(stranger) == "COMPLETED")
        eventually(lambda: state(limited) == "TIMEOUT")
        # Whoever holds a job of his while it waits finds it held for as long as he wants.
        places = (("a100-1", 8), ("a100-2", 8), ("v100-1", 4), ("v100-2", 4))
        sleeping = ("sbatch", "--parsable", "--output=/dev/null", "--wrap=sleep 3000")
        blockers = [
            trial.cluster.run(*sleeping, f"--gres=gpu:{gpus}", f"--nodelist={node}").strip() for node, gpus in places
        ]
        eventually(lambda: {state(each) for each in blockers} == {"RUNNING"})
        kept = trial.submit(lasting(2.0))
        trial.cluster.run("scontrol", "uhold", kept)
        trial.wait_for_rounds(2, driver)
        assert (state(kept), state(strangers_hold), state(waits)) == ("PENDING", "PENDING", "PENDING")
        assert driver.poll() is None
        for each in blockers:
            trial.cluster.run("scancel", each)
    runs = [event for event in trial.events() if event.kind in ("end", "failed")]
    assert len({event.job for event in runs}) == len(runs)
    assert not [event for event in trial.events() if event.kind == "overlap"]
    assert [event.job for event in runs if event.kind == "failed"] == [fails]


def test_scontrol_that_is_slow_or_refuses(trial, tmp_path):
    wrapper = tmp_path / "bin" / "scontrol"
    wrapper.parent.mkdir()
    # Every third call fails as when the controller does not answer, some are refused, the others are slow.
    count = tmp_path / "count"
    real = next(
        path for folder in trial.environment["PATH"].split(os.pathsep) if (path := Path(folder, "scontrol")).exists()
    )
    wrapper.write_text(
        f"#!/bin/bash\necho x >> {count}; n=$(wc -l < {count})\n"
        'fail() { echo "$1" >&2; exit 1; }\n'
        '[ $((n % 3)) = 0 ] && fail "Unable to contact slurm controller (connect failure)"\n'
        '[ $((n % 7)) = 1 ] && fail "Access/permission denied"\n'
        f'sleep 0.3; exec {real} "$@"\n'
    )
    wrapper.chmod(0o755)
    with trial.driving("edf", path=str(wrapper.parent)) as driver:
        trial.warm_up()
        for _ in range(10):
            trial.submit(lasting(6.0))
        eventually(trial.all_ended, 600.0, 0.5)
        assert driver.poll() is None
    trial.check_runs()
    assert len(count.read_text()) // 2 > 10


def test_a_hundred_jobs_at_once(trial):
    path = trial.folder / "many.sh"
    comment = lasting(1.0).comment.replace("gpus=1,2", "gpus=1")
    path.write_text(
        "for i in $(seq 100); do sbatch --parsable --hold --gres=gpu:1 --output=/dev/null --requeue"
        f" --comment='{comment}' --wrap='exec sleep 0.2' & [ $((i % 20)) = 0 ] && wait; done; wait\n"
    )
    with trial.driving("edf") as driver:
        trial.warm_up()
        done = subprocess.run(
            ["/bin/bash", str(path)], env=trial.environment, capture_output=True, text=True, check=True
        )
        names = done.stdout.split()
        assert len(set(names)) == 100
        eventually(lambda: driver.poll() is not None or not {*names} - trial.completed(), 600.0, 1.0)
        assert driver.poll() is None
    started = [event for event in journal_of(trial) if event["kind"] == "start" and event["job"] in names]
    assert sorted(str(event["job"]) for event in started) == sorted(names)  # each once


def test_clock_of_the_driver_steps(trial, tmp_path, monkeypatch):
    step_s = [0.0]
    for name in ("SLURM_CONF", "PATH"):
        monkeypatch.setenv(name, trial.environment[name])
    settings = DriveSettings("gpu", "edf", every_s=5.0, poll_s=0.5)
    (tmp_path / "state").mkdir()
    driver = Driver(
        settings,
        JobRules.load(trial.rules),
        SlurmControl(),
        decider_of("edf", b"k" * 32).ask,
        tmp_path / "state",
        lambda _kind, **_fields: None,
        ProgressReports(trial.progress),
        clock=lambda: time.time() + step_s[0],
    )
    for _ in range(30):
        trial.submit(lasting(4.0))
    steps = itertools.cycle([0.0, 3600.0, 0.0, -3600.0, 0.0, 40.0])

    def ended_after_a_round() -> bool:
        step_s[0] = next(steps)
        driver.round()
        driver.wait(1.0)
        return trial.all_ended()

    eventually(ended_after_a_round, 600.0)
    assert not driver.finish()
    trial.check_runs()
