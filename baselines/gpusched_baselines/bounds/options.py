"""What a job can hold, for the bounds: seconds, power and GPUs, with the best co-runners on a shared GPU.

On a shared GPU the bounds charge work in place of time. An application a that runs at the part σ of its speed alone
holds the part φ_a σ of its GPU. A GPU is not counted twice if, for every set S of jobs that fit on it,

    Σ_{a in S} φ_a σ_a(S) ≤ 1

where σ_a(S) is the speed of a among S. So the GPU-seconds of a job are at least φ_a times the seconds that its epochs
take alone, whatever its co-runners are, and φ_a of the least power of a busy GPU is paid for it. Of all such φ the
bounds take one that makes the GPU-seconds of all jobs the most, by a linear program with a row for each set.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpusched_env.mechanisms.saved_power.model import saved_kilowatts
from gpusched_env.mechanisms.shares.model import Interference, UtilisationModel
from gpusched_env.model import Instance
from gpusched_env.model.rates import Rates, planned_saving_kilowatts
from gpusched_env.simulator import kernels as sim
from gpusched_env.simulator.kernels import at

MOST_SETS = 20_000  # of jobs on one GPU; where there are more, time is charged: the least share for each job
SAFE = 1.0 - 1e-9  # on φ, since a linear program is solved to a tolerance


@dataclass(frozen=True, slots=True, eq=False)
class Options:
    """What the jobs of an instance can hold, a column for each option.

    Without interference an option is a configuration; all applications have one row, unless some save power. With it,
    all shares of a type are one option.

    Attributes:
        seconds: Least seconds per epoch, (J, O); inf where not allowed.
        row: The row of each job in `rate` and `gpus`, (J,).
        rate: Least cost rate at that speed [€/s], (A, O) or (1, O).
        gpus: GPUs held at that speed, (A, O) or (1, O).
        type: Index of the GPU type, (O,).
    """

    seconds: NDArray[np.float64]
    row: NDArray[np.int64]
    rate: NDArray[np.float64]
    gpus: NDArray[np.float64]
    type: NDArray[np.int64]

    @classmethod
    def of(cls, instance: Instance) -> Options:
        """Return the options of an instance."""
        seconds, types = instance.fastest_seconds_per_epoch, instance.type_of_configuration
        least, wanted = Rates.of(instance).least, instance.configurations
        shared = np.array([c.kind == "shared" for c in wanted])
        gpus = np.array([(sim.share_units(c.share) or at.UNITS) / at.UNITS * c.gpus_per_node * c.nodes for c in wanted])
        rows, application = len(instance.jobs.applications), instance.jobs.application.astype(np.int64)
        if instance.find("shares") is None:
            if instance.find("saved_power") is None:
                rows, application = 1, np.zeros(len(seconds), dtype=np.int64)
            return cls(seconds, application, least[:rows], np.tile(gpus, (rows, 1)), types)
        saving, busy = _idle_savings(instance)
        columns = [
            (seconds[:, c], types[c], np.full(rows, gpus[c]), least[:, c], gpus[c]) for c in np.flatnonzero(~shared)
        ]
        for v in np.unique(types[shared]):
            mine = np.flatnonzero(shared & (types == v))
            alone = seconds[:, mine].min(axis=1)
            part = _parts_of_a_gpu(instance, int(v), mine, alone)
            columns.append((alone, v, part, _least_of_shares(instance, mine, least, part), 1.0))
        # A GPU that is held draws its idle power, and the rest while it is busy.
        rate = [each - saving[v] * (held - busy[v] * most) for _, v, held, each, most in columns]
        return cls(
            np.column_stack([column[0] for column in columns]),
            application,
            np.column_stack(rate),
            np.column_stack([column[2] for column in columns]),
            np.array([column[1] for column in columns]),
        )


def _least_of_shares(
    instance: Instance, shares: NDArray[np.int64], least: NDArray[np.float64], part: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the least cost rate of every application on a part of a GPU that is shared [€/s], (A,).

    It saves as much as on any of the shares: of its part, or, where idle GPUs draw less, while the GPU works.

    Args:
        least: Least rates, (A, C).
        part: The part of the GPU, (A,).
    """
    gpus = np.array([instance.configurations[c].gpus for c in shares])
    saved = saved_kilowatts(instance)
    if not saved.size:
        return part * (least[:, shares] / gpus).min(axis=1)
    eur_per_kw = instance.energy_price_eur_per_kwh * instance.pue / 3600.0
    whole = ((least + planned_saving_kilowatts(instance) * eur_per_kw)[:, shares] / gpus).min(axis=1)
    each = np.array([instance.configurations[c].gpus / instance.configurations[c].share for c in shares])
    working, model = part, instance.of(UtilisationModel)
    if model is not None and model.idle_power_w is not None:
        working = model.utilisation[instance.type_of_configuration[shares[0]]]
    return part * whole - working * (saved[:, shares] / each).max(axis=1) * eur_per_kw


