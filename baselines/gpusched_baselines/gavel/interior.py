"""The optimum of a program of Gavel in the middle of all optima, as an interior-point method finds it.

The optimum is rarely unique: jobs that do not limit the level can share what is left in many ways. Gavel's authors
solved their programs with an interior-point method, which ends near the analytic centre of the optima: the one with
the largest product of all slacks that can be positive. A vertex, as of the simplex method, gives the rest to few jobs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from gpusched_env.arrays import Floats, Ints
from gpusched_env.kernel import kernel, lean_kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from gpusched_baselines.gavel.program import GavelDemand

STEPS = 200  # at most, of Newton's method; 20 to 40 are usual
GAP = 1e-8  # mean product of a slack and its dual value at the end, relative to that at the start
SHORTER = 0.2  # the product aimed at in a step, relative to the present one
SINGULAR = 1e-13  # added to the diagonal of a job's matrix, relative to its largest element
STAY = 0.95  # part of the way to the nearest bound


def central(
    demand: GavelDemand,
    worth: NDArray[np.float64],
    slope: NDArray[np.float64],
    late: NDArray[np.float64] | None = None,
) -> NDArray[np.float64]:
    """Maximise t with Σ_k worth[j, k] x[j, k] ≥ slope_j t / (1 - late_j t), in the middle of the optima.

    x ≥ 0, Σ_k x[j, k] ≤ 1 and Σ_j g[j, k] x[j, k] ≤ W_v, as in all programs. An option in which a job is not able to
    run takes part as any other, as in Gavel's programs, and has no share at the end.

    Args:
        worth: Value of a share of an option, (A, K).
        slope: The factor of every job on the level, > 0, (A,).
        late: Part of the level's unit that every job has lost already, ≥ 0, (A,); by default none.

    Returns:
        Shares of time, (A, K).
    """
    found = np.zeros(worth.shape)
    able = np.flatnonzero((worth.max(axis=1) > 0.0) & (slope > 0.0))
    options = np.flatnonzero(demand.capacity[demand.kind] > 0.0)
    if not len(able) or not len(options):
        return found
    mine = np.ix_(able, options)
    scale = np.maximum(worth[mine].max(axis=1), 1e-300)
    value, rise = worth[mine] / scale[:, None], slope[able] / scale
    kind, gpus = demand.kind[options], np.where(worth[mine] > 0.0, demand.gpus[mine], demand.size[able][:, None])
    kept = np.zeros(len(able)) if late is None else late[able]
    used = np.bincount(kind, gpus.sum(axis=0), len(demand.capacity))
    part = 0.5 * min(1.0 / len(options), float((demand.capacity[kind] / used[kind]).min()))
    x = np.full(value.shape, part)
    ratio = float((value.sum(axis=1) * part / rise / (1.0 + kept * value.sum(axis=1) * part / rise)).min())
    unit = 0.5 * ratio  # the level is counted in units of that at the start
    _climb(x, RowsOfJobs(value, rise * unit, kept * unit, gpus / demand.capacity[kind], kind))
    found[mine] = np.where(worth[mine] > 0.0, x, 0.0)
    return found / np.maximum(1.0, found.sum(axis=1))[:, None]


class RowsOfJobs(NamedTuple):
    """The rows of a program for A jobs with K options each.

    Attributes:
        value: Value of a share, (A, K).
        rise: Need at a level t: rise t / (1 - late t), (A,).
        late: See there.
        part: GPUs of an option as a part of those of its type, (A, K).
        kind: GPU types of the options, (K,).
    """

    value: Floats
    rise: Floats
    late: Floats
    part: Floats
    kind: Ints


class InteriorPoint(NamedTuple):
    """A point of the method: S slacks, first of the jobs' needs, then of their time, then of the V GPU types.

    Attributes:
        x: The shares, (A, K).
        z: Their dual values, (A, K).
        slack: The slacks, (S,).
        dual: Their dual values, (S,).
        need: The jobs' needs with their first and second derivatives by the level, (3, A).
    """

    x: Floats
    z: Floats
    slack: Floats
    dual: Floats
    need: Floats


@kernel
def _climb(x: Floats, rows: RowsOfJobs) -> None:
    """Move the shares x, (A, K), from where the level is 1 to the optimum, by a primal-dual interior-point method.

    At the start they must be strictly inside all bounds, and meet more than level 1.
    """
    jobs, options = x.shape
    slacks, level = 2 * jobs + int(rows.kind.max()) + 1, 1.0
    slack, moved, need, dx = np.empty(slacks), np.empty(slacks), np.empty((3, jobs)), np.empty(x.shape)
    _write_slacks(slack, need, x, level, rows)
    mu = 1.0 / (need[1] / slack[:jobs]).sum()
    point, end = InteriorPoint(x, mu / x, slack, mu / slack, need), GAP * mu
    for _ in range(STEPS):
        aim = max(end, SHORTER * mu)
        dt = _direction(dx, point, rows, aim)
        _write_moves(moved, dx, dt, point, rows)
        go, before = _longest(point, dx, moved, aim), slack.copy()
        _write_slacks(slack, need, x + go * dx, level + go * dt, rows)
        while go > 1e-9 and (slack <= 0.2 * (1.0 - STAY) * before).any():  # the needs bend
            go *= 0.7
            _write_slacks(slack, need, x + go * dx, level + go * dt, rows)
        point.dual[:] += go * ((aim - point.dual * moved) / before - point.dual)
        point.z[:] += go * ((aim - point.z * dx) / x - point.z)
        x += go * dx
        level += go * dt
        mu = ((point.dual * slack).sum() + (point.z * x).sum()) / (slacks + jobs * options)
        if (mu < 2.0 * end and go > 0.9) or not go > 1e-9:
            break


@lean_kernel
def reach(now: float, change: float) -> float:
    """Return how far a value that must stay positive may move, 1 for the whole change."""
    return min(1.0, -STAY * now / change) if change < 0.0 else 1.0


@kernel
def _longest(point: InteriorPoint, dx: Floats, moved: Floats, aim: float) -> float:
    """Return how far a step may go, 1 for all of it, so that no share and no dual value reaches 0."""
    go = 1.0
    for i in range(moved.shape[0]):
        now = point.dual[i]
        go = min(go, reach(now, (aim - now * moved[i]) / point.slack[i] - now))
    for j in range(dx.shape[0]):
        for k in range(dx.shape[1]):
            now, share = point.z[j, k], point.x[j, k]
            go = min(go, reach(now, (aim - now * dx[j, k]) / share - now), reach(share, dx[j, k]))
    return go


@kernel
def _write_slacks(slack: Floats, need: Floats, x: Floats, t: float, rows: RowsOfJobs) -> None:
    """Write the slacks and the needs at the shares x and the level t."""
    jobs = x.shape[0]
    slack[2 * jobs :] = 1.0
    for j in range(jobs):
        rest = 1.0 - rows.late[j] * t
        need[0, j], need[1, j] = rows.rise[j] * t / rest, rows.rise[j] / rest**2
        need[2, j] = 2.0 * rows.rise[j] * rows.late[j] / rest**3
        slack[j] = -need[0, j] if rest > 0.0 else -np.inf
        slack[jobs + j] = 1.0
        for k in range(x.shape[1]):
            slack[j] += rows.value[j, k] * x[j, k]
            slack[jobs + j] -= x[j, k]
            slack[2 * jobs + rows.kind[k]] -= rows.part[j, k] * x[j, k]


@kernel
def _write_moves(moved: Floats, dx: Floats, dt: float, point: InteriorPoint, rows: RowsOfJobs) -> None:
    jobs = dx.shape[0]
    moved[2 * jobs :] = 0.0
    for j in range(jobs):
        moved[j], moved[jobs + j] = -point.need[1, j] * dt, 0.0
        for k in range(dx.shape[1]):
            moved[j] += rows.value[j, k] * dx[j, k]
            moved[jobs + j] -= dx[j, k]
            moved[2 * jobs + rows.kind[k]] -= rows.part[j, k] * dx[j, k]


@kernel
def _solve_job(j: int, types: int, point: InteriorPoint, rows: RowsOfJobs, aim: float) -> Floats:
    """Solve for the step of a job's shares: for each GPU type, for the level, and for the rest, (K, V + 2)."""
    jobs, options = point.x.shape
    slack, value = point.slack, rows.value
    steep, own = point.dual[j] / slack[j], point.dual[jobs + j] / slack[jobs + j]
    hessian, right = np.empty((options, options)), np.zeros((options, types + 2))
    for k in range(options):
        for other in range(options):
            hessian[k, other] = steep * value[j, k] * value[j, other] + own
        hessian[k, k] += point.z[j, k] / point.x[j, k]
        right[k, rows.kind[k]] = rows.part[j, k]
        right[k, types] = steep * point.need[1, j] * value[j, k]
        gpu = rows.part[j, k] / slack[2 * jobs + rows.kind[k]]
        right[k, types + 1] = aim * (value[j, k] / slack[j] - 1.0 / slack[jobs + j] - gpu + 1.0 / point.x[j, k])
    greatest = np.diag(hessian).max()
    for k in range(options):
        hessian[k, k] += SINGULAR * greatest
    return np.linalg.solve(hessian, right).astype(np.float64)


