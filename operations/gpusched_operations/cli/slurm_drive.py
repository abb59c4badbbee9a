"""`gpusched slurm drive`."""

from __future__ import annotations

import math
import secrets
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import Annotated

import typer

from gpusched_env.errors import InputError
from gpusched_operations.cli.live_options import DEFAULT_POLICY, QUIET, LogFormatOption, LogLevelOption, live_metrics
from gpusched_operations.cli.slurm_release import state_folder

LEAST_LEASE_MIN = 0.25


def slurm_drive_command(
    partition: Annotated[str, typer.Option("--partition", "-p", help="The partition.")],
    policy: Annotated[
        str | None, typer.Option("--policy", help=f"A policy or agent, such as agent:default; {DEFAULT_POLICY}.")
    ] = None,
    rules: Annotated[Path | None, typer.Option("--rules", help="A file that says what jobs are (TOML).")] = None,
    every: Annotated[float, typer.Option("--every", help="Longest time between two rounds [s].")] = 30.0,
    state: Annotated[
        Path | None,
        typer.Option("--state", help="Folder of what must be undone; by default in ~/.local/state/gpusched."),
    ] = None,
    lease: Annotated[float, typer.Option("--lease", help="Minutes without a round after which all is undone.")] = 10.0,
    until_idle: Annotated[bool, typer.Option("--until-idle", help="End when no job that opted in is left.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be done now, change nothing.")] = False,
    url: Annotated[str | None, typer.Option("--url", help="Ask a decision service, such as http://host:8000.")] = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Write the run to this folder at the end.")] = None,
    progress: Annotated[
        Path | None, typer.Option("--progress", help="Folder of reports; by default where jobs were submitted.")
    ] = None,
    progress_port: Annotated[
        int | None, typer.Option("--progress-port", help="Take reports over HTTP at this port, too, and tell /metrics.")
    ] = None,
    progress_host: Annotated[str, typer.Option("--progress-host", help="Address for that.")] = "127.0.0.1",
    power_off: Annotated[
        float | None, typer.Option("--power-off", help="Switch nodes off that had no job for so many minutes.")
    ] = None,
    poll: Annotated[float, typer.Option("--poll", help="Time between two looks whether something is new [s].")] = 2.0,
    log_level: LogLevelOption = QUIET,
    log_format: LogFormatOption = "text",
) -> None:
    """Let a policy decide what the jobs of a partition get that say **gpusched** in their comment.

    They are held, placed, resized and stopped only as they allow; no other job is touched. Ctrl-C undoes all: jobs that
    run go on, nothing stays held. Begin with **--dry-run**.

    Example: **gpusched slurm drive --partition gpu --dry-run**
    """
    from gpusched_operations.live import asking, driving  # noqa: PLC0415 - they take long to import
    from gpusched_operations.live.acting import DriveSettings  # noqa: PLC0415
    from gpusched_operations.live.job_rules import JobRules  # noqa: PLC0415
    from gpusched_operations.service.logs import logging_to_stderr  # noqa: PLC0415

    for name, value in (("--every", every), ("--lease", lease), ("--poll", poll), ("--power-off", power_off)):
        if value is not None and not (math.isfinite(value) and value > 0.0):
            raise InputError(name, value, "a number > 0")
    if lease < LEAST_LEASE_MIN:
        raise InputError("--lease", lease, f"minutes >= {LEAST_LEASE_MIN:g}: a round may take a third of it")
    if min(every, poll) > 20.0 * lease:
        raise InputError("--poll", poll, f"seconds <= {20.0 * lease:g}: a third of --lease, which each look renews")
    folder, known = state_folder(state, partition), JobRules.load(rules)
    policy = known.default_policy if policy is None else policy
    if out is not None:
        from gpusched_env.files import check_new_folder  # noqa: PLC0415
        from gpusched_env.formats.run_folder import MAY_HOLD  # noqa: PLC0415

        check_new_folder(out, ours=MAY_HOLD)
    settings = DriveSettings(
        partition,
        policy,
        every,
        poll,
        settle_s=min(60.0, 20.0 * lease),
        start_s=min(30.0, 10.0 * lease),
        lease_s=60.0 * lease,
        power_off_s=None if power_off is None else 60.0 * power_off,
    )
    if dry_run:
        ask = asking.ask_service(url) if url else asking.decider_of(policy, secrets.token_bytes(32)).ask
        for line in driving.dry_run(settings, known, ask, folder, progress):
            typer.echo(line)
        return
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    ask = asking.ask_service(url) if url else asking.decider_of(policy, asking.key_of(folder)).ask
    address = None if progress_port is None else (progress_host, progress_port)
    metrics = live_metrics(known.clock, drives=True)
    options = driving.DriveOptions(folder, until_idle, progress, address, metrics=metrics)
    with logging_to_stderr(log_level, log_format), _signals(), suppress(driving.Stopped):
        driving.drive(settings, known, ask, options, typer.echo)
    if out is not None:
        _write_out(folder, out, partition)


def _write_out(folder: Path, out: Path, partition: str) -> None:
    from gpusched_operations.live.run_record import write_drive  # noqa: PLC0415

    for line in write_drive(folder, out, partition):
        typer.echo(line)


@contextmanager
def _signals() -> Iterator[None]:
    """Let Ctrl-C and SIGTERM end the driver so that it undoes all; a second one ends it at once."""

    def stop(number: int, _frame: FrameType | None) -> None:
        from gpusched_operations.live.driving import Stopped  # noqa: PLC0415

        signal.signal(number, signal.SIG_DFL)
        typer.echo("stopping: what was done is undone; once more ends at once, then the watchdog undoes it", err=True)
        raise Stopped

    former = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in former.items():
            signal.signal(number, handler)
