"""`gpusched slurm emulate`."""

from importlib import import_module
from pathlib import Path
from typing import Annotated

import typer

NODES = "v100:4x2,a100:8x2"


def slurm_emulate_command(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Folder of the cluster: its files, logs and state.")],
    nodes: Annotated[str, typer.Option("--nodes", help="Its nodes: TYPE:GPUSxNODES with commas.")] = NODES,
    stop: Annotated[bool, typer.Option("--stop", help="Stop it, with all its jobs; the files stay.")] = False,
) -> None:
    """Start a real Slurm with made-up GPUs in a folder of this machine, to try things on.

    Example: **gpusched slurm emulate /tmp/cluster**, then **export SLURM_CONF=/tmp/cluster/slurm.conf** and
    **sbatch --gres=gpu:v100:2 --wrap 'sleep 60'**. Real daemons, the user's own, listen on this machine's loopback
    address only; several clusters may run at one time. They run until **--stop**.
    """
    cluster = import_module("gpusched_operations.live.emulated").EmulatedCluster(folder, nodes)
    if stop:
        ended = cluster.stop()
        typer.echo(f"stopped: {ended} processes" if ended else "nothing runs there")
        return
    cluster.start()
    typer.echo(f"{len(cluster.nodes)} nodes: {', '.join(cluster.nodes)}")
    typer.echo(f"export SLURM_CONF={cluster.conf}")