@kernel
def _direction(dx: Floats, point: InteriorPoint, rows: RowsOfJobs, aim: float) -> float:
    """Write Newton's step of the shares, and return that of the level.

    The matrix of a job's options is small; jobs are coupled by the level and the GPU types alone, so that these V + 1
    unknowns are found first.
    """
    jobs, options = dx.shape
    types, need, dual, slack = point.slack.shape[0] - 2 * jobs, point.need, point.dual, point.slack
    system, known, solved = np.zeros((types + 1, types + 1)), np.zeros(types + 1), np.empty((jobs, options, types + 2))
    for v in range(types):
        system[v, v] = slack[2 * jobs + v] / dual[2 * jobs + v]
    known[types] = 1.0
    sign = np.ones(types + 1)
    sign[types] = -1.0
    for j in range(jobs):
        solved[j] = _solve_job(j, types, point, rows, aim)
        steep = dual[j] / slack[j]
        system[types, types] += steep * need[1, j] ** 2 + dual[j] * need[2, j]
        known[types] -= need[1, j] * aim / slack[j]
        for k in range(options):
            v, down = rows.kind[k], steep * need[1, j] * rows.value[j, k]
            system[v] += sign * rows.part[j, k] * solved[j, k, : types + 1]
            system[types] += sign * down * solved[j, k, : types + 1]
            known[v] += rows.part[j, k] * solved[j, k, types + 1]
            known[types] += down * solved[j, k, types + 1]
    found = np.linalg.solve(system, known)
    for j in range(jobs):
        for k in range(options):
            dx[j, k] = solved[j, k, types + 1] - (sign * found * solved[j, k, : types + 1]).sum()
    return float(found[types])
