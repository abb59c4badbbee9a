"""A lease: a driver that made no round, and looked at Slurm in vain, for so long has lost it; a watchdog undoes all.

Ages are taken from the clock of the machine since it started, which no change of the time of day moves. The watchdog is
a process of its own, which survives the driver. It ends a driver that is stuck before it undoes anything: two never act
at once.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO

from gpusched_env.errors import InputError, RunError
from gpusched_env.files import write_atomically
from gpusched_env.parsing import parse_json
from gpusched_operations.live.drive_state import DriveState
from gpusched_operations.live.journal import Journal
from gpusched_operations.live.releasing import release_all
from gpusched_operations.live.slurm_commands import SlurmControl

LEASE_FILE, DRIVER_LOCK, WATCHDOG_LOCK = "lease.json", "driver.lock", "watchdog.lock"
JOURNAL = "journal"
RUN_FOLDER = Path("/run/gpusched")
SLURM_CONF = "/etc/slurm/slurm.conf"
LOOK_S = 5.0
END_S = 10.0


@dataclass(frozen=True, slots=True)
class Lease:
    """Who drives, and when it last made a round, or Slurm last answered it between two.

    Attributes:
        pid: Its process.
        began: When that process began, in ticks since the machine started: another one may have its number later.
        boot: The start of the machine that `beat_s` is of.
        beat_s: When that was [s since the machine started].
        lease_s: The lease [s].
        over: Whether all is undone.
    """

    pid: int
    began: int
    boot: str
    beat_s: float
    lease_s: float
    over: bool = False

    @classmethod
    def mine(cls, lease_s: float, *, over: bool = False) -> Lease:
        return cls(os.getpid(), _began(os.getpid()), _boot(), time.monotonic(), lease_s, over)

    def save(self, folder: Path) -> None:
        write_atomically(folder / LEASE_FILE, json.dumps(asdict(self)))

    @classmethod
    def load(cls, folder: Path) -> Lease | None:
        try:
            return cls(**parse_json((folder / LEASE_FILE).read_bytes()))
        except (OSError, ValueError, TypeError):
            return None

    def is_lost(self) -> bool:
        return self.boot != _boot() or time.monotonic() - self.beat_s > self.lease_s

    def end_driver(self) -> bool:
        if self.pid == os.getpid() or self.boot != _boot() or _began(self.pid) != self.began:
            return True
        with suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        until_s = time.monotonic() + END_S
        while _began(self.pid) == self.began and time.monotonic() < until_s:
            time.sleep(0.05)
        return _began(self.pid) != self.began


def locked(path: Path, whose: str) -> IO[bytes]:
    """Take a lock that lasts as long as the returned file is open, and no longer than this process."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        file = os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600), "rb+")
        if os.geteuid() == 0:  # a folder of another user, who must be able to lock it, too
            owner = path.parent.stat()
            with suppress(PermissionError):
                os.fchown(file.fileno(), owner.st_uid, owner.st_gid)
    except OSError as error:
        raise InputError("--state", str(path), f"a place that can be written ({error.strerror})") from error
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        file.close()
        raise RunError(f"{whose} ({path})") from None
    return file


def partition_lock(partition: str, environment: Mapping[str, str] = os.environ) -> Path:
    """Return the lock of a partition on this machine, whichever folder its state is in.

    It lies where only its user writes: /run/gpusched if that can be written, else in the user's folder of states.
    """
    conf = Path(environment.get("SLURM_CONF") or SLURM_CONF).resolve()
    name = hashlib.sha256(f"{conf} {partition}".encode()).hexdigest()[:16]
    private = RUN_FOLDER.is_dir() and os.access(RUN_FOLDER, os.W_OK) and not RUN_FOLDER.stat().st_mode & 0o022
    return (RUN_FOLDER if private else Path.home() / ".local/state/gpusched") / f"drive-{name}.lock"


def start_watchdog(folder: Path, partition: str, lease_s: float, environment: Mapping[str, str] | None = None) -> int:
    words = [sys.executable, "-m", "gpusched_experiments", "slurm", "release", "--watch", "--until-over"]
    words += ["--partition", partition, "--state", str(folder), "--lease", f"{lease_s / 60.0:g}"]
    with (folder / "watchdog.log").open("ab") as log:
        started = subprocess.Popen(  # noqa: S603 - this program itself
            words, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
        )
    started.returncode = 0  # it is not waited for: it outlives this process
    return started.pid


def release_now(folder: Path, partition: str, commands: SlurmControl, why: str) -> list[str]:
    with locked(folder / DRIVER_LOCK, "a driver is at work: stop it first"):
        state, done = DriveState.load(folder, partition), []
        if state.jobs:
            with Journal(folder / JOURNAL) as journal:
                done = release_all(folder, state, commands, journal.append, clock=time.time, pause=time.sleep, why=why)
        Lease.mine(0.0, over=True).save(folder)
        return done


def watch(
    folder: Path,
    partition: str,
    lease_s: float,
    commands: SlurmControl,
    *,
    until_over: bool = False,
    say: Callable[[str], None] = print,
    pause: Callable[[float], None] = time.sleep,
) -> None:
    """Undo what the driver did whenever it loses its lease.

    Args:
        lease_s: The lease where the driver never wrote one [s].
        until_over: Whether to end when a driver has undone all itself.
    """
    with locked(folder / WATCHDOG_LOCK, "a watchdog is at work"):
        since_s = time.monotonic()
        while True:
            lease = Lease.load(folder)
            if lease is not None and lease.over:
                if until_over:
                    return
            elif (
                lease is not None
                and lease.is_lost()
                and (lease.boot == _boot() or time.monotonic() - since_s > lease_s)
            ):
                _undo(folder, partition, lease, commands, say)
            pause(min(LOOK_S, (lease.lease_s if lease is not None and not lease.over else lease_s) / 4.0))


def _undo(folder: Path, partition: str, lease: Lease, commands: SlurmControl, say: Callable[[str], None]) -> None:
    say(f"no round for {lease.lease_s / 60.0:g} min: what the driver did is undone")
    if not lease.end_driver():
        say(f"process {lease.pid} could not be ended")
        return
    try:
        done = release_now(folder, partition, commands, "no round came: the watchdog undid what the driver did")
    except (RunError, InputError) as error:
        say(f"not yet: {error}")  # tried again at the next look
        return
    say(f"released {len(done)} jobs: {', '.join(done) or 'none'}")


def _began(pid: int) -> int:
    """Return when a process began, in ticks; 0: it is not there, or is over."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text("utf-8", errors="replace")
        words = text.rpartition(")")[2].split()
        return 0 if words[0] in "ZX" else int(words[19])
    except (OSError, ValueError, IndexError):
        return 0


def _boot() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text("utf-8").strip()
    except OSError:
        return ""
