"""The built-in applications and GPU types, from the public measurements that `docs/applications.md` explains."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import TYPE_CHECKING

from gpusched_env.errors import InputError
from gpusched_env.model import checks
from gpusched_env.model.gpu_type import GpuType

if TYPE_CHECKING:
    from collections.abc import Mapping

_Row = dict[str, str]


@dataclass(frozen=True, slots=True)
class Application:
    """A training application: how long one epoch takes on each GPU type and number of GPUs.

    Args:
        name: Model, data set and batch, such as "resnet50-imagenet-bs64".
        max_epochs: Most epochs E_j that a run needs, > 0.
        memory_gib: Memory that training takes on each GPU [GiB], > 0.
        seconds_per_epoch: Time of one epoch τ [s] by (GPU type, number of GPUs), > 0; copied, and read-only afterwards.

    Raises:
        InputError: A value is out of its range.
    """

    name: str
    max_epochs: float
    memory_gib: float
    seconds_per_epoch: Mapping[tuple[str, int], float]

    def __post_init__(self) -> None:
        where = f"applications.{self.name}"
        checks.positive(f"{where}.max_epochs", self.max_epochs)
        checks.positive(f"{where}.memory_gib", self.memory_gib)
        if not self.seconds_per_epoch:
            raise InputError(f"{where}.seconds_per_epoch", self.seconds_per_epoch, "at least one entry")
        for (gpu_type, gpus), seconds in self.seconds_per_epoch.items():
            checks.positive(f"{where}.seconds_per_epoch[{gpu_type}, {gpus}]", seconds)
        object.__setattr__(self, "seconds_per_epoch", MappingProxyType(dict(self.seconds_per_epoch)))

    def __reduce__(self) -> tuple[type[Application], tuple[str, float, float, dict[tuple[str, int], float]]]:
        """Return what rebuilds the value in another process; the read-only view itself cannot be pickled."""
        return type(self), (self.name, self.max_epochs, self.memory_gib, dict(self.seconds_per_epoch))


def builtin_applications() -> dict[str, Application]:
    """Return the built-in applications by name, in a new dictionary of frozen values.

    Raises:
        InputError: A table of the package was damaged.
    """
    return dict(_applications())


def builtin_gpu_types() -> dict[str, GpuType]:
    """Return the built-in GPU types by name, in a new dictionary of frozen values.

    Raises:
        InputError: A table of the package was damaged.
    """
    return dict(_gpu_types())


@cache
def _applications() -> Mapping[str, Application]:
    times = _times()
    facts = {row["application"]: row for row in _read("application_facts.csv")}
    if facts.keys() != times.keys():
        raise InputError(
            "application_facts.csv", sorted(facts), f"the applications of applications.csv, {sorted(times)}"
        )
    where = "application_facts.csv"
    applications = {
        name: Application(
            name=name,
            max_epochs=_number(f"{where}.{name}.max_epochs", row["max_epochs"]),
            memory_gib=_number(f"{where}.{name}.memory_gib", row["memory_gib"]),
            seconds_per_epoch=times[name],
        )
        for name, row in facts.items()
    }
    return MappingProxyType(applications)


@cache
def _gpu_types() -> Mapping[str, GpuType]:
    types = [_gpu_type(row) for row in _read("gpu_types.csv")]
    return MappingProxyType({gpu_type.name: gpu_type for gpu_type in types})


def _gpu_type(row: _Row) -> GpuType:
    where = f"gpu_types.csv.{row['name']}"
    return GpuType(
        name=row["name"],
        gpu_power_w=_number(f"{where}.gpu_power_w", row["gpu_power_w"]),
        node_base_power_w=_number(f"{where}.node_base_power_w", row["node_base_power_w"]),
        memory_gib=_number(f"{where}.memory_gib", row["memory_gib"]),
        max_gpus_per_node=_whole(f"{where}.max_gpus_per_node", row["max_gpus_per_node"]),
    )


def _times() -> dict[str, dict[tuple[str, int], float]]:
    times: dict[str, dict[tuple[str, int], float]] = {}
    for row in _read("applications.csv"):
        where = f"applications.csv.{row['application']}.{row['gpu_type']}"
        key = (row["gpu_type"], _whole(f"{where}.gpus", row["gpus"]))
        of_application = times.setdefault(row["application"], {})
        if key in of_application:
            raise InputError(f"{where}.gpus", key[1], "each number of GPUs once")
        of_application[key] = _number(f"{where}.seconds_per_epoch", row["seconds_per_epoch"])
    return times


def _read(table: str) -> list[_Row]:
    text = files("gpusched_env").joinpath("workload", "data", table).read_text(encoding="utf-8")
    return list(csv.DictReader(text.splitlines()))


def _number(field: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise InputError(field, text, "a number") from None


def _whole(field: str, text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise InputError(field, text, "a whole number") from None
