"""Requests to HiveD's program, with its answers: read from files, and put to our allocator."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gpusched_env.errors import InputError
from gpusched_reproductions.systems.hived.cells import Allocation, Allocator, CellCluster, Request


@dataclass(frozen=True, slots=True)
class Step:
    """A step of an episode, with the answer of the published program and ours.

    Attributes:
        case: Number of the episode and its mode, number of the step, and the gang.
        published: The published answer, as a text; nothing where a gang is ended.
        ours: Our answer, as a text.
    """

    case: str
    published: str
    ours: str


def read(path: Path) -> list[dict[str, Any]]:
    """Read the episodes of a file: a JSON document in each line, the file compressed or not."""
    try:
        data = path.read_bytes()
        text = (gzip.decompress(data) if path.suffix == ".gz" else data).decode("utf-8")
        episodes = [json.loads(line) for line in text.splitlines() if line.strip()]
    except (OSError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise InputError("files", str(path), f"episodes, one JSON document in each line ({error})") from error
    if not episodes or not all(isinstance(each, dict) and {"Mode", "Steps"} <= each.keys() for each in episodes):
        raise InputError("files", str(path), "episodes with Mode and Steps")
    return episodes


def replay(episode: dict[str, Any], cluster: CellCluster, number: int) -> Iterator[Step]:
    """Yield the steps of an episode up to the first that differs: from there on the two have other gangs."""
    allocator = Allocator(cluster)
    for i, step in enumerate(episode["Steps"]):
        if step["Op"] == "delete":
            allocator.remove(step["Gang"])
            continue
        case = f"episode {number} ({episode['Mode']}), step {i}, {step['Gang']}"
        published = _text(step["Outcome"], [(pod["Node"], tuple(pod["Gpus"])) for pod in step["Pods"] or ()])
        ours = _ask(allocator, step)
        yield Step(case, published, ours)
        if ours != published:
            return


def _ask(allocator: Allocator, step: dict[str, Any]) -> str:
    sizes = tuple(gpus for pods, gpus in step["Members"] for _ in range(pods))
    request = Request(step["VC"], sizes, step["Prio"], step["Type"], step["Pinned"], step["Lazy"])
    try:
        answer = allocator.schedule(step["Gang"], request)
    except InputError:
        return _text("error", ())
    return _text(outcome_of(answer), answer.places)


def outcome_of(answer: Allocation) -> str:
    """Return what comes of a request: `bind`, `preempt` or `wait`."""
    return "bind" if answer.places else "preempt" if answer.victims else "wait"


def _text(outcome: str, places: Any) -> str:
    return " ".join([outcome, *(f"{node}:{','.join(map(str, gpus))}" for node, gpus in places)])
