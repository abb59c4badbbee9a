"""Processes of a driver: one that is stuck is ended, and a command that outlives it keeps its lock."""

import subprocess
import sys
from dataclasses import replace
from functools import partial

import pytest

from gpusched_env.errors import RunError
from gpusched_operations.live import lease as leases
from gpusched_operations.live.lease import DRIVER_LOCK, Lease, locked
from gpusched_operations.live.slurm_commands import Done, run_command


def test_a_driver_that_is_stuck_is_ended_and_no_other_process():
    stuck = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    try:
        lease = replace(Lease.mine(1.0), pid=stuck.pid, began=leases._began(stuck.pid) + 1)
        assert lease.end_driver()  # its number belongs to another process now
        with pytest.raises(subprocess.TimeoutExpired):
            stuck.wait(0.3)
        assert replace(lease, began=leases._began(stuck.pid)).end_driver()
        assert stuck.wait(120) == -9
    finally:
        stuck.kill()
        stuck.wait()
    assert Lease.mine(1.0).end_driver()  # never itself


def test_a_command_that_outlives_its_driver_keeps_the_lock(tmp_path):
    lock = locked(tmp_path / DRIVER_LOCK, "busy")
    program = "import sys; sys.stdout.write('x'); sys.stdout.flush(); sys.stdin.read()"
    run = partial(run_command, keeps_open=(lock.fileno(),))
    with pytest.raises(TimeoutError):
        run(["sleep", "60"], "", 0.05)
    child = subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, pass_fds=(lock.fileno(),)
    )
    assert child.stdout is not None
    child.stdout.read(1)
    lock.close()  # as if the driver were killed
    with pytest.raises(RunError, match="busy"):
        locked(tmp_path / DRIVER_LOCK, "busy")
    child.communicate()
    locked(tmp_path / DRIVER_LOCK, "busy").close()


def test_a_command_has_the_files_that_it_is_to_keep(tmp_path):
    with (tmp_path / "lock").open("w") as file:
        words = ["ls", "-l", "/proc/self/fd"]
        assert "/lock" not in run_command(words, "", 300.0).output
        assert "/lock" in run_command(words, "", 300.0, keeps_open=(file.fileno(),)).output


def test_a_command_that_takes_too_long_is_ended():
    with pytest.raises(TimeoutError):
        run_command(("sleep", "60"), "", 0.05)
    assert run_command(("cat",), "x", 300.0) == Done(0, "x", "")
