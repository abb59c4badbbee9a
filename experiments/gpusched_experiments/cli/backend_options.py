"""The options that say on which machines runs are made."""

from typing import Annotated

import typer

from gpusched_env.errors import InputError
from gpusched_env.model import checks
from gpusched_experiments.report.backends.ray_cluster import RayCluster
from gpusched_experiments.report.processes import PROCESSES, Backend

BACKENDS = ("processes", "ray")
USUAL = PROCESSES.name

BackendOption = Annotated[
    str,
    typer.Option("--backend", help="processes of this machine, or ray: all machines of a Ray cluster."),
]
RayAddressOption = Annotated[
    str | None,
    typer.Option(
        "--ray-address",
        metavar="ADDRESS",
        help="With --backend ray: HOST:PORT, or auto; default: RAY_ADDRESS, else a cluster of this machine alone.",
    ),
]


def chosen_backend(backend: str, ray_address: str | None) -> Backend:
    """Give the backend of this name.

    Raises:
        InputError: There is none, or it has no address.
    """
    if backend not in BACKENDS:
        raise InputError("--backend", backend, f"one of {', '.join(BACKENDS)}")
    if backend == RayCluster().name:
        return RayCluster(ray_address)
    if ray_address is not None:
        raise InputError("--ray-address", ray_address, "nothing without --backend ray")
    return PROCESSES


def chosen_workers(workers: int | None, backend: Backend) -> int:
    """Give the number of calls at once: the one that is given, else one for each core of the backend.

    Raises:
        InputError: The number is not a whole one ≥ 1, or there is no such cluster.
        MissingExtraError: What the backend needs is not installed.
    """
    return backend.cores() if workers is None else checks.whole("--workers", workers)