def _idle_savings(instance: Instance) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return what an idle GPU costs less than a busy one [€/s], (V,), and how busy applications keep it, (V, A)."""
    model, shape = instance.of(UtilisationModel), (len(instance.gpu_types), len(instance.jobs.applications))
    if model is None or model.idle_power_w is None:
        return np.zeros(shape[0]), np.ones(shape)
    watts = np.array([v.gpu_power_w for v in instance.gpu_types]) - model.idle_power_w
    return watts / 1000.0 * instance.energy_price_eur_per_kwh * instance.pue / 3600.0, model.utilisation


class _Kind(NamedTuple):
    """Jobs that are alike on a shared GPU, with their least share, and how many there are."""

    application: int
    units: int
    priority: int
    jobs: int


def _parts_of_a_gpu(
    instance: Instance, gpu_type: int, shares: NDArray[np.int64], alone: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return φ of every application on a GPU type, (A,).

    Args:
        shares: Configurations with a share of it.
        alone: Seconds per epoch of every job alone on a share of it, (J,); inf where not allowed.
    """
    jobs, wanted = instance.jobs, instance.configurations
    kinds: dict[tuple[int, int], _Kind] = {}
    for c in shares.tolist():
        counted = np.bincount(
            jobs.application[np.isfinite(jobs.seconds_per_epoch[:, c])], minlength=len(jobs.applications)
        )
        for a in np.flatnonzero(counted).tolist():
            units, before = sim.share_units(wanted[c].share), kinds.get((a, wanted[c].priority))
            if before is not None:
                units = min(units, before.units)
            kinds[a, wanted[c].priority] = _Kind(a, units, wanted[c].priority, int((jobs.application == a).sum()))
    least = min(sim.share_units(wanted[c].share) for c in shares.tolist()) / at.UNITS
    part = np.full(len(jobs.applications), least)
    rows: list[NDArray[np.float64]] = []
    numbers = sim.sharing_numbers(instance)
    for members in _sets(sorted(kinds.values()), at.UNITS):
        if len(rows) == MOST_SETS:
            return part
        row = np.zeros(len(part))
        for kind, speed in zip(members, _speeds(instance, gpu_type, members, numbers), strict=True):
            row[kind.application] += speed
        rows.append(row)
    if not rows:
        return part
    from scipy.optimize import linprog  # type: ignore[import-untyped]  # noqa: PLC0415 - only bounds of shared GPUs need it

    sums, work = np.unique(np.array(rows), axis=0), jobs.epochs_needed * np.where(np.isfinite(alone), alone, 0.0)
    gain = np.bincount(jobs.application, work, len(part))
    found = linprog(
        -gain / max(gain.max(), 1e-300), A_ub=sums, b_ub=np.ones(len(sums)), bounds=(0.0, 1.0), method="highs"
    )
    if found.x is None:
        return part
    part = np.maximum(0.0, found.x)
    return np.asarray(part * SAFE / max(1.0, float((sums @ part).max())))


def _sets(kinds: list[_Kind], units: int, most: int | None = None) -> Iterator[tuple[_Kind, ...]]:
    for i, kind in enumerate(kinds):
        left = kind.jobs if i or most is None else most
        if kind.units <= units and left > 0:
            yield (kind,)
            for rest in _sets(kinds[i:], units - kind.units, left - 1):
                yield (kind, *rest)


def _speeds(instance: Instance, gpu_type: int, members: tuple[_Kind, ...], numbers: NDArray[np.float64]) -> list[float]:
    """Return the speed of every job of a set on one GPU, 1 as alone."""
    model = instance.find("shares")
    if isinstance(model, Interference):
        excess = model.slowdown[gpu_type] - 1.0
        beside = [kind.application for kind in members]
        return [1.0 / (1.0 + excess[a, beside].sum() - excess[a, a]) for a in beside]
    demand, filled = np.zeros(at.PRIORITIES), 0.0
    if isinstance(model, UtilisationModel):
        for kind in members:
            demand[kind.priority] += model.utilisation[gpu_type, kind.application]
        top = max(kind.priority for kind in members)
        first = [kind.application for kind in members if kind.priority == top]
        filled = model.filled_by(first, len(members) - len(first))
    return [sim.speed_by_utilisation(demand, kind.priority, filled, numbers) for kind in members]
