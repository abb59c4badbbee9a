"""A driver with all around it: locks, the lease and its watchdog, the journal, reports over HTTP, and its rounds."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from gpusched_env.errors import InputError, RunError
from gpusched_operations.live.acting import DriveSettings
from gpusched_operations.live.asking import Ask, deferrals
from gpusched_operations.live.driver import Driver
from gpusched_operations.live.job_rules import JobRules
from gpusched_operations.live.journal import Journal, log_line
from gpusched_operations.live.lease import (
    DRIVER_LOCK,
    JOURNAL,
    WATCHDOG_LOCK,
    Lease,
    locked,
    partition_lock,
    start_watchdog,
)
from gpusched_operations.live.progress_reports import ProgressReports, ProgressServer
from gpusched_operations.live.slurm_commands import SlurmControl, SlurmError, run_command
from gpusched_operations.live.slurm_state import read_cluster

if TYPE_CHECKING:
    from gpusched_operations.live.metrics import LiveMetrics

LONGEST_PAUSE_S = 60.0
BUSY = "another driver is at work on this partition"


class Stopped(Exception):  # noqa: N818 - no error
    """The driver is asked to end."""


@dataclass(frozen=True, slots=True)
class DriveOptions:
    """What a driver is told at its start, beside its settings.

    Attributes:
        folder: Where its state and its journal are.
        until_idle: Whether to end when no job that opted in is left.
        progress: A folder that all jobs report to; None: each where it was submitted.
        address: Host and port for reports over HTTP; None: none.
        watchdog: Whether to start a watchdog.
        metrics: Counts what happens; told at `GET /metrics` at that address.
    """

    folder: Path
    until_idle: bool = False
    progress: Path | None = None
    address: tuple[str, int] | None = None
    watchdog: bool = True
    metrics: LiveMetrics | None = None


def dry_run(settings: DriveSettings, rules: JobRules, ask: Ask, folder: Path, progress: Path | None) -> list[str]:
    """Return what a driver would do now, as lines; nothing is changed or written."""
    events: list[str] = []

    def on_event(kind: str, **fields: object) -> None:
        if kind in ("left-alone", "left-out"):
            events.append(f"{kind.replace('-', ' ')} {fields['job']}: {fields['why']}")

    commands = SlurmControl(dry=True)
    driver = Driver(settings, rules, commands, ask, folder, on_event, ProgressReports(progress))
    request = driver.observe()
    driver.apply(driver.decide(request))
    waits = deferrals(driver.answer, driver.rules.clock)
    keeps = [
        f"{job['action']} {job['id']}: "
        f"{waits.get(job['id']) or job.get('configuration') or job.get('why') or 'no GPUs now'}"
        for job in driver.answer["jobs"]
        if job["action"] in ("keep", "wait") or job["id"] in waits
    ]
    return [*commands.not_run, *events, *keeps, *driver.actions.lines()]


def drive(
    settings: DriveSettings, rules: JobRules, ask: Ask, options: DriveOptions, say: Callable[[str], None]
) -> None:
    """Drive a partition until it is idle, or until `Stopped` is raised; then all is undone."""
    folder = options.folder
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    with ExitStack() as stack:
        stack.enter_context(locked(partition_lock(settings.partition), BUSY))
        lock = stack.enter_context(locked(folder / DRIVER_LOCK, BUSY))
        say(f"driving {settings.partition} with {settings.policy}; state in {folder}; Ctrl-C undoes all")
        first = partial(dry_run, settings, rules, ask, folder, options.progress)
        journal, metrics = stack.enter_context(Journal(folder / JOURNAL)), options.metrics
        journal.listeners += [log_line, partial(_say_left_alone, say)]
        if metrics is not None:
            journal.listeners.append(metrics.event)
            ask = metrics.asking(ask)
        # a command that outlives the driver keeps its lock: nothing is undone before that has done what it does
        commands = SlurmControl(run=partial(run_command, keeps_open=(lock.fileno(),)))
        reports = ProgressReports(options.progress)
        driver = Driver(settings, rules, commands, ask, folder, journal.append, reports)
        with suppress(SlurmError):
            driver.state.check_cluster(read_cluster(commands, time.time(), nodes="").names)
        driver.state.save(folder)
        if options.address is not None:
            told = None if metrics is None else metrics.text
            server = ProgressServer(reports, driver.state.restarts_of, options.address, told)
            stack.callback(server.close)
            say(f"reports of jobs: GPUSCHED_PROGRESS=http://{options.address[0]}:{server.port}")
        journal.append("drive", partition=settings.partition, policy=settings.policy, lease_s=settings.lease_s)
        try:  # also of what a driver before it held
            with suppress(RunError, InputError):  # before a job is held: the first question may take minutes to compile
                first()
            _rounds(driver, options, say)
        finally:
            _end(driver, settings.lease_s, say)


def _say_left_alone(say: Callable[[str], None], kind: str, fields: Mapping[str, object]) -> None:
    """Say which jobs that opted in are left alone: nobody else would tell their users."""
    if kind in ("left-alone", "left-to-slurm"):
        say(f"{kind.replace('-', ' ')}: job {fields['job']}, {fields['why']}")


def _rounds(driver: Driver, options: DriveOptions, say: Callable[[str], None]) -> None:
    failures, settings, waits = 0, driver.settings, dict[str, str]()
    Lease.mine(settings.lease_s).save(options.folder)
    while True:
        if options.watchdog:
            _keep_watchdog(options.folder, settings)
        try:
            driver.round()
        except (RunError, InputError) as error:
            failures += 1
            driver.on_event("round-failed", why=str(error), in_a_row=failures)
            say(f"round failed: {error}")
            time.sleep(min(LONGEST_PAUSE_S, settings.poll_s * 2.0 ** min(failures, 10)))
            continue
        failures = 0
        Lease.mine(settings.lease_s).save(options.folder)
        for line in driver.actions.lines():
            say(line)
        former, waits = waits, deferrals(driver.answer, driver.rules.clock)
        for name, text in waits.items():
            if name not in former:
                say(f"{name} {text}")
        if options.until_idle and driver.idle():
            return
        driver.wait(settings.every_s, looked=lambda: _renew(options.folder, settings.lease_s))


def _renew(folder: Path, lease_s: float) -> None:
    """Renew the lease, not with every look."""
    lease = Lease.load(folder)
    if lease is None or time.monotonic() - lease.beat_s > lease_s / 10.0:
        Lease.mine(lease_s).save(folder)


def _end(driver: Driver, lease_s: float, say: Callable[[str], None]) -> None:
    try:
        done = driver.finish()
    except (SlurmError, InputError) as error:
        say(f"not all is undone: {error}; the watchdog goes on, or: gpusched slurm release")
        raise
    Lease.mine(lease_s, over=True).save(driver.folder)
    say(f"released {len(done)} job{'' if len(done) == 1 else 's'}" if done else "no job is held")


def _keep_watchdog(folder: Path, settings: DriveSettings) -> None:
    try:
        locked(folder / WATCHDOG_LOCK, "a watchdog is at work").close()
    except RunError:
        return
    start_watchdog(folder, settings.partition, settings.lease_s)
