"""Where the pods of a gang go: the fullest nodes first, and within a node GPUs that are close together."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

    from gpusched_reproductions.systems.hived.forest import Cell


def pack(nodes: list[Cell], sizes: list[int], threshold: int, *, across: bool) -> list[Cell] | None:
    """Choose a node for each pod, smallest pods first; None if they do not all fit.

    Args:
        nodes: The nodes; they are put into the order in which they are tried, equal ones as before.
        sizes: GPUs of the pods, rising.
        threshold: GPUs held at this priority or above are not free.
        across: Whether nodes that anybody uses come first; else those used at this priority, and among these those
            that higher ones use least.
    """

    def rank(node: Cell) -> tuple[int, int]:
        held = [gpu.pod.gang.priority for gpu in node.gpus if gpu.pod is not None]
        if across:
            return -len(held), 0
        return -sum(priority == threshold for priority in held), sum(priority > threshold for priority in held)

    nodes.sort(key=rank)
    chosen: list[Cell] = []
    taken = 0
    for node in nodes:
        free = sum(is_free(gpu, threshold) for gpu in node.gpus)
        taken = 0
        while len(chosen) < len(sizes) and free - taken >= sizes[len(chosen)]:
            taken += sizes[len(chosen)]
            chosen.append(node)
    return chosen if len(chosen) == len(sizes) else None


def is_free(gpu: Cell, threshold: int) -> bool:
    """Say whether a GPU is held by nobody, or at a priority below `threshold`."""
    return gpu.pod is None or gpu.pod.gang.priority < threshold


def choose_gpus(nodes: list[Cell], sizes: list[int], threshold: int) -> list[list[Cell]]:
    """Choose the GPUs of each pod on its node: all in the smallest cell that has enough, free ones first."""
    taken: set[int] = set()
    chosen = []
    for node, size in zip(nodes, sizes, strict=True):
        found = min(
            (
                (len(cell.gpus), place, free[:size])
                for place, cell in enumerate(node.walk())
                if len(free := _available(cell, threshold, taken)) >= size
            ),
            key=lambda candidate: candidate[:2],
        )[2]
        taken |= {id(gpu) for gpu in found}
        chosen.append(found)
    return chosen


def _available(cell: Cell, threshold: int, taken: set[int]) -> list[Cell]:
    """List the GPUs of a cell that are free, those that nobody holds first."""
    free = [gpu for gpu in cell.gpus if is_free(gpu, threshold) and id(gpu) not in taken]
    return sorted(free, key=lambda gpu: gpu.pod is not None)


OPPORTUNISTIC = -1
HIGHEST = 1000


@dataclass(eq=False)
class Gang:
    """Pods that are placed together or not at all.

    Attributes:
        sizes: GPUs of each of its pods, rising.
        priority: Its priority; that of opportunistic pods once it was preempted lazily.
        placed: The GPUs of each pod, in the order of `sizes`; empty until it is placed.
        cells: The virtual GPUs of each, likewise; empty for opportunistic gangs.
        pods: The pods that have come, by their place in `sizes`.
        lazy: Whether it runs on as an opportunistic one when it is preempted, if it can.
        victims: The gangs that must end before it can begin.
    """

    sizes: list[int]
    priority: int
    lazy: bool
    placed: list[list[Cell]] = field(default_factory=list)
    cells: list[list[Cell]] = field(default_factory=list)
    pods: dict[int, str] = field(default_factory=dict)
    victims: list[Gang] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Pod:
    """A pod of a gang that is placed: what a GPU is held by."""

    gang: Gang
    index: int


@dataclass(frozen=True, slots=True)
class Answer:
    """What comes of a pod.

    Attributes:
        node: Its node; nothing if it waits.
        gpus: Its GPUs there.
        victims: The pods that must end before it can begin.
    """

    node: str = ""
    gpus: tuple[int, ...] = ()
    victims: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Cases:
    """The cases: gangs, pods, what is expected of them and which of them are refused."""

    gangs: dict[str, list[list[int]]]
    pods: dict[str, dict[str, Any]]
    in_order: list[str]
    refused: list[list[str]]
    placements: dict[str, dict[str, Any]]
    victims: dict[str, list[str]]

    @classmethod
    def read(cls, path: Path) -> Cases:
        """Read the file of cases."""
        told = json.loads(path.read_text(encoding="utf-8"))
        return cls(
            told["gangs"],
            told["pods"],
            told["should_succeed"],
            told["should_be_refused"],
            told["expected_placement"],
            told["expected_victims"],
        )

    def expected(self, pod: str) -> Answer:
        """Give what is expected of a pod."""
        place = self.placements.get(pod, {"node": "", "gpus": []})
        return Answer(place["node"], tuple(place["gpus"]), frozenset(self.victims.get(pod, ())))
