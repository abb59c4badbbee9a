"""A driver that is killed at random moments and started again: it is forked off a process that has loaded all it needs.

Arguments: policy, file of rules, folder of its state, folder of reports, number of kills, seed. After the last one it
drives until it is told to end.
"""

import os
import signal
import sys
import time
from pathlib import Path

import numpy as np

from gpusched_operations.live.acting import DriveSettings
from gpusched_operations.live.asking import Ask, decider_of, key_of
from gpusched_operations.live.driver import Driver
from gpusched_operations.live.driving import DriveOptions, Stopped, drive
from gpusched_operations.live.job_rules import JobRules
from gpusched_operations.live.progress_reports import ProgressReports
from gpusched_operations.live.slurm_commands import SlurmControl


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def forked(settings: DriveSettings, rules: JobRules, ask: Ask, options: DriveOptions) -> int:
    """Start a driver in a process of its own; return its process id."""
    pid = os.fork()
    if pid:
        return pid

    def stop(_number: int, _frame: object) -> None:
        raise Stopped

    signal.signal(signal.SIGTERM, stop)
    try:
        drive(settings, rules, ask, options, say)
    except Stopped:
        os._exit(0)
    finally:
        os._exit(1)


def main(policy: str, rules_file: str, state: str, progress: str, kills: str, seed: str) -> None:
    folder, rules, rng = Path(state), JobRules.load(Path(rules_file)), np.random.default_rng(int(seed))
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    settings = DriveSettings("gpu", policy, every_s=5.0, poll_s=0.5)
    ask = decider_of(policy, key_of(folder)).ask
    dry = Driver(
        settings, rules, SlurmControl(dry=True), ask, folder, lambda *_, **__: None, ProgressReports(Path(progress))
    )
    dry.decide(dry.observe())
    options = DriveOptions(folder, progress=Path(progress))
    for number in range(int(kills)):
        pid = forked(settings, rules, ask, options)
        time.sleep(rng.uniform(0.3, 3.0))
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        say(f"killed {number + 1}")
    last = forked(settings, rules, ask, options)
    signal.signal(signal.SIGTERM, lambda *_: os.kill(last, signal.SIGTERM))
    say("the last one drives")
    _, status = os.waitpid(last, 0)
    sys.exit(os.waitstatus_to_exitcode(status))


if __name__ == "__main__":
    main(*sys.argv[1:])
