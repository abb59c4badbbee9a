"""Pods and gangs, as HiveD's cases ask for them."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

    from gpusched_reproductions.systems.hived.forest import Cell

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
