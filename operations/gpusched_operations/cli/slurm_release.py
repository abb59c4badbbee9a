"""`gpusched slurm release`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gpusched_env.errors import InputError


def slurm_release_command(
    partition: Annotated[str, typer.Option("--partition", "-p", help="The partition that was driven.")],
    state: Annotated[Path | None, typer.Option("--state", help="The folder of the driver's state.")] = None,
    watch: Annotated[
        bool, typer.Option("--watch", help="Stay, and undo what a driver did whenever no round came for --lease.")
    ] = False,
    lease: Annotated[float, typer.Option("--lease", help="Minutes after which a driver has lost its lease.")] = 10.0,
    until_over: Annotated[bool, typer.Option("--until-over", hidden=True)] = False,
) -> None:
    """Undo what **gpusched slurm drive** did: no job is held any more, requests are as they were submitted.

    Jobs that run go on. Stop the driver first; it does the same when it is stopped.

    Example: **gpusched slurm release --partition gpu**
    """
    from gpusched_operations.live import lease as leases  # noqa: PLC0415
    from gpusched_operations.live.drive_state import STATE_FILE  # noqa: PLC0415
    from gpusched_operations.live.slurm_commands import SlurmControl  # noqa: PLC0415

    folder = state_folder(state, partition)
    if not lease > 0.0:
        raise InputError("--lease", lease, "minutes > 0")
    if watch:
        leases.watch(folder, partition, 60.0 * lease, SlurmControl(), until_over=until_over, say=typer.echo)
        return
    if not (folder / STATE_FILE).is_file():
        raise InputError("--state", str(folder), "the folder of a driver's state: it has a state.json")
    typer.echo(f"state: {folder}")
    done = leases.release_now(folder, partition, SlurmControl(), "by hand")
    typer.echo(f"released {len(done)} job{'' if len(done) == 1 else 's'}{': ' if done else ''}{', '.join(done)}")


def state_folder(given: Path | None, partition: str) -> Path:
    """Return the folder of a driver's state, by default one of the user's own for the partition."""
    if not partition or any(not (letter.isalnum() or letter in "_.-") for letter in partition) or partition[0] == ".":
        raise InputError("--partition", partition, "the name of one partition")
    return Path.home() / ".local/state/gpusched" / partition if given is None else given.absolute()
