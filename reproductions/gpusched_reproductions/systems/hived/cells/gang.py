"""Requests for GPUs, and the gangs that hold them, or wait for the end of those that they preempt."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

Placement = list[list[int]]
"""The GPUs of each pod of a gang, by their rows."""


@dataclass(frozen=True, slots=True)
class Request:
    """What a gang asks for: GPUs for all its pods, or nothing.

    Args:
        tenant: The tenant.
        sizes: GPUs of each pod.
        priority: -1 for an opportunistic gang, else 0 to 1000.
        gpu_type: GPU type; any without one.
        pinned: Name of the pinned cell in which it must run, if any.
        lazy: Whether it runs on as an opportunistic one, if it can, when others of its tenant take its cells.
        suggested: Names of the only nodes that may be used; None for all.
    """

    tenant: str
    sizes: tuple[int, ...]
    priority: int = 0
    gpu_type: str = ""
    pinned: str = ""
    lazy: bool = False
    suggested: frozenset[str] | None = None


@dataclass(frozen=True, slots=True)
class Allocation:
    """What comes of a request, or of a pod.

    Attributes:
        places: Node, and numbers of the GPUs there, of each pod; none if the gang waits.
        victims: Names of the gangs that must end before it can begin.
    """

    places: tuple[tuple[str, tuple[int, ...]], ...] = ()
    victims: frozenset[str] = frozenset()


class Use(Enum):
    """What a physical GPU does."""

    FREE = "free"
    USED = "used"
    RESERVING = "reserving"
    """It is used by one gang, and promised to another one that preempts it."""
    RESERVED = "reserved"


@dataclass(eq=False)
class Gang:
    """A gang that is placed, or that preempts others.

    Attributes:
        name: Its name.
        request: What it asked for, its sizes rising.
        placed: Physical GPUs of each pod.
        cells: Virtual GPUs of each pod; none for opportunistic gangs, and for those that were preempted lazily.
        preempts: Whether it waits for the end of those that it preempts.
    """

    name: str
    request: Request
    placed: Placement
    cells: Placement = field(default_factory=list)
    preempts: bool = False

    def cell_of(self, gpu: int) -> int:
        for of_pod, cells in zip(self.placed, self.cells, strict=False):
            if gpu in of_pod:
                return cells[of_pod.index(gpu)]
        return -1
