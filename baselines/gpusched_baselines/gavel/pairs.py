"""Two jobs on one GPU (Gavel's space sharing): pairs as options of the program, and their optimum."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from gpusched_env.arrays import Floats, Ints
from gpusched_env.simulator.kernels import at, kernel, lean_kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from gpusched_baselines.gavel.program import GavelDemand
    from gpusched_env.simulator.kernels import View

STEPS, GAP, SHORTER, STAY = 100, 1e-8, 0.15, 0.95  # as in `interior`


@dataclass(frozen=True, slots=True, eq=False)
class Pairs:
    """What jobs do in pairs, each pair on one GPU: A jobs, V types, P applications.

    Attributes:
        config: The share with which a job is half of a pair on every type, (A, V); -1: none.
        alone: Its epochs per second there with no co-runner, (A, V); 0 where there is none.
        application: The application of every job, (A,).
        slowdown: Factor on the time of an application with a co-runner, (V, P, P); inf: the two do not fit.
    """

    config: NDArray[np.int64]
    alone: NDArray[np.float64]
    application: NDArray[np.int64]
    slowdown: NDArray[np.float64]

    def speed(self, one: NDArray[np.int64], other: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the epochs per second of some jobs beside others, (N, V); 0 where one of them does not run."""
        factor = self.slowdown[:, self.application[one], self.application[other]].T
        return np.where(self.alone[other] > 0.0, self.alone[one] / factor, 0.0)


NO_FIT = 1e3  # slow-downs from this on stand for pairs that do not fit on a GPU


def pairs_of(view: View, jobs: NDArray[np.int64]) -> Pairs:
    """Find the shares of a half or a little less, with which jobs can be pairs, and their speeds.

    A half is a share above a third and of at most a half, the largest that there is, with priority 0: two fit on a GPU,
    three do not. Without a model of interference co-runners do not slow one another down.
    """
    configs, types, facts = view.configs, len(view.capacity), view.board.facts
    units, kind = configs[:, at.CONFIG_UNITS], configs[:, at.CONFIG_TYPE]
    half = (3 * units > at.UNITS) & (2 * units <= at.UNITS) & (configs[:, at.CONFIG_PRIORITY] == 0)
    application = view.jobs[jobs, at.APPLICATION].astype(np.int64)
    config, alone = np.full((len(jobs), types), -1), np.zeros((len(jobs), types))
    for v in range(types):
        mine = np.flatnonzero(half & (kind == v))
        if len(mine):
            c = int(mine[units[mine].argmax()])
            planned = facts.planned[application, c] if len(facts.planned) else 1.0
            seconds = view.tau[jobs, c] / planned
            config[:, v] = np.where(np.isfinite(seconds), c, -1)
            alone[:, v] = 1.0 / seconds
    return Pairs(config, alone, application, _slowdown(facts.slowdown, facts.utilisation, types, application))


def _slowdown(
    measured: NDArray[np.float64], utilisation: NDArray[np.float64], types: int, application: NDArray[np.int64]
) -> NDArray[np.float64]:
    if len(measured):
        return np.where(measured < NO_FIT, measured, np.inf)
    if len(utilisation):
        return np.maximum(1.0, utilisation[:, :, None] + utilisation[:, None, :])
    most = int(application.max(initial=0)) + 1
    return np.ones((types, most, most))


def packed_las(demand: GavelDemand, pairs: Pairs) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Maximise the least time of a job as if all types were equally fast, alone and in pairs, each of which is an option.

    thr_j counts what j does alone and in pairs; a job's time alone and in pairs is at most 1; a pair takes one GPU. Jobs
    that are alike have the same shares in the middle of the optima, so that they are one row of the program.

    Returns:
        Shares of time alone, (A, K), and of pairs i < j, (A, A, K); 0 elsewhere.
    """
    size, factor = demand.size, demand.size / (demand.weight * demand.proportional)
    rows = np.column_stack([demand.speed, demand.gpus, pairs.alone, factor, pairs.application])
    _, first, kind = np.unique(rows, axis=0, return_index=True, return_inverse=True)
    kind = kind.reshape(-1)
    copies = np.bincount(kind).astype(np.float64)
    one, other = np.triu_indices(len(first))
    may = (size[first[one]] == 1.0) & (size[first[other]] == 1.0) & ((one != other) | (copies[one] > 1.0))
    one, other = one[may], other[may]
    same = one == other
    number = np.where(same, copies[one] * (copies[one] - 1.0) / 2.0, copies[one] * copies[other])
    fast = pairs.speed(first[one], first[other]), pairs.speed(first[other], first[one])
    able = (fast[0] > 0.0) & (fast[1] > 0.0)
    values = [np.where(able, f * factor[first[a]][:, None], 0.0) for f, a in zip(fast, (one, other), strict=True)]
    alone, packed = _solve(demand, first, copies, factor, (one, other, number, values))
    alone = np.where(demand.speed > 0.0, (alone / copies[:, None])[kind], 0.0)
    table = np.zeros((len(first), len(first), alone.shape[1]))
    table[one, other] = table[other, one] = np.where(able, packed / number[:, None], 0.0)
    x = table[kind[:, None], kind[None, :]]
    x[np.tril_indices(len(kind))] = 0.0
    return alone, x


def _solve(
    demand: GavelDemand,
    first: NDArray[np.int64],
    copies: NDArray[np.float64],
    factor: NDArray[np.float64],
    pairs: tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64], list[NDArray[np.float64]]],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Solve for the shares of all jobs of a kind alone, (N, K), and of all pairs of two kinds, (M, K), in sum.

    The rows are first the levels of the kinds, then their times, then the GPU types.
    """
    one, other, number, values = pairs
    kinds, types = len(first), demand.speed.shape[1]
    worth = demand.speed[first] * factor[first][:, None]
    gpus = np.where(demand.gpus[first] > 0.0, demand.gpus[first], demand.size[first][:, None])
    each, nothing = np.repeat(np.arange(kinds), types), np.zeros(kinds * types)
    a, b = np.repeat(one, types), np.repeat(other, types)
    kind = np.tile(np.arange(types), kinds), np.tile(np.arange(types), len(one))
    ones = np.ones(len(a))
    row = np.concatenate(
        [
            np.column_stack([each, each, each + kinds, each + kinds, kind[0] + 2 * kinds]),
            np.column_stack([a, b, a + kinds, b + kinds, kind[1] + 2 * kinds]),
        ]
    )
    value = np.concatenate(
        [
            np.column_stack([-worth.ravel(), nothing, nothing + 1.0, nothing, gpus.ravel()]),
            np.column_stack([-values[0].ravel(), -values[1].ravel(), ones, ones, ones]),
        ]
    )
    bound = np.concatenate([np.zeros(kinds), copies, demand.capacity])
    times = np.concatenate([np.repeat(copies, types), np.repeat(number, types)])
    limits = np.concatenate([copies, copies, np.ones(types)])
    x = np.empty(len(row))
    _climb(x, row, value, bound, times, limits, kinds)
    singles = kinds * types
    return x[:singles].reshape(kinds, types), x[singles:].reshape(len(one), types)


