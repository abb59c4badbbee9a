"""The optimum of a program of Gavel in the middle of all optima, as an interior-point method finds it.

The optimum is rarely unique: jobs that do not limit the level can share what is left in many ways. Gavel's authors
solved their programs with an interior-point method, which ends near the analytic centre of the optima: the one with
the largest product of all slacks that can be positive. A vertex, as of the simplex method, gives the rest to few jobs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gpusched_env.kernel import kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from gpusched_baselines.gavel.program import GavelDemand
    from gpusched_env.arrays import Floats, Ints

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
        demand: The jobs and the GPUs.
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
    _climb(x, value, rise * unit, kept * unit, gpus / demand.capacity[kind], kind)
    found[mine] = np.where(worth[mine] > 0.0, x, 0.0)
    return found / np.maximum(1.0, found.sum(axis=1))[:, None]


@kernel
def _climb(x: Floats, value: Floats, rise: Floats, late: Floats, part: Floats, kind: Ints) -> None:
    """Move the shares x, (A, K), from where the level is 1 to the optimum, by a primal-dual interior-point method.

    Args:
        x: Shares strictly inside all bounds with which more than level 1 is met; the optimum at the end.
        value: Value of a share, (A, K).
        rise: Need at a level t: rise t / (1 - late t), (A,).
        late: See there.
        part: GPUs of an option as a part of those of its type, (A, K).
        kind: GPU types of the options, (K,).
    """
    jobs, options = x.shape
    slacks = 2 * jobs + int(kind.max()) + 1  # of the jobs' needs, of their time, of the GPU types
    slack, moved, dual = np.empty(slacks), np.empty(slacks), np.empty(slacks)
    level, need = np.ones(1), np.empty((3, jobs))
    _write_slacks(slack, x, level[0], value, rise, late, part, kind, need)
    mu = 1.0 / (need[1] / slack[:jobs]).sum()
    dual[:] = mu / slack
    z = mu / x
    end = GAP * mu
    dx, hessian, right = np.empty(x.shape), np.empty((options, options)), np.empty((options, slacks - 2 * jobs + 2))
    for _ in range(STEPS):
        aim = max(end, SHORTER * mu)
        dt = _direction(dx, x, z, slack, dual, value, part, kind, need, aim, hessian, right)
        # how the slacks move, to first order, and the duals with them
        _write_moves(moved, dx, dt, value, part, kind, need)
        go = 1.0
        for i in range(slacks):
            if dual[i] > 0.0:
                change = (aim - dual[i] * moved[i]) / slack[i] - dual[i]
                if change < 0.0:
                    go = min(go, -STAY * dual[i] / change)
        for j in range(jobs):
            for k in range(options):
                change = (aim - z[j, k] * dx[j, k]) / x[j, k] - z[j, k]
                if change < 0.0:
                    go = min(go, -STAY * z[j, k] / change)
                if dx[j, k] < 0.0:
                    go = min(go, -STAY * x[j, k] / dx[j, k])
        before = slack.copy()
        while True:
            _write_slacks(slack, x + go * dx, level[0] + go * dt, value, rise, late, part, kind, need)
            if (slack > (1.0 - STAY) * 0.2 * before).all():
                break
            go *= 0.7
        for i in range(slacks):
            dual[i] += go * ((aim - dual[i] * moved[i]) / before[i] - dual[i])
        z += go * ((aim - z * dx) / x - z)
        x += go * dx
        level[0] += go * dt
        mu = ((dual * slack).sum() + (z * x).sum()) / (slacks + jobs * options)
        if mu < 2.0 * end and go > 0.9:
            break


@kernel
def _write_slacks(
    slack: Floats,
    x: Floats,
    t: float,
    value: Floats,
    rise: Floats,
    late: Floats,
    part: Floats,
    kind: Ints,
    need: Floats,
) -> None:
    """Write the slacks, and the jobs' needs at the level t with their first and second derivatives, (3, A)."""
    jobs = x.shape[0]
    slack[2 * jobs :] = 1.0
    for j in range(jobs):
        rest = 1.0 - late[j] * t
        need[0, j], need[1, j] = rise[j] * t / rest, rise[j] / rest**2
        need[2, j] = 2.0 * rise[j] * late[j] / rest**3
        slack[j] = -need[0, j] if rest > 0.0 else -1.0
        slack[jobs + j] = 1.0
        for k in range(x.shape[1]):
            slack[j] += value[j, k] * x[j, k]
            slack[jobs + j] -= x[j, k]
            slack[2 * jobs + kind[k]] -= part[j, k] * x[j, k]


