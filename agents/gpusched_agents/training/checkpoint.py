"""The progress of a training run, and the state on which the rest of it depends, in one file of plain arrays."""

from __future__ import annotations

import copy
import csv
import hashlib
import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpusched_agents.files.arrays_file import arrays_bytes, read_arrays
from gpusched_env.errors import InputError
from gpusched_env.files import write_atomically
from gpusched_env.parsing import parse_json

VERSION = 3
HEADER = "header"
"""Name of the array that has the version, the facts and a checksum, as JSON."""


@dataclass(slots=True)
class Checkpoint:
    """The state of a training run at one time.

    Args:
        arrays: The arrays by name.
        facts: The other values, in types of JSON.
    """

    arrays: dict[str, NDArray[Any]] = field(default_factory=dict)
    facts: dict[str, Any] = field(default_factory=dict)

    def write(self, path: Path) -> None:
        """Write it in place of an earlier one, as a whole or not at all."""
        facts = json.dumps(self.facts)
        header = {"version": VERSION, "facts": facts, "sha256": _checksum(self.arrays, facts)}
        text = np.frombuffer(json.dumps(header).encode(), dtype=np.uint8)
        write_atomically(path, arrays_bytes({**self.arrays, HEADER: text}))

    def copy(self) -> Checkpoint:
        arrays = {name: np.array(array) for name, array in self.arrays.items()}
        return Checkpoint(arrays, copy.deepcopy(self.facts))

    @classmethod
    def read(cls, path: Path) -> Checkpoint:
        """Read a file of `write`, if it is whole and has the present version."""
        try:
            arrays = read_arrays(path.read_bytes())
            header = parse_json(arrays.pop(HEADER, np.frombuffer(b"{}", dtype=np.uint8)).tobytes())
            text = str(header.get("facts", "{}"))
            facts = parse_json(text)
        except (AttributeError, OSError, ValueError) as error:
            raise InputError(str(path), str(error), "a whole checkpoint; remove it to begin again") from error
        if header.get("version") != VERSION:
            raise InputError(f"{path}: version", header.get("version"), str(VERSION))
        if header.get("sha256") != _checksum(arrays, text):
            raise InputError(f"{path}: sha256", header.get("sha256"), "that of its content; remove it to begin again")
        return cls(arrays, facts)

    def put(self, prefix: str, arrays: Mapping[str, Any]) -> None:
        for name, value in arrays.items():
            self.arrays[f"{prefix}/{name}"] = np.asarray(value)

    def get(self, prefix: str) -> dict[str, NDArray[Any]]:
        return {name[len(prefix) + 1 :]: array for name, array in self.arrays.items() if name.startswith(f"{prefix}/")}


def _checksum(arrays: Mapping[str, NDArray[Any]], facts: str) -> str:
    found = hashlib.sha256(facts.encode())
    for name, array in sorted(arrays.items()):
        found.update(f"\n{name} {array.dtype} {array.shape}\n".encode())
        found.update(array.tobytes())
    return found.hexdigest()


@dataclass(slots=True)
class Progress:
    """The progress of a run.

    Attributes:
        phase: `beginning`, `learning` or `done`.
        steps: Decisions so far.
        curve: A point for each evaluation.
        worse: Evaluations since the best one.
        seconds: Seconds spent, over all sessions.
    """

    phase: str = "beginning"
    steps: int = 0
    curve: list[dict[str, Any]] = field(default_factory=list)
    worse: int = 0
    seconds: float = 0.0


def cost_of(point: Mapping[str, Any]) -> float:
    """Return the cost by which evaluations are compared: over that of STS-X."""
    return float(point["relative"])


def best_point(curve: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    """Return the evaluation whose agent is kept: the best one, of equals the first."""
    return min(curve, key=cost_of)


def csv_of(curve: list[dict[str, Any]]) -> str:
    text = io.StringIO()
    writer = csv.DictWriter(text, list(curve[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(curve)
    return text.getvalue()