@kernel
def _climb(
    x: Floats, row: Ints, value: Floats, bound: Floats, times: Floats, limits: Floats, kinds: int
) -> None:
    """Write the middle of the optima of: maximise t, Σ value · x + [limits t] ≤ bound, x ≥ 0.

    A variable counts as `times` equal ones, a row as `limits` equal ones: in the middle the product of each slack with
    its dual value is in proportion to these.

    Args:
        x: The variables, (n,).
        row: The rows in which each variable is, (n, 5).
        value: Its factors there, (n, 5).
        bound: Upper bounds of the rows, 0 for the first `kinds`, in which t is, with the factor `limits`, (R,).
        times: Number of equal variables of each, (n,).
        limits: Number of equal rows of each, (R,).
        kinds: How many rows t is in.
    """
    n, rows, width = x.shape[0], bound.shape[0], row.shape[1]
    used = np.zeros(rows)
    for i in range(n):
        for c in range(width):
            used[row[i, c]] += value[i, c] * times[i]
    most = 1.0
    for r in range(kinds, rows):
        most = max(most, used[r] / bound[r])
    part = 0.5 / most
    x[:] = part * times
    unit = np.inf
    for r in range(kinds):
        unit = min(unit, -0.5 * part * used[r] / limits[r])
    t, in_unit = 1.0, unit * limits[:kinds]  # the level is counted in units of that at the start
    slack = bound - part * used
    slack[:kinds] -= in_unit
    mu = 1.0 / (limits[:kinds] / slack[:kinds] * in_unit).sum()
    y, z, end = mu * limits / slack, mu * times / x, GAP * mu
    theta = mu / t  # the dual value of t ≥ 0
    for _ in range(STEPS):
        aim = max(end, SHORTER * mu)
        matrix, right, dx, ds = np.zeros((rows, rows)), aim * limits / y, np.empty(n), np.zeros(rows)
        for r in range(rows):
            matrix[r, r] = slack[r] / y[r]
        wide = t / theta
        for r in range(kinds):
            right[r] += in_unit[r] * wide * (aim / t + 1.0)
            for other in range(kinds):
                matrix[r, other] += wide * in_unit[r] * in_unit[other]
        for i in range(n):
            size, target = x[i] / z[i], aim * times[i] / x[i]
            for c in range(width):
                right[row[i, c]] += value[i, c] * size * target
                for d in range(width):
                    matrix[row[i, c], row[i, d]] += size * value[i, c] * value[i, d]
        new_y = np.linalg.solve(matrix, right)
        down = aim / t + 1.0
        for r in range(kinds):
            down -= in_unit[r] * new_y[r]
        dt = wide * down
        ds[:kinds] -= in_unit * dt
        go = 1.0
        for i in range(n):
            down = aim * times[i] / x[i]
            for c in range(width):
                down -= value[i, c] * new_y[row[i, c]]
            dx[i] = x[i] / z[i] * down
            for c in range(width):
                ds[row[i, c]] -= value[i, c] * dx[i]
            go = min(go, _reach(x[i], dx[i]), _reach(z[i], aim * times[i] / x[i] - z[i] * dx[i] / x[i] - z[i]))
        for r in range(rows):
            go = min(go, _reach(slack[r], ds[r]), _reach(y[r], new_y[r] - y[r]))
        dtheta = aim / t - theta * dt / t - theta
        go = min(go, _reach(t, dt), _reach(theta, dtheta))
        for i in range(n):
            z[i] += go * (aim * times[i] / x[i] - z[i] * dx[i] / x[i] - z[i])
        x += go * dx
        slack += go * ds
        y += go * (new_y - y)
        t, theta = t + go * dt, theta + go * dtheta
        mu = ((x * z).sum() + (slack * y).sum() + t * theta) / (times.sum() + limits.sum() + 1.0)
        if mu < 2.0 * end and go > 0.9:
            break


@lean_kernel
def _reach(now: float, change: float) -> float:
    """Return how far a value that must stay positive may move, 1 for the whole step."""
    return -STAY * now / change if change < 0.0 else 1.0
