"""Seconds per epoch of every job on every configuration, and the load that jobs offer."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gpusched_env.errors import InputError
from gpusched_env.workload.interference_model import SharingJobs, SharingTimes

if TYPE_CHECKING:
    from numpy.random import Generator
    from numpy.typing import NDArray

    from gpusched_env.model import Instance
    from gpusched_env.workload.interference_model import InterferenceModel
    from gpusched_env.workload.site import Site
    from gpusched_env.workload.tables.applications import Application


def job_times(
    table: NDArray[np.float64],
    applications: tuple[Application, ...],
    site: Site,
    choice: NDArray[np.int64],
    model: InterferenceModel,
    rng: Generator,
) -> SharingTimes:
    """Give τ of every job on every configuration, shape (J, C); inf where it does not fit, or is not known.

    Args:
        table: What `application_times` gives.
        applications: The applications.
        site: The cluster and its configurations.
        choice: Index of every job's application, shape (J,).
        model: What sharing a GPU costs; asked only if a configuration shares one.
        rng: Randomness of the model.

    Raises:
        InputError: The model's times have another shape.
    """
    seconds, shared = table[choice], site.of_kind("shared")
    if not np.any(shared):
        return SharingTimes(seconds)
    jobs = SharingJobs(
        alone_s=seconds[:, shared],
        configurations=tuple(c for c in site.configurations if c.kind == "shared"),
        gpu_types=site.gpu_types,
        application=choice,
        applications=tuple(application.name for application in applications),
    )
    times = model.sharing_times(jobs, rng)
    if np.shape(times.seconds_per_epoch) != jobs.alone_s.shape:
        shape = f"an array (jobs, shared configurations) of shape {jobs.alone_s.shape}"
        raise InputError("interference.seconds_per_epoch", np.shape(times.seconds_per_epoch), shape)
    seconds[:, shared] = times.seconds_per_epoch
    return SharingTimes(seconds, times.interference)


def application_times(applications: tuple[Application, ...], site: Site) -> NDArray[np.float64]:
    """Give τ of every application on every configuration, shape (A, C); inf where its memory does not fit.

    Raises:
        InputError: An application fits no single-node configuration, no application fits a fraction, or none was
            measured on several nodes though some are offered.
    """
    table = np.array([[application.time_s(c) for c in site.configurations] for application in applications])
    memory = np.array([application.memory_gib for application in applications])
    table[memory[:, None] > site.memory_gib[None, :]] = np.inf
    known = np.isfinite(table)
    single = site.of_kind("single-node")
    for row, application in enumerate(applications):
        if not np.any(known[row, single]):
            raise _fits_nowhere(application, site)
    _check_fractions(applications, site, known)
    _check_nodes(applications, site, known)
    return table


def _fits_nowhere(application: Application, site: Site) -> InputError:
    """Say why: too much memory on every GPU type, or never measured on what the cluster offers."""
    has = _memory_of_types(site)
    if application.memory_gib > max(has.values()):
        allowed = f"applications whose memory fits: it needs {application.memory_gib:g} GiB, the GPUs have {_list(has)}"
    else:
        names = ", ".join(c.name for c in site.configurations if c.kind == "single-node")
        allowed = f"applications measured, and with memory enough, on what the cluster offers: {names}"
    return InputError("jobs.applications", application.name, allowed)


def _check_fractions(applications: tuple[Application, ...], site: Site, known: NDArray[np.bool_]) -> None:
    """Check that every fraction is one that some application fits on some GPU type."""
    for fraction in sorted({c.share for c in site.configurations if c.kind == "shared"}):
        if not np.any(known[:, [c.share == fraction for c in site.configurations]]):
            least = min(applications, key=lambda application: application.memory_gib)
            allowed = (
                f"fractions that one of the applications fits: {least.name} needs least, {least.memory_gib:g} GiB; the "
                f"GPUs have {_list(_memory_of_types(site))}"
            )
            raise InputError("sharing.fractions", fraction, allowed)


def _check_nodes(applications: tuple[Application, ...], site: Site, known: NDArray[np.bool_]) -> None:
    """Check that some application was measured on some of the several whole nodes that are offered."""
    several = site.of_kind("multi-node")
    if not np.any(several) or np.any(known[:, several]):
        return
    counts = [1, *sorted({c.nodes for c in site.configurations if c.nodes > 1})]
    measured = sorted({(v, g, k) for application in applications for v, k, g in application.whole_nodes_s})
    names = ", ".join(f"{k}*{v}x{g}" for v, g, k in measured) or "none"
    raise InputError(
        "jobs.node_counts", counts, f"numbers of nodes that one of the applications was measured on: {names}"
    )


def _memory_of_types(site: Site) -> dict[str, float]:
    """Give the memory of a GPU of every type that offers something [GiB]."""
    offers = {c.gpu_type for c in site.configurations}
    return {v.name: v.memory_gib for v in site.gpu_types if v.name in offers}


def _list(memory: dict[str, float]) -> str:
    return ", ".join(f"{name} {gib:g}" for name, gib in memory.items())


def offered_load(instance: Instance) -> float:
    """Give the load that the jobs offer: the time that the cluster would need for them, over that in which they come.

    The cluster's time for a job is what all its GPUs together need for the epochs that the job turns out to need, each
    GPU working alone at its own speed, those aside on which the job may not run: X_j / Σ_v (GPUs of v / τ_{j,v}). So a
    load of 1 keeps every GPU busy if every job runs on one GPU; more GPUs for a job are less efficient, and bind more.

    Returns:
        The load; inf if all jobs come at once or there is one job.
    """
    jobs = instance.jobs
    speed = np.zeros(len(jobs.submission_s))
    for c, configuration in enumerate(instance.configurations):
        if configuration.gpus == 1.0 and configuration.kind == "single-node":
            gpus = sum(node.gpus for node in instance.nodes if node.gpu_type == configuration.gpu_type)
            speed += gpus / jobs.seconds_per_epoch[:, c]
    span = float(jobs.submission_s[-1] - jobs.submission_s[0])
    with np.errstate(divide="ignore"):
        needed = float(np.sum(jobs.epochs_needed / speed))
    return needed / span if span > 0.0 else np.inf
