"""What the GPUs of configurations draw less than full busy ones, by their power limit and application."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from gpusched_env.errors import InputError
from gpusched_env.model.mechanism import Mechanism

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from gpusched_env.model.instance import Instance

ROUNDED = 1e-9
"""What a saving may exceed the power that it is taken from by, relative: rounding."""


@dataclass(frozen=True, slots=True)
class SavedPower(Mechanism):
    """What the GPUs of a configuration draw less than full busy ones [kW], by application, on a share as whole GPUs.

    An instance with power limits has one: by default what the limits take, for every application (`GpuType.saved_w`).

    Args:
        saved_kw: The saving of each application, and in it of each configuration, (A, C), from 0 to what the node of a
            GPU draws for it.
    """

    mechanism: ClassVar[str] = "saved_power"
    schema: ClassVar[Any] = [[float]]

    saved_kw: tuple[tuple[float, ...], ...] = field(repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "saved_kw", tuple(tuple(map(float, row)) for row in self.saved_kw))

    @classmethod
    def by_default(cls, instance: Instance) -> Self:
        """Make that of power limits, which is the same for all applications."""
        types = {v.name: v for v in instance.gpu_types}
        row = tuple(types[c.gpu_type].saved_w(c) / 1000.0 for c in instance.configurations)
        return cls((row,) * len(instance.jobs.applications))

    def check(self, instance: Instance) -> None:
        """Check that no GPU saves more than its node draws for it, whatever else runs there.

        Raises:
            InputError: One does, a number is below 0, or the table has another form.
        """
        shape = len(instance.jobs.applications), len(instance.configurations)
        if len(self.saved_kw) != shape[0] or {len(row) for row in self.saved_kw} != {shape[1]}:
            found = [len(row) for row in self.saved_kw]
            raise InputError("saved_kw", found, f"{shape}: applications, configurations")
        saved, largest, types = np.array(self.saved_kw), instance.largest_node, {v.name: v for v in instance.gpu_types}
        for c, own in enumerate(instance.configurations):
            v = types[own.gpu_type]
            drawn_w = [v.power_w(busy) / busy for busy in range(1, largest.get(v.name, 0) + 1)]
            most = min(drawn_w, default=np.inf) * own.gpus_per_node * own.nodes / 1000.0
            for a in np.flatnonzero(~((saved[:, c] >= 0.0) & (saved[:, c] <= most * (1.0 + ROUNDED)))):
                allowed = f"from 0 to {most:g} kW, the power of busy GPUs of {own.name}"
                raise InputError(f"saved_kw[{a}][{c}]", float(saved[a, c]), allowed)

    def planned_saving(self, instance: Instance) -> NDArray[np.float64]:
        """Return the saving with which policies plan [kW], (A, C).

        A share has its part of that of whole GPUs. Where idle GPUs draw less, it is saved while the GPUs work.
        """
        model, part = instance.find("shares"), np.array([c.share for c in instance.configurations])
        if getattr(model, "idle_power_w", None) is not None:
            part = model.utilisation[instance.type_of_configuration].T
        return np.array(self.saved_kw) * part

    def alike(self, types: Sequence[int], configurations: Sequence[int]) -> Self:  # noqa: ARG002 - of others
        """Return the model for configurations that are each like one of the present ones."""
        return type(self)(tuple(tuple(row[c] for c in configurations) for row in self.saved_kw))


def saved_kilowatts(instance: Instance) -> NDArray[np.float64]:
    """Return what the GPUs of a configuration draw less than full busy ones [kW], by application, (A, C); (0, 0): none.

    On a share it is that of the whole GPUs.
    """
    model = instance.of(SavedPower)
    return np.zeros((0, 0)) if model is None else np.array(model.saved_kw)


MODEL = SavedPower
