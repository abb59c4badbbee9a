"""What fits now: configurations that the nodes of a request can hold, jobs that may use one, and what that costs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gpusched_env.kernel import kernel
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.events import charge, pace
from gpusched_env.simulator.survival import bin_of, curve_of, expected_left, survival_after

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from gpusched_env.arrays import Floats
    from gpusched_env.model import Configuration
    from gpusched_env.simulator.run import Board
    from gpusched_experiments.service.cluster import ClusterNames
    from gpusched_experiments.service.fields import DecideRequest

BOOLS = np.bool_


def holds(names: ClusterNames, configuration: Configuration) -> bool:
    """Say whether the nodes that are there could hold a configuration if they were empty."""
    gpus = [node.gpus for node in names.nodes if node.gpu_type == configuration.gpu_type]
    return sum(own >= configuration.gpus_per_node for own in gpus) >= configuration.nodes


def held(names: ClusterNames) -> NDArray[BOOLS]:
    """Say it of every configuration, (C,)."""
    gpus = {v.name: np.array([n.gpus for n in names.nodes if n.gpu_type == v.name]) for v in names.gpu_types}
    none = np.zeros(0)
    able = [np.count_nonzero(gpus.get(c.gpu_type, none) >= c.gpus_per_node) >= c.nodes for c in names.configurations]
    return np.array(able, dtype=BOOLS)


def memory_gib(names: ClusterNames) -> NDArray[np.float64]:
    """Give the memory that a job has on each GPU of every configuration [GiB], (C,)."""
    of_type = {v.name: v.memory_gib for v in names.gpu_types}
    return np.array([of_type.get(c.gpu_type, 0.0) * c.share for c in names.configurations])


def within_quota(request: DecideRequest, names: ClusterNames) -> NDArray[BOOLS]:
    """Say which configurations take no more than the whole quota of every tenant, (T, C); without quotas (1, C)."""
    if request.cluster.tenancy != "quota" or not names.tenants:
        return np.ones((1, len(names.configurations)), dtype=BOOLS)
    quota = np.array([[tenant.gpus(c.gpu_type) for c in names.configurations] for tenant in names.tenants])
    within: NDArray[BOOLS] = np.array([c.gpus for c in names.configurations]) <= quota
    return within


def usable(
    request: DecideRequest,
    names: ClusterNames,
    seconds: NDArray[np.float64],
    needs_gib: NDArray[np.float64],
    tenant: NDArray[np.int64],
) -> NDArray[BOOLS]:
    """Say on which configurations each job could be if the cluster were empty, (J, C).

    Args:
        request: The request.
        names: Its cluster.
        seconds: Seconds per epoch, (J, C); inf: not on this one.
        needs_gib: What each job needs on every GPU [GiB], (J,).
        tenant: Index of each job's tenant, (J,).
    """
    within = within_quota(request, names)
    found: NDArray[BOOLS] = (
        np.isfinite(seconds)
        & held(names)[None, :]
        & (needs_gib[:, None] <= memory_gib(names)[None, :])
        & within[np.minimum(tenant, len(within) - 1)]
    )
    return found


ENERGY, TARDINESS, END_S, COLUMNS = 0, 1, 2, 3


@kernel
def expected_costs(board: Board) -> Floats:
    """Give energy [€], tardiness [€] and the expected end [s] of every active job, (A, COLUMNS); NaN where it waits."""
    jobs, active = board.jobs, board.active
    found = np.full((board.count[at.ACTIVE], COLUMNS), np.nan)
    for i in range(found.shape[0]):
        job = active[i]
        config = int(jobs[job, at.CONFIG])
        if config < 0:
            continue
        now = board.clock[at.NOW]
        ready, each_s, left = max(now, jobs[job, at.READY_S]), pace(board, job), expected_left(board, job)
        found[i, END_S] = ready + each_s * left
        found[i, ENERGY] = charge(board, job, config) * (found[i, END_S] - now)
        due = max(now, jobs[job, at.DUE])
        late_s = max(0.0, ready - due) + each_s * _epochs_after(board, job, max(0.0, due - ready) / each_s)
        found[i, TARDINESS] = jobs[job, at.WEIGHT] * late_s
    return found


@kernel
def _epochs_after(board: Board, job: int, epochs: float) -> float:
    """Give the epochs that a job is expected to do after the next `epochs` ones."""
    largest, done, curve = board.jobs[job, at.MAX_EPOCHS], board.jobs[job, at.EPOCHS], curve_of(board, job)
    then = min(1.0, (done + epochs) / largest)
    alive = curve.survival[bin_of(curve.edges, done / largest)]
    if alive <= 0.0:
        return (1.0 - then) * largest
    return survival_after(curve, then) / alive * largest
