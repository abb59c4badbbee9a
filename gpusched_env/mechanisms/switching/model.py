"""Host memory of nodes that keeps the states of paused jobs, and the links on which states cross PCIe."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from gpusched_env.errors import InputError
from gpusched_env.model import checks
from gpusched_env.model.mechanism import Mechanism

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpusched_env.model.instance import Instance


@dataclass(frozen=True, slots=True)
class HostMemory(Mechanism):
    """What a node has for the states of jobs (`JobTable.state_gib`), where costs of switching depend on the distance.

    A job that is paused leaves its state in the pool of the node where it was last ready, until it begins again. If
    there is no room, or the state is on several nodes, it is dropped: the job begins with a restart.

    All GPUs of a job move its state at the same time. Where several of them share a link, continuing takes longer than
    `JobTable.resume_s`, which holds for a GPU with a link of its own: 2 S / B more for each further GPU on the link,
    but no longer than a restart.

    Args:
        pool_gib: Size of the pool of every node [GiB], > 0; inf: no limit.
        gpus_per_link: GPUs of a node that share one PCIe link to its host memory, ≥ 1.
        bandwidth_gb_per_s: Bandwidth B of a link in one direction [GB/s], > 0.

    Raises:
        InputError: A value is out of its range.
    """

    mechanism: ClassVar[str] = "switching"
    schema: ClassVar[Mapping[str, Any]] = {"pool_gib?": float, "gpus_per_link": int, "bandwidth_gb_per_s": float}

    pool_gib: float = math.inf
    gpus_per_link: int = 1
    bandwidth_gb_per_s: float = 12.0

    def __post_init__(self) -> None:
        if not self.pool_gib > 0.0:
            raise InputError("host_memory.pool_gib", self.pool_gib, "a number > 0, or inf")
        checks.whole("host_memory.gpus_per_link", self.gpus_per_link)
        checks.positive("host_memory.bandwidth_gb_per_s", self.bandwidth_gb_per_s)

    def check(self, instance: Instance) -> None:
        """Check that jobs have costs of continuing, and that there are no cells.

        Raises:
            InputError: They have none, or there are cells.
        """
        if instance.jobs.resume_s is None:
            raise InputError("host_memory", "...", "None, unless jobs have resume_s")
        if instance.first_machine:
            raise InputError("host_memory", "...", "None with cells, which are bound to other hosts")

    def fields(self) -> dict[str, Any]:
        """Return the fields in files: those with a limit."""
        return {name: value for name, value in asdict(self).items() if value != math.inf}  # no limit is no value


MODEL = HostMemory
