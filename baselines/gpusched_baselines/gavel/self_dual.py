"""Max-min programs by the interior-point method of the published solver, which chooses among equal optima as it does.

Gavel's authors solved theirs with ECOS: Mehrotra's predictor-corrector method on the homogeneous self-dual embedding
(Domahidi, Chu, Boyd, ECC 2013). It stops at an optimum between the middle of the optima and the point at which it
began, so that its beginning, its scaling and its steps matter where capacity is left over.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from gpusched_baselines.gavel.program import raised

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from gpusched_baselines.gavel.program import GavelDemand

    Floats = NDArray[np.float64]

STEPS, ACCURACY = 100, 1e-8
ENOUGH = 1e-4  # accuracy of the best point on the way that counts as an end where rounding hinders a better one
FURTHEST, LEAST_CENTRING = 0.99, 1e-4  # part of the way to the nearest bound; least part of the gap that is kept
SCALINGS, REFINEMENTS = 3, 2
SINGULAR = 1e-13  # added to the diagonal of a job's matrix, relative to its largest element


@dataclass(frozen=True, slots=True, eq=False)
class Scaled:
    """The rows of a max-min program of A kinds of jobs and K options, each divided by a scale, and its columns too.

    Jobs of a kind are alike, so that one stands for each of them. A vector of rows has first those of x ≥ 0, (A · K),
    then of the V types' GPUs, of the jobs' time, and of their levels, (A) each; a vector of variables has the shares,
    (A · K), and the level.

    Attributes:
        bound: Factors of x ≥ 0, (A, K).
        gpus: GPUs, (A, K).
        time: Factors of a job's time, (A, K).
        worth: Value of a share, (A, K).
        level: Factor of the level, (A,).
        kind: GPU type of every option, one-hot, (K, V).
        copies: Jobs of every kind, (A,).
    """

    bound: Floats
    gpus: Floats
    time: Floats
    worth: Floats
    level: Floats
    kind: Floats
    copies: Floats

    @property
    def of_rows(self) -> Floats:
        """Return how many rows each row of a vector stands for."""
        options, types = self.kind.shape
        return np.concatenate([np.repeat(self.copies, options), np.ones(types), self.copies, self.copies])

    def rows(self, v: Floats) -> Floats:
        x = v[:-1].reshape(self.bound.shape)
        gpus, time = (self.copies @ (self.gpus * x)) @ self.kind, (self.time * x).sum(axis=1)
        level = self.level * v[-1] - (self.worth * x).sum(axis=1)
        return np.concatenate([(-self.bound * x).ravel(), gpus, time, level])

    def split(self, r: Floats) -> tuple[Floats, Floats, Floats, Floats]:
        jobs, options = self.bound.shape
        n, types = jobs * options, self.kind.shape[1]
        return r[:n].reshape(jobs, options), r[n : n + types], r[n + types : n + types + jobs], r[n + types + jobs :]

    def columns(self, r: Floats) -> Floats:
        bound, gpus, time, level = self.split(r)
        x = self.gpus * (self.kind @ gpus) - self.bound * bound
        x += self.time * time[:, None] - self.worth * level[:, None]
        return np.append(x.ravel(), self.copies @ (self.level * level))


class Kkt:
    """Solves rowsᵀ z = a, rows x - w² z = b for x and z; jobs are coupled by V + 1 unknowns alone."""

    def __init__(self, scaled: Scaled, squares: Floats) -> None:
        self.scaled, self.weight = scaled, 1.0 / squares
        bound, gpus, time, level = scaled.split(self.weight)
        options = scaled.bound.shape[1]
        matrix = np.einsum("j,jk,jl->jkl", level, scaled.worth, scaled.worth)
        matrix += np.einsum("j,jk,jl->jkl", time, scaled.time, scaled.time)
        each = np.arange(options)
        matrix[:, each, each] += bound * scaled.bound**2
        matrix[:, each, each] += SINGULAR * matrix[:, each, each].max(axis=1, keepdims=True)
        self.inverse = np.linalg.inv(matrix)
        of_types = scaled.gpus[:, :, None] * scaled.kind  # (A, K, V)
        self.border = np.concatenate([of_types, -(scaled.worth * (level * scaled.level)[:, None])[:, :, None]], axis=2)
        self.solved = self.inverse @ self.border
        self.corner = -np.einsum("j,jkv,jkw->vw", scaled.copies, self.border, self.solved)
        types = len(gpus)
        self.corner[np.arange(types), np.arange(types)] -= 1.0 / gpus
        self.corner[types, types] += float(scaled.copies @ (level * scaled.level**2))

    def solve(self, a: Floats, b: Floats) -> tuple[Floats, Floats]:
        """Return x and z, with what rounding left of the system solved again."""
        x, z = self._once(a, b)
        for _ in range(REFINEMENTS):
            dx, dz = self._once(a - self.scaled.columns(z), b - self.scaled.rows(x) + z / self.weight)
            x, z = x + dx, z + dz
        return x, z

    def _once(self, a: Floats, b: Floats) -> tuple[Floats, Floats]:
        right = a + self.scaled.columns(self.weight * b)
        x = np.einsum("jkl,jl->jk", self.inverse, right[:-1].reshape(self.scaled.bound.shape))
        known = -np.einsum("j,jkv,jk->v", self.scaled.copies, self.border, x)
        known[-1] += right[-1]
        found = np.linalg.solve(self.corner, known)
        v = np.append((x - self.solved @ found).ravel(), found[-1])
        return v, self.weight * (self.scaled.rows(v) - b)


def published_optimum(demand: GavelDemand, worth: Floats) -> Floats:
    """Maximise min_j Σ_k worth[j, k] x[j, k] within the GPUs and every job's time; of equal optima the solver's.

    An option in which a job is not able to run takes part as any other, as in Gavel's programs, and has no share at the
    end.
    """
    found = np.zeros(worth.shape)
    able = np.flatnonzero(demand.size > 0.0)
    options = np.flatnonzero(demand.capacity[demand.kind] > 0.0)
    if not len(able) or not len(options):
        return found
    mine, types = np.ix_(able, options), np.unique(demand.kind[options])
    kind = (demand.kind[options][:, None] == types).astype(np.float64)
    there = demand.gpus[mine] > 0.0
    gpus = np.where(there, demand.gpus[mine], demand.size[able][:, None])
    alike = np.unique(np.concatenate([gpus, worth[mine]], axis=1), axis=0, return_inverse=True, return_counts=True)
    (gpus, value), own, copies = np.split(alike[0], 2, axis=1), alike[1].reshape(-1), alike[2].astype(np.float64)
    scaled, of_rows, of_columns = _equilibrated(gpus, value, kind, copies)
    right = np.concatenate([np.zeros(gpus.size), demand.capacity[types], np.ones(len(gpus)), np.zeros(len(gpus))])
    cost = np.append(np.zeros(gpus.size), -1.0)
    try:
        with np.errstate(all="ignore"):
            x = _embedded(scaled, cost / of_columns, right / of_rows) / of_columns
    except np.linalg.LinAlgError:
        x = np.full(gpus.size + 1, np.nan)
    if not np.all(np.isfinite(x)):  # numbers that differ too much for the method
        return raised(demand, worth, np.ones(len(worth)), np.zeros(len(worth))).x
    found[mine] = np.where(there, np.clip(x[:-1].reshape(gpus.shape)[own], 0.0, 1.0), 0.0)
    found /= np.maximum(1.0, found.sum(axis=1))[:, None]
    over = (demand.used(found) / np.maximum(demand.capacity, 1e-300)).max()
    return found / max(1.0, float(over))


def _equilibrated(gpus: Floats, worth: Floats, kind: Floats, copies: Floats) -> tuple[Scaled, Floats, Floats]:
    """Divide rows and columns three times by the roots of their largest elements; return the scales of both too."""
    ones = np.ones(gpus.shape)
    now = Scaled(ones, gpus.copy(), ones.copy(), worth.copy(), np.ones(len(gpus)), kind, copies)
    of_rows, of_columns = np.ones(gpus.size + kind.shape[1] + 2 * len(gpus)), np.ones(gpus.size + 1)
    for _ in range(SCALINGS):
        column = np.max([now.bound, now.gpus, now.time, now.worth], axis=0)
        by_type = (now.gpus.max(axis=0)[:, None] * kind).max(axis=0)
        level = np.maximum(now.worth.max(axis=1), now.level)
        rows = [now.bound.ravel(), by_type, now.time.max(axis=1), level]
        r = np.sqrt(np.concatenate(rows))
        c, last = np.sqrt(column), float(np.sqrt(now.level.max()))
        bound, types, time, job = now.split(r)
        now = Scaled(
            now.bound / c / bound,
            now.gpus / c / (kind @ types),
            now.time / c / time[:, None],
            now.worth / c / job[:, None],
            now.level / last / job,
            kind,
            copies,
        )
        of_rows, of_columns = of_rows * r, of_columns * np.append(c.ravel(), last)
    return now, of_rows, of_columns


def _inside(r: Floats) -> Floats:
    return r + 1.0 + max(-FURTHEST, float(-r.min()))


def _reach(*pairs: tuple[Floats | float, Floats | float]) -> float:
    """Return how far values, each with its change, may move, 1 for all of it."""
    go = 1.0
    for now, change in pairs:
        a, b = np.atleast_1d(now), np.atleast_1d(change)
        go = min(go, float((-a[b < 0.0] / b[b < 0.0]).min(initial=1.0)))
    return go


def _norm(vector: Floats, copies: Floats) -> float:
    return float(np.sqrt(copies @ (vector * vector)))


def _embedded(scaled: Scaled, c: Floats, h: Floats) -> Floats:
    """Minimise c · x with rows x ≤ h on the self-dual embedding; return x, NaN where it comes to no end.

    Where rounding makes the points worse again, the best one so far is the end, as the published solver takes it.
    """
    start = Kkt(scaled, np.ones(len(h)))
    x = start.solve(np.zeros(len(c)), h)[0]
    s, z = _inside(h - scaled.rows(x)), _inside(start.solve(-c, np.zeros(len(h)))[1])
    tau, kappa = 1.0, 1.0
    many = scaled.of_rows
    of_x = np.append(many[: len(c) - 1], 1.0)
    hm, best, end = many * h, np.inf, x
    size, right = max(1.0, _norm(c, of_x)), max(1.0, _norm(h, many))
    for _ in range(STEPS):
        rx, rz = -scaled.columns(z) - c * tau, s + scaled.rows(x) - h * tau
        gap = float(many @ (s * z))
        rt, mu = kappa + c @ x + hm @ z, (gap + kappa * tau) / (many.sum() + 1.0)
        exact = max(_norm(rx, of_x) / size, _norm(rz, many) / right)
        off = max(exact / tau, gap / tau / max(tau, abs(float(c @ x))))
        if off < best:
            best, end = off, x / tau
        if best < ACCURACY or not off < best / ENOUGH:
            break
        w, root = np.sqrt(s / z), np.sqrt(s * z)
        system = Kkt(scaled, w * w)
        x1, z1 = system.solve(-c, h)
        x2, z2 = system.solve(rx, s - rz)
        below = kappa / tau - c @ x1 - hm @ z1
        dtau = (rt - kappa + c @ x2 + hm @ z2) / below
        dz = w * (z2 + dtau * z1)
        ds, dkappa = -dz - root, -kappa - kappa / tau * dtau
        kept = (1.0 - _reach((root, ds), (root, dz), (tau, dtau), (kappa, dkappa))) ** 3
        kept = max(LEAST_CENTRING, kept)
        both, last = (s * z + ds * dz - kept * mu) / root, kappa * tau + dkappa * dtau - kept * mu
        x2, z2 = system.solve((1.0 - kept) * rx, w * both - (1.0 - kept) * rz)
        dtau = ((1.0 - kept) * rt - last / tau + c @ x2 + hm @ z2) / below
        dx, dz = x2 + dtau * x1, z2 + dtau * z1
        ds, dkappa = -(both + w * dz), -(last + kappa * dtau) / tau
        go = FURTHEST * _reach((root, ds), (root, w * dz), (tau, dtau), (kappa, dkappa))
        x, z, s = x + go * dx, z + go * dz, s + go * w * ds
        tau, kappa = float(tau + go * dtau), float(kappa + go * dkappa)
    return end if best < ENOUGH else np.full(len(x), np.nan)
