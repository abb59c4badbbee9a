"""The `[[applications]]` of a scenario: what your own jobs train."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Self

from pydantic import BeforeValidator, Field, model_validator

from gpusched_env.errors import InputError
from gpusched_env.workload.scenario.settings import NotNegative, Positive, Seconds, Settings
from gpusched_env.workload.tables.applications import Application


def _by_gpus(value: object) -> object:
    """Turn a list, for 1, 2, ... GPUs, into a table by number of GPUs."""
    if isinstance(value, list | tuple):
        return {str(gpus): seconds for gpus, seconds in enumerate(value, start=1)}
    return dict(value) if isinstance(value, Mapping) else value


ByGpus = Annotated[dict[str, Positive], BeforeValidator(_by_gpus)]


class OwnApplication(Settings):
    """An application of your own; one with the name of a built-in one adds to its times."""

    name: str = Field(description="Name.")
    max_epochs: Positive = Field(description="Most epochs of a run.")
    memory_gib: NotNegative = Field(default=0.0, description="Memory on each GPU [GiB]; 0 fits everywhere.")
    restart_s: Seconds = Field(default=0.0, description="Seconds without progress after a change.")
    state_gib: NotNegative = Field(default=0.0, description="What is moved when jobs are switched [GiB].")
    seconds_per_epoch: dict[str, ByGpus] | None = Field(
        default=None,
        description='Time of an epoch [s], by GPU type: for 1, 2, ... GPUs, or by number { "1" = 90.0, "2*8" = 7.0 }.',
    )
    seconds: dict[str, ByGpus] | None = Field(default=None, description="Or the time of all epochs [s].")

    @model_validator(mode="after")
    def _check(self) -> Self:
        if not self.name:
            raise InputError("name", self.name, "a text that is not empty")
        if (self.seconds_per_epoch is None) == (self.seconds is None):
            given = None if self.seconds is None else "both"
            raise InputError("seconds_per_epoch", given, "times of an epoch, or `seconds` of all epochs, but not both")
        for gpu_type, times in self._given().items():
            where = f"{'seconds' if self.seconds else 'seconds_per_epoch'}.{gpu_type}"
            sizes = [_size(where, size) for size in times]
            if len(set(sizes)) < len(sizes):
                raise InputError(where, list(times), "each number of GPUs once")
        return self

    def application(self) -> Application:
        """Make the application."""
        part = 1.0 if self.seconds is None else 1.0 / self.max_epochs
        times: dict[tuple[str, int], float] = {}
        whole_nodes: dict[tuple[str, int, int], float] = {}
        for gpu_type, by_gpus in self._given().items():
            for size, seconds in by_gpus.items():
                nodes, gpus = _size(gpu_type, size)
                if nodes == 1:
                    times[gpu_type, gpus] = seconds * part
                else:
                    whole_nodes[gpu_type, nodes, gpus] = seconds * part
        switching = self.restart_s, self.state_gib
        return Application(self.name, self.max_epochs, self.memory_gib, times, whole_nodes, *switching)

    def _given(self) -> dict[str, dict[str, float]]:
        return self.seconds_per_epoch or self.seconds or {}


def _size(where: str, text: str) -> tuple[int, int]:
    """Read `4`, GPUs of one node, or `2*8`, nodes of so many GPUs each."""
    parts = text.split("*")
    if len(parts) > 2 or not all(part.isascii() and part.isdigit() and int(part) > 0 for part in parts):
        raise InputError(where, text, 'a number of GPUs such as "4", or of whole nodes such as "2*8"')
    nodes, gpus = (1, int(parts[0])) if len(parts) == 1 else (int(parts[0]), int(parts[1]))
    return nodes, gpus
