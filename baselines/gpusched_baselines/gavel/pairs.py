"""Two jobs on one GPU (Gavel's space sharing): pairs as options of the program, and their optimum."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from gpusched_baselines.gavel.interior import reach
from gpusched_env.arrays import Floats, Ints
from gpusched_env.simulator.kernels import at, kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from gpusched_baselines.gavel.program import GavelDemand
    from gpusched_env.simulator.kernels import Facts, View

STEPS, GAP, SHORTER, SINGULAR = 100, 1e-8, 0.15, 1e-14  # as in `interior`


@dataclass(frozen=True, slots=True, eq=False)
class JobPairs:
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


def pairs_of(view: View, jobs: NDArray[np.int64]) -> JobPairs:
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
    return JobPairs(config, alone, application, _slowdown(facts, types, application))


def _slowdown(facts: Facts, types: int, application: NDArray[np.int64]) -> NDArray[np.float64]:
    if facts.has_shares and len(facts.slowdown):
        return np.where(facts.slowdown < NO_FIT, facts.slowdown, np.inf)
    if facts.has_shares and len(facts.utilisation):
        return np.maximum(1.0, facts.utilisation[:, :, None] + facts.utilisation[:, None, :])
    most = int(application.max(initial=0)) + 1
    return np.ones((types, most, most))


def packed_las(demand: GavelDemand, pairs: JobPairs) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Maximise the least time of a job as if all types were equally fast; jobs alone and pairs are options.

    thr_j counts what j does alone and in pairs; a job's time alone and in pairs is at most 1; a pair takes one GPU.
    Jobs that are alike have the same shares in the middle of the optima, so that they are one row of the program.

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
    bound = np.concatenate([np.zeros(kinds), copies, np.where(demand.capacity > 0.0, demand.capacity, 1.0)])
    times = np.concatenate([np.repeat(copies, types), np.repeat(number, types)])
    limits = np.concatenate([copies, copies, np.ones(types)])
    x = np.empty(len(row))
    level = np.concatenate([copies, np.zeros(kinds + types)])
    _climb(x, PairRows(row, value, bound, times, limits, level))
    singles = kinds * types
    return x[:singles].reshape(kinds, types), x[singles:].reshape(len(one), types)


class PairRows(NamedTuple):
    """Rows of n variables x and a level t: Σ value · x + [limits t] ≤ bound, the level in the first of them alone.

    Attributes:
        row: The rows in which each variable is, (n, 5).
        value: Its factors there, (n, 5).
        bound: Upper bounds, 0 for the rows with the level, (R,).
        times: Number of equal variables that each stands for, (n,).
        limits: Number of equal rows that each stands for, (R,).
        level: Factors of the level, 0 in the other rows, (R,).
    """

    row: Ints
    value: Floats
    bound: Floats
    times: Floats
    limits: Floats
    level: Floats


@kernel
def _climb(x: Floats, sums: PairRows) -> None:
    """Write the variables with the greatest level, in the middle of the optima.

    A variable counts as `times` equal ones, a row as `limits` equal ones: in the middle the product of each slack with
    its dual value is in proportion to these.
    """
    used, no_level = _sum(sums, sums.times), sums.level == 0.0
    part = 0.5 / max(1.0, (used[no_level] / sums.bound[no_level]).max())
    x[:] = part * sums.times
    unit = -0.5 * part * (used[~no_level] / sums.level[~no_level]).max()
    level, t = unit * sums.level, 1.0  # the level is counted in units of that at the start
    slack = sums.bound - part * used - level
    mu = 1.0 / (sums.limits / slack * level).sum()
    y, z, theta, end = mu * sums.limits / slack, mu * sums.times / x, mu, GAP * mu
    for _ in range(STEPS):
        aim = max(end, SHORTER * mu)
        known = aim * sums.limits / y + level * (t / theta) * (aim / t + 1.0)
        new_y = _dual(x / z, t / theta, slack / y, aim * sums.times / x, known, level, sums)
        dx = x / z * (aim * sums.times / x - _sum_of_rows(sums, new_y))
        dt = t / theta * (aim / t + 1.0 - (level * new_y).sum())
        dz, dtheta = (aim * sums.times - z * dx) / x - z, (aim - theta * dt) / t - theta
        dy, ds = new_y - y, -_sum(sums, dx) - level * dt
        go = min(
            _longest(x, dx), _longest(z, dz), _longest(y, dy), _longest(slack, ds), reach(t, dt), reach(theta, dtheta)
        )
        x += go * dx
        z += go * dz
        y += go * dy
        slack += go * ds
        t, theta = t + go * dt, theta + go * dtheta
        mu = ((x * z).sum() + (slack * y).sum() + t * theta) / (sums.times.sum() + sums.limits.sum() + 1.0)
        if mu < 2.0 * end and go > 0.9:
            break


@kernel
def _sum(sums: PairRows, x: Floats) -> Floats:
    found = np.zeros(sums.bound.shape[0])
    for i in range(x.shape[0]):
        for c in range(sums.row.shape[1]):
            found[sums.row[i, c]] += sums.value[i, c] * x[i]
    return found


@kernel
def _sum_of_rows(sums: PairRows, y: Floats) -> Floats:
    found = np.zeros(sums.row.shape[0])
    for i in range(found.shape[0]):
        for c in range(sums.row.shape[1]):
            found[i] += sums.value[i, c] * y[sums.row[i, c]]
    return found


@kernel
def _dual(
    size: Floats, wide: float, own: Floats, target: Floats, known: Floats, level: Floats, sums: PairRows
) -> Floats:
    """Solve for the dual values of the rows after the whole step, (R,).

    Args:
        size: Variable over its dual value, (n,).
        own: Slack over dual value of every row, (R,).
        target: What the sum of a variable's rows is to be, (n,).
        known: What the rows have on the right side beside that, (R,).
        level: Factors of the level, (R,).
    """
    matrix, right = np.diag(own) + wide * np.outer(level, level), known + _sum(sums, size * target)
    for i in range(size.shape[0]):
        for c in range(sums.row.shape[1]):
            for d in range(sums.row.shape[1]):
                matrix[sums.row[i, c], sums.row[i, d]] += size[i] * sums.value[i, c] * sums.value[i, d]
    greatest = np.diag(matrix).max()
    for r in range(matrix.shape[0]):
        matrix[r, r] += SINGULAR * greatest
    return np.linalg.solve(matrix, right).astype(np.float64)


@kernel
def _longest(now: Floats, change: Floats) -> float:
    go = 1.0
    for i in range(now.shape[0]):
        go = min(go, reach(now[i], change[i]))
    return go
