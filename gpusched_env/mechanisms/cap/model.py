"""The power that a site may draw: a cap that changes, with the notice that is given of it."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from gpusched_env.errors import InputError
from gpusched_env.mechanisms.saved_power.model import saved_kilowatts
from gpusched_env.model import checks
from gpusched_env.model.mechanism import Mechanism
from gpusched_env.model.rates import kilowatts

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from gpusched_env.model.instance import Instance


@dataclass(frozen=True, slots=True)
class PowerCap(Mechanism):
    """A cap on the power of all nodes of a site together, without what the PUE adds.

    Period p begins at `start_s[p]` and ends where the next one begins; the last one goes on.

    Args:
        start_s: Starts of the periods [s]; the first is 0, and they rise.
        cap_kw: The cap in each [kW], > 0.
        noticed_s: When each period is announced to policies [s], from 0 to its start; by default at its start.
        soft_eur_per_kwh: What a kWh above the cap costs in addition to its energy [€/kWh], > 0; None: the cap is hard,
            and never exceeded.

    Raises:
        InputError: A value is out of its range.
    """

    mechanism: ClassVar[str] = "cap"
    schema: ClassVar[Mapping[str, Any]] = {
        "start_s": [float], "cap_kw": [float], "noticed_s": [float], "soft_eur_per_kwh?": float,
    }  # fmt: skip

    start_s: tuple[float, ...]
    cap_kw: tuple[float, ...]
    noticed_s: tuple[float, ...] = ()
    soft_eur_per_kwh: float | None = None

    def __post_init__(self) -> None:
        starts = tuple(checks.seconds(f"site.start_s[{i}]", value) for i, value in enumerate(self.start_s))
        if not starts or starts[0] != 0.0 or any(a >= b for a, b in pairwise(starts)):
            raise InputError("site.start_s", list(starts), "numbers that rise from 0")
        for name, values in (("cap_kw", self.cap_kw), ("noticed_s", self.noticed_s or starts)):
            if len(values) != len(starts):
                raise InputError(f"site.{name}", f"{len(values)} values", f"{len(starts)}, one for each period")
        caps = tuple(checks.positive(f"site.cap_kw[{i}]", value) for i, value in enumerate(self.cap_kw))
        noticed = tuple(checks.seconds(f"site.noticed_s[{i}]", s) for i, s in enumerate(self.noticed_s or starts))
        for i, (announced, start) in enumerate(zip(noticed, starts, strict=True)):
            if announced > start:
                raise InputError(f"site.noticed_s[{i}]", announced, f"at most {start:g} s, when the period begins")
        if self.soft_eur_per_kwh is not None:
            checks.positive("site.soft_eur_per_kwh", self.soft_eur_per_kwh)
        for name, value in (("start_s", starts), ("cap_kw", caps), ("noticed_s", noticed)):
            object.__setattr__(self, name, value)

    @property
    def is_hard(self) -> bool:
        """Whether the cap is never exceeded."""
        return self.soft_eur_per_kwh is None

    def check(self, instance: Instance) -> None:
        """Check that the cap can be kept: power follows from holdings, and every job can run alone under the last one.

        Raises:
            InputError: It cannot.
        """
        if instance.first_machine or instance.most_spread:
            raise InputError("site", "...", "None with cells or spread configurations")
        for name in ("shares", "saved_power"):  # whose numbers are read here
            if instance.find(name) is not None:
                instance.find(name).check(instance)
        if getattr(instance.find("shares"), "idle_power_w", None) is not None:
            raise InputError("site", "...", "None where GPUs draw power by their utilisation")
        shared = [c.share < 1.0 for c in instance.configurations]
        saved = saved_kilowatts(instance)
        if saved.size and saved[:, shared].any():
            raise InputError("site", "...", "None where shares of GPUs have power limits")
        if getattr(instance.find("network"), "cpu_machine_w", 0.0):
            raise InputError("site", "...", "None where CPU machines draw power")
        if not self.is_hard:
            if instance.energy_price_eur_per_kwh == 0.0:
                raise InputError("site.soft_eur_per_kwh", self.soft_eur_per_kwh, "None where energy is free")
            return
        alone = np.where(np.isfinite(instance.jobs.seconds_per_epoch), _alone_kw(instance), np.inf).min(axis=1)
        least = float(alone.max(initial=0.0))
        if least > self.cap_kw[-1]:
            allowed = f"at least {least:g} kW in the last period, which job {int(alone.argmax())} draws alone"
            raise InputError("site.cap_kw", self.cap_kw[-1], allowed)

    @classmethod
    def with_events(
        cls, cap_kw: float, events: Sequence[tuple[float, float, float, float]], soft_eur_per_kwh: float | None = None
    ) -> PowerCap:
        """Make a constant cap that falls for a time at every event.

        Args:
            cap_kw: The cap outside events [kW].
            events: Start [s], length [s], part of the cap that is lost in (0, 1), and notice [s] of each; none begins
                before another one has ended.
            soft_eur_per_kwh: As above.

        Raises:
            InputError: A value is out of its range, or two events overlap.
        """
        starts, caps, announced, end = [0.0], [cap_kw], [0.0], -np.inf
        for i, (start, length, part, notice) in enumerate(sorted(events)):
            checks.seconds(f"site.events[{i}].start_s", start)
            checks.duration(f"site.events[{i}].length_s", length)
            if not 0.0 < part < 1.0:
                raise InputError(f"site.events[{i}].part", part, "a number > 0 and < 1")
            if start <= end:
                raise InputError(f"site.events[{i}].start_s", start, f"a time after {end:g} s, when another event ends")
            noticed, end = max(0.0, start - checks.seconds(f"site.events[{i}].notice_s", notice)), start + length
            if start == 0.0:
                starts, caps, announced = [], [], []
            starts += [start, end]
            caps += [cap_kw * (1.0 - part), cap_kw]
            announced += [noticed, noticed]
        return cls(tuple(starts), tuple(caps), tuple(announced), soft_eur_per_kwh)


def _alone_kw(instance: Instance) -> NDArray[np.float64]:
    watts, configs = kilowatts(instance), instance.configurations
    most = watts.shape[1] - 1
    pairs = zip(instance.type_of_configuration, configs, strict=True)
    alone = np.array([watts[v, min(c.gpus_per_node, most)] * c.nodes for v, c in pairs])
    saved = saved_kilowatts(instance)
    own = alone - saved[instance.jobs.application] if saved.size else alone
    return np.broadcast_to(own, instance.jobs.seconds_per_epoch.shape)


MODEL = PowerCap
