"""Everything that the rest of a training run depends on, in one file of plain arrays."""

from __future__ import annotations

import copy
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from gpusched_env.errors import InputError
from gpusched_env.files import write_atomically

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from numpy.typing import NDArray

VERSION = 1


@dataclass(slots=True)
class Checkpoint:
    """A moment of a training run.

    Args:
        arrays: By name.
        facts: What is not an array; JSON can hold it.
    """

    arrays: dict[str, NDArray[Any]] = field(default_factory=dict)
    facts: dict[str, Any] = field(default_factory=dict)

    def write(self, path: Path) -> None:
        """Write it, in place of a former one, as a whole or not at all."""
        arrays = {name: np.ascontiguousarray(array) for name, array in self.arrays.items()}
        write_atomically(path, save(arrays, metadata={"version": str(VERSION), "facts": json.dumps(self.facts)}))

    def copy(self) -> Checkpoint:
        """Give one that stays as it is while the run goes on."""
        arrays = {name: np.array(array) for name, array in self.arrays.items()}
        return Checkpoint(arrays, copy.deepcopy(self.facts))

    @classmethod
    def read(cls, path: Path) -> Checkpoint:
        """Read what `write` wrote.

        Raises:
            InputError: The file is not whole, is no checkpoint, or is one of another version.
        """
        try:
            with safe_open(path, framework="numpy") as file:
                header = file.metadata() or {}
                arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - it is no mapping
                facts = json.loads(header.get("facts", "{}"))
        except (SafetensorError, OSError, ValueError) as error:
            raise InputError(str(path), str(error), "a whole checkpoint; remove it to begin anew") from error
        if header.get("version") != str(VERSION):
            raise InputError(f"{path}: version", header.get("version"), str(VERSION))
        return cls(arrays, facts)

    def put(self, prefix: str, arrays: Mapping[str, Any]) -> None:
        """Add arrays or tensors under `prefix`/."""
        for name, value in arrays.items():
            self.arrays[f"{prefix}/{name}"] = np.asarray(value)

    def get(self, prefix: str) -> dict[str, NDArray[Any]]:
        """Give the arrays under `prefix`/."""
        return {name[len(prefix) + 1 :]: array for name, array in self.arrays.items() if name.startswith(f"{prefix}/")}
