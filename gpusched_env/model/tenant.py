"""A tenant of a shared cluster, and the cells that it was promised."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Literal

from gpusched_env.errors import InputError
from gpusched_env.model import checks

Tenancy = Literal["none", "quota", "private", "cells"]
"""What tenants are to a cluster: names only; GPUs counted by a quota; nodes of their own; or virtual clusters of cells
that come to lie on nodes when they are used."""
TENANCIES: tuple[Tenancy, ...] = ("none", "quota", "private", "cells")

BETWEEN = "/"
"""Between the name of a tenant and that of a GPU type: the type of what is this tenant's alone."""
LENT = "lent"
"""In place of a tenant's name: what is not a tenant's now, for opportunistic jobs."""


@dataclass(frozen=True, slots=True)
class Cells:
    """Some cells of one size.

    Args:
        gpu_type: Name of the GPU type.
        gpus: GPUs of each, ≥ 1; all of a node, or a power of two of them.
        count: How many, ≥ 1.

    Raises:
        InputError: A number is out of its range.
    """

    gpu_type: str
    gpus: int
    count: int

    def __post_init__(self) -> None:
        checks.whole("cells.gpus", self.gpus)
        checks.whole("cells.count", self.count)


@dataclass(frozen=True, slots=True)
class Tenant:
    """A tenant: a name, and the cells that it was promised. Its quota of a GPU type is what they add up to.

    Args:
        name: Name, which is not empty and has no `/`, nor is it `lent`.
        cells: The cells of its virtual cluster; without any it is a name only, for which results are told apart.

    Raises:
        InputError: The name is not allowed.
    """

    name: str
    cells: tuple[Cells, ...] = ()

    def __post_init__(self) -> None:
        if not self.name or BETWEEN in self.name or self.name == LENT:
            raise InputError("tenant.name", self.name, f"a text without {BETWEEN!r}, neither empty nor {LENT!r}")

    def gpus(self, gpu_type: str) -> int:
        """Count the GPUs of a type that it was promised."""
        return sum(cells.gpus * cells.count for cells in self.cells if cells.gpu_type == gpu_type)

    def sizes(self, gpu_type: str) -> Counter[int]:
        """Count its cells of a type by size."""
        found: Counter[int] = Counter()
        for cells in self.cells:
            if cells.gpu_type == gpu_type:
                found[cells.gpus] += cells.count
        return found


def name_of(tenant: str, gpu_type: str) -> str:
    """Give the name of the GPU type that stands for what is one tenant's of a type."""
    return f"{tenant}{BETWEEN}{gpu_type}"


def hardware(gpu_type: str) -> str:
    """Give the name of the hardware that a GPU type stands for: that of a tenant's own type, without the tenant."""
    return gpu_type.rpartition(BETWEEN)[2]


def tenant_name(text: str) -> str:
    """Give a text as a name that a tenant may have: without what only GPU types of a tenant have in theirs."""
    name = text.replace(BETWEEN, "-")
    return f"{name or 'nobody'}*" if name in {"", LENT} else name
