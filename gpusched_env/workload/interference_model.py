"""Times of jobs on their configurations, models of GPU sharing (the extension point), and the load of jobs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

import numpy as np

from gpusched_env.errors import InputError
from gpusched_env.model import Configuration, GpuType, Instance, Interference, SharedMemory, UtilisationModel
from gpusched_env.workload.scenario.sharing import LEAST_INFLATION, Sharing
from gpusched_env.workload.tables.applications import (
    Application,
    builtin_filled,
    builtin_max_inflation,
    builtin_slowdowns,
    builtin_utilisations,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.random import Generator
    from numpy.typing import NDArray

    from gpusched_env.workload.site import Site


@dataclass(frozen=True, slots=True, eq=False)
class SharingJobs:
    """Jobs and the shared configurations C' that they are offered: the input of an interference model.

    Attributes:
        alone_s: Time of one epoch alone on the GPU [s], shape (J, C'); inf where the job's memory exceeds the share.
        configurations: The shared configurations.
        gpu_types: The GPU types of the instance.
        application: Index into `applications`, shape (J,).
        applications: Names of the applications.
        known: The applications, where a model needs more of them than their names.
    """

    alone_s: NDArray[np.float64]
    configurations: tuple[Configuration, ...]
    gpu_types: tuple[GpuType, ...]
    application: NDArray[np.int64]
    applications: tuple[str, ...]
    known: tuple[Application, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class SharingTimes:
    """The output of an interference model for jobs.

    Attributes:
        seconds_per_epoch: Time of one epoch [s], shape (J, C'): with all inflation, or alone on the GPU if there
            is an `interference`.
        interference: How co-runners on one GPU affect one another, if the times depend on the co-runners.
    """

    seconds_per_epoch: NDArray[np.float64]
    interference: Interference | UtilisationModel | None = None


class InterferenceModel(Protocol):
    """Model of the time of jobs on shared GPUs."""

    def sharing_times(self, jobs: SharingJobs, rng: Generator) -> SharingTimes:
        """Return the jobs' times on the shared configurations.

        Args:
            jobs: The jobs and the configurations.
            rng: Randomness; its own stream of the seed.
        """


@dataclass(frozen=True, slots=True)
class RandomInflation:
    """The published model: an application draws one number for all GPU types and fractions, whatever its co-runners.

    Its inflations are at that part of the range from 1.01 to a maximum that depends on GPU type and fraction, so that a
    smaller fraction never inflates less than a larger one.

    Attributes:
        greatest: Greatest inflation by fraction; for other fractions that of the built-in table, whose row is the
            largest fraction not above the one asked for.
    """

    greatest: Mapping[float, float] = field(default_factory=dict)

    def sharing_times(self, jobs: SharingJobs, rng: Generator) -> SharingTimes:
        """Draw one number for every application, those included that no job has."""
        greatest = np.array([self._greatest(c.gpu_type, c.share) for c in jobs.configurations])
        uniform = rng.random(len(jobs.applications))[jobs.application][:, None]
        return SharingTimes(jobs.alone_s * (LEAST_INFLATION + uniform * (greatest - LEAST_INFLATION)))

    def _greatest(self, gpu_type: str, fraction: float) -> float:
        if fraction in self.greatest:
            return self.greatest[fraction]
        rows = {row: value for (name, row), value in builtin_max_inflation().items() if name == gpu_type}
        known = [row for row in rows if row <= fraction]
        if not known:
            allowed = f"a number for each fraction, since {gpu_type} has none in the package's table"
            raise InputError("sharing.max_inflation", None, allowed)
        return rows[max(known)]


@dataclass(frozen=True, slots=True)
class MeasuredPairs:
    """Pairs of applications on one GPU, from the built-in table: a job is slowed by its co-runners.

    Attributes:
        fastest: Whether a share goes to the open GPU on which it is fastest; else to the fullest.
    """

    fastest: bool = False

    def sharing_times(self, jobs: SharingJobs, rng: Generator) -> SharingTimes:  # noqa: ARG002 - nothing is drawn
        """Return the times alone, and the slow-downs of all pairs."""
        table, names = builtin_slowdowns(), jobs.applications
        for v in jobs.gpu_types:
            for name in names:
                if (v.name, name, name) not in table:
                    allowed = f"random: no pairs are known of {name} on {v.name}"
                    raise InputError("sharing.interference", "measured", allowed)
        slowdown = [[[table[v.name, one, other] for other in names] for one in names] for v in jobs.gpu_types]
        return SharingTimes(jobs.alone_s, Interference(np.array(slowdown), self.fastest))


@dataclass(frozen=True, slots=True)
class ByUtilisation:
    """Jobs divide the time of a GPU (`UtilisationModel`).

    Attributes:
        sharing: The scenario's section.
    """

    sharing: Sharing

    def sharing_times(self, jobs: SharingJobs, rng: Generator) -> SharingTimes:
        """Return the times alone, and the utilisations: from the table, or drawn for every application, as gaps are."""
        sharing, shape = self.sharing, (len(jobs.gpu_types), 1)
        idle = [v.idle_gpu_power_w or sharing.idle_share * v.gpu_power_w for v in jobs.gpu_types]
        utilisation = UtilisationModel(
            np.tile(rng.uniform(*sharing.utilisation, len(jobs.applications)), shape)
            if sharing.utilisation
            else _tabulated(jobs),
            sharing.overhead,
            _filled(sharing.gaps, len(jobs.applications), rng) if sharing.gaps else sharing.filled,
            sharing.least_speed,
            np.array(idle) if sharing.power == "utilisation" else None,
            sharing.fastest,
            profile_s=sharing.profile_s,
            memory=_shared_memory(sharing, jobs) if sharing.memory == "moves" else None,
        )
        return SharingTimes(jobs.alone_s, utilisation)


def _shared_memory(sharing: Sharing, jobs: SharingJobs) -> SharedMemory:
    """Return how memory moves: the working minimum is the state, the time of a mini-batch that on one GPU."""
    for application in jobs.known:
        if not application.batches_per_epoch:
            raise InputError("sharing.memory", "moves", f"parts: the mini-batches of {application.name} are not known")
    # A type on which an application has no time on one GPU has no share of it either: any number will do.
    iteration_s = [
        [each.seconds_per_epoch.get((v.name, 1), 1.0) / each.batches_per_epoch for each in jobs.known]
        for v in jobs.gpu_types
    ]
    need = np.array([each.memory_gib for each in jobs.known])
    least = np.minimum(need, [each.state_gib for each in jobs.known])
    return SharedMemory(need, least, np.array(iteration_s), sharing.host_gb_per_s, sharing.adapt_s)


def _filled(gaps: tuple[int, ...], applications: int, rng: Generator) -> NDArray[np.float64]:
    """Draw the gap of every application; return which part of it so many others fill, (A, M)."""
    table = builtin_filled()
    most = max(waiting for _, waiting in table)
    drawn = [gaps[i] for i in rng.integers(len(gaps), size=applications)]
    return np.array([[table[every, waiting] for waiting in range(1, most + 1)] for every in drawn])


def _tabulated(jobs: SharingJobs) -> NDArray[np.float64]:
    table = builtin_utilisations()
    for v in jobs.gpu_types:
        for name in jobs.applications:
            if (v.name, name) not in table:
                raise InputError(
                    "sharing.utilisation", None, f"a range to draw from: no utilisation is known of {name} on {v.name}"
                )
    return np.array([[table[v.name, name] for name in jobs.applications] for v in jobs.gpu_types])


def interference_model(sharing: Sharing) -> InterferenceModel:
    if sharing.interference == "utilisation":
        return ByUtilisation(sharing)
    if sharing.interference == "measured":
        return MeasuredPairs(sharing.fastest)
    return RandomInflation(sharing.own_max_inflation())


def job_times(
    table: NDArray[np.float64],
    applications: tuple[Application, ...],
    site: Site,
    choice: NDArray[np.int64],
    model: InterferenceModel,
    rng: Generator,
) -> SharingTimes:
    """Return τ of every job on every configuration, shape (J, C); inf where it does not fit, or is not known.

    Args:
        choice: Index of every job's application, shape (J,).
        site: The site, where at least one configuration shares GPUs.
        model: The model of GPU sharing.
    """
    seconds, shared = table[choice], site.of_kind("shared")
    jobs = SharingJobs(
        alone_s=seconds[:, shared],
        configurations=tuple(c for c in site.configurations if c.kind == "shared"),
        gpu_types=site.gpu_types,
        application=choice,
        applications=tuple(application.name for application in applications),
        known=applications,
    )
    times = model.sharing_times(jobs, rng)
    if np.shape(times.seconds_per_epoch) != jobs.alone_s.shape:
        shape = f"an array (jobs, shared configurations) of shape {jobs.alone_s.shape}"
        raise InputError("interference.seconds_per_epoch", np.shape(times.seconds_per_epoch), shape)
    seconds[:, shared] = times.seconds_per_epoch
    return SharingTimes(seconds, times.interference)


def offered_load(instance: Instance) -> float:
    """Return the load that the jobs offer: the time that the cluster would need for them, over their span.

    The cluster's time for a job is the time that all its GPUs together take for the job's realised epochs, each
    GPU alone at its own speed, without those on which the job may not run: X_j / Σ_v (GPUs of v / τ_{j,v}). So a
    load of 1 keeps every GPU busy if every job runs on one GPU; more GPUs for a job are less efficient, and use more
    GPU time. Of a type on which the job has no time on one GPU, the fewest GPUs count, each with its part of the speed.

    Returns:
        The load; inf if all jobs arrive at once or there is one job.
    """
    jobs = instance.jobs
    speed = np.zeros(len(jobs.submission_s))
    for gpu_type in dict.fromkeys(configuration.gpu_type for configuration in instance.configurations):
        gpus = sum(node.gpus for node in instance.nodes if node.gpu_type == gpu_type)
        of_type = np.zeros(len(speed))
        for c, configuration in enumerate(instance.configurations):
            single = configuration.kind == "single-node" and configuration.power_limit == 1.0
            if configuration.gpu_type == gpu_type and single:
                each = gpus / (jobs.seconds_per_epoch[:, c] * configuration.gpus)
                of_type = np.where(of_type == 0.0, each, of_type)
        speed += of_type
    span = float(jobs.submission_s[-1] - jobs.submission_s[0])
    with np.errstate(divide="ignore"):
        needed = float(np.sum(jobs.epochs_needed / speed))
    return needed / span if span > 0.0 else np.inf
