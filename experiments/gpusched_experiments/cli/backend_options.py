"""The options that say on which machines runs are made."""

from dataclasses import dataclass
from typing import Annotated

import typer

from gpusched_env.errors import InputError
from gpusched_env.model import checks
from gpusched_experiments.report.backends.ray_cluster import RayCluster
from gpusched_experiments.report.processes import PROCESSES, Backend

BACKENDS = ("processes", "ray")


@dataclass(frozen=True, slots=True)
class BackendOptions:
    """What the options of a backend were given."""

    backend: Annotated[str, "processes of this machine, or ray: all machines of a Ray cluster."] = PROCESSES.name
    ray_address: Annotated[
        str | None,
        typer.Option(
            "--ray-address", metavar="ADDRESS",
            help="With --backend ray: HOST:PORT, or auto; default: RAY_ADDRESS, else a cluster of this machine alone.",
        ),
    ] = None  # fmt: skip

    def chosen(self) -> Backend:
        if self.backend not in BACKENDS:
            raise InputError("--backend", self.backend, f"one of {', '.join(BACKENDS)}")
        if self.backend == RayCluster().name:
            return RayCluster(self.ray_address)
        if self.ray_address is not None:
            raise InputError("--ray-address", self.ray_address, "nothing without --backend ray")
        return PROCESSES


def chosen_workers(workers: int | None, backend: Backend) -> int:
    """Return the number of calls at once: the one that is given, else one for each core of the backend."""
    return backend.cores() if workers is None else checks.whole("--workers", workers)