@kernel
def _write_moves(moved: Floats, dx: Floats, dt: float, value: Floats, part: Floats, kind: Ints, need: Floats) -> None:
    """Write how the slacks change to first order with a step."""
    jobs = dx.shape[0]
    moved[2 * jobs :] = 0.0
    for j in range(jobs):
        moved[j], moved[jobs + j] = -need[1, j] * dt, 0.0
        for k in range(dx.shape[1]):
            moved[j] += value[j, k] * dx[j, k]
            moved[jobs + j] -= dx[j, k]
            moved[2 * jobs + kind[k]] -= part[j, k] * dx[j, k]


@kernel
def _direction(
    dx: Floats,
    x: Floats,
    z: Floats,
    slack: Floats,
    dual: Floats,
    value: Floats,
    part: Floats,
    kind: Ints,
    need: Floats,
    aim: float,
    hessian: Floats,
    right: Floats,
) -> float:
    """Write Newton's step of the shares, and return that of the level.

    The matrix of a job's options is small; jobs are coupled by the level and the GPU types alone, so that these V + 1
    unknowns are found first.
    """
    jobs, options = x.shape
    types = slack.shape[0] - 2 * jobs
    system, known = np.zeros((types + 1, types + 1)), np.zeros(types + 1)
    solved = np.empty((jobs, options, types + 2))
    for v in range(types):
        own = dual[2 * jobs + v] / slack[2 * jobs + v]
        system[v, v] = 1.0 / own
    known[types] = 1.0
    for j in range(jobs):
        steep, own = dual[j] / slack[j], dual[jobs + j] / slack[jobs + j]
        right[:] = 0.0
        for k in range(options):
            for other in range(options):
                hessian[k, other] = steep * value[j, k] * value[j, other] + own
            hessian[k, k] += z[j, k] / x[j, k]
            right[k, kind[k]] = part[j, k]
            right[k, types] = steep * need[1, j] * value[j, k]
            gpu = slack[2 * jobs + kind[k]]
            right[k, types + 1] = aim * (
                value[j, k] / slack[j] - 1.0 / slack[jobs + j] - part[j, k] / gpu + 1.0 / x[j, k]
            )
        most = 0.0
        for k in range(options):
            most = max(most, hessian[k, k])
        for k in range(options):
            hessian[k, k] += SINGULAR * most
        solved[j] = np.linalg.solve(hessian, right)
        system[types, types] += steep * need[1, j] ** 2 + dual[j] * need[2, j]
        known[types] -= need[1, j] * aim / slack[j]
        for k in range(options):
            v, down = kind[k], steep * need[1, j] * value[j, k]
            for c in range(types + 1):
                sign = -1.0 if c == types else 1.0
                system[v, c] += sign * part[j, k] * solved[j, k, c]
                system[types, c] += sign * down * solved[j, k, c]
            known[v] += part[j, k] * solved[j, k, types + 1]
            known[types] += down * solved[j, k, types + 1]
    found = np.linalg.solve(system, known)
    for j in range(jobs):
        for k in range(options):
            dx[j, k] = solved[j, k, types + 1] + found[types] * solved[j, k, types]
            for v in range(types):
                dx[j, k] -= found[v] * solved[j, k, v]
    return float(found[types])
