"""How far what a policy decides in a round can be from the least proxy cost: its program, optimum and bound."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpusched_baselines.search.proxy_parts import POSTPONED
from gpusched_baselines.solvers.bin_program import load_pyomo, new_highs, solve
from gpusched_env.model import checks
from gpusched_env.simulator import View
from gpusched_env.simulator import layout as at


class RoundProgram:
    """The round of a view in Pyomo, for one first completion at a time.

    Binary variables say which configuration a job holds and where (on one node, on a shared GPU of a node, or on
    several whole nodes), and how many GPUs of every node are busy. With the first completion fixed at f seconds from
    now, the proxy cost is linear: f · Σ r_v(u) for the nodes, ω · max(0, t + f - d) for a job that holds something, and
    100 · ω · max(0, t + max execution time - d) for one that does not.

    Args:
        pyomo: The module `pyomo.environ`.
        view: The present state; what jobs hold in it does not matter, since the round begins from an empty cluster.

    Attributes:
        model: The Pyomo model, without a first completion yet.
        time_s: Worst-case time to completion of every active job in every configuration [s], inf where not allowed.
        postponed_eur: What each active job costs if it holds nothing [€].
    """

    def __init__(self, pyomo: Any, view: View) -> None:
        self._jobs = view.active
        rows = view.jobs[self._jobs]
        left = rows[:, at.MAX_EPOCHS] - rows[:, at.EPOCHS]
        self.time_s = left[:, None] * view.tau[self._jobs]
        self._weight, self._time_left = rows[:, at.WEIGHT], rows[:, at.DUE] - view.now_s
        slowest = left * rows[:, at.MAX_TAU]
        self.postponed_eur = POSTPONED * self._weight * np.maximum(0.0, slowest - self._time_left)
        self._configs = view.configs
        self._nodes = view.nodes[:, [at.NODE_TYPE, at.NODE_GPUS]]
        self._rate = view.node_rate
        self.model = self._model(pyomo)

    def running_eur(self, first_s: float) -> NDArray[np.float64]:
        """Return what each job costs beside energy if it holds something and the first one ends in `first_s`, (A,)."""
        return self._weight * np.maximum(0.0, first_s - self._time_left)

    def fix_first(self, first_s: float, below_eur: float) -> None:
        model = self.model
        model.first_s.set_value(first_s)
        model.below.set_value(below_eur)
        running = self.running_eur(first_s)
        for j in model.jobs:
            model.running[j] = float(running[j])
        for j, c in model.allowed:
            model.not_before[j, c] = float(self.time_s[j, c] >= first_s)
            model.ends_first[j, c] = float(self.time_s[j, c] == first_s)

    def _model(self, pyomo: Any) -> Any:
        model = pyomo.ConcreteModel()
        model.jobs, model.nodes = range(len(self._jobs)), range(len(self._nodes))
        allowed = [(j, int(c)) for j in model.jobs for c in np.flatnonzero(np.isfinite(self.time_s[j]))]
        model.allowed = allowed
        model.first_s = pyomo.Param(mutable=True, initialize=0.0)
        model.below = pyomo.Param(mutable=True, initialize=0.0)
        model.running = pyomo.Param(model.jobs, mutable=True, initialize=0.0)
        model.not_before = pyomo.Param(allowed, mutable=True, initialize=1.0)
        model.ends_first = pyomo.Param(allowed, mutable=True, initialize=1.0)
        model.holds = pyomo.Var(allowed, domain=pyomo.Binary)
        self._add_places(pyomo, model)
        self._add_nodes(pyomo, model)
        held = {j: pyomo.quicksum(model.holds[i, c] for i, c in allowed if i == j) for j in model.jobs}
        ends_first = pyomo.quicksum(model.ends_first[pair] * model.holds[pair] for pair in allowed)
        model.one_configuration = pyomo.Constraint(model.jobs, rule=lambda _, j: held[j] <= 1)
        model.nothing_before = pyomo.Constraint(allowed, rule=lambda m, j, c: m.holds[j, c] <= m.not_before[j, c])
        model.something_first = pyomo.Constraint(expr=ends_first >= 1)
        waits = {j: float(self.postponed_eur[j]) for j in model.jobs}
        jobs = pyomo.quicksum(waits[j] + (model.running[j] - waits[j]) * held[j] for j in model.jobs)
        rate = pyomo.quicksum(float(self._rate[self._nodes[n, 0], u]) * model.busy[n, u] for n, u in model.levels)
        model.proxy = pyomo.Objective(expr=model.first_s * rate + jobs)
        model.is_better = pyomo.Constraint(expr=model.first_s * rate + jobs <= model.below)
        return model

    def _add_places(self, pyomo: Any, model: Any) -> None:
        """Tie every configuration that is held to its nodes, or to its place on a shared GPU."""
        places = [(j, c, n) for j, c in model.allowed for n in self._nodes_of(c)]
        slots = [(n, i) for n in model.nodes for i in range(self._nodes[n, 1])] if self._any_shared() else []
        shared = [(j, c, n, i) for j, c, n in places if self._units(c) > 0 for i in range(self._nodes[n, 1])]
        model.whole = [(j, c, n) for j, c, n in places if self._units(c) == 0]
        model.on = pyomo.Var(model.whole, domain=pyomo.Binary)
        model.slots = slots
        model.open = pyomo.Var(slots, domain=pyomo.Binary)
        model.beside = pyomo.Var(shared, domain=pyomo.Binary)

        def has_its_place(model: Any, j: int, c: int) -> Any:
            if self._units(c) > 0:
                parts = [model.beside[j, c, n, i] for n in self._nodes_of(c) for i in range(self._nodes[n, 1])]
            else:
                parts = [model.on[j, c, n] for n in self._nodes_of(c)]
            return pyomo.quicksum(parts) == int(self._configs[c, at.CONFIG_NODES]) * model.holds[j, c]

        def is_one_gpu(model: Any, n: int, i: int) -> Any:
            parts = (self._units(c) * model.beside[j, c, m, k] for j, c, m, k in shared if (m, k) == (n, i))
            return pyomo.quicksum(parts) <= model.open[n, i]

        model.place = pyomo.Constraint(model.allowed, rule=has_its_place)
        model.one_gpu = pyomo.Constraint(slots, rule=is_one_gpu)
        later = [(n, i) for n, i in slots if i > 0]
        model.in_order = pyomo.Constraint(later, rule=lambda m, n, i: m.open[n, i] <= m.open[n, i - 1])

    def _add_nodes(self, pyomo: Any, model: Any) -> None:
        """Count the busy GPUs of every node; of nodes that are alike the first is the fullest."""
        model.levels = [(n, u) for n in model.nodes for u in range(self._nodes[n, 1] + 1)]
        model.busy = pyomo.Var(model.levels, domain=pyomo.Binary)

        count = {n: pyomo.quicksum(u * model.busy[m, u] for m, u in model.levels if m == n) for n in model.nodes}

        def all_that_is_held_is_busy(model: Any, n: int) -> Any:
            gpus = self._configs[:, at.CONFIG_GPUS]
            whole = pyomo.quicksum(int(gpus[c]) * model.on[j, c, m] for j, c, m in model.whole if m == n)
            return whole + pyomo.quicksum(model.open[m, i] for m, i in model.slots if m == n) == count[n]

        alike = [n for n in list(model.nodes)[1:] if np.array_equal(self._nodes[n], self._nodes[n - 1])]
        model.one_count = pyomo.Constraint(
            model.nodes, rule=lambda m, n: pyomo.quicksum(m.busy[k, u] for k, u in m.levels if k == n) == 1
        )
        model.all_busy = pyomo.Constraint(model.nodes, rule=all_that_is_held_is_busy)
        model.fullest_first = pyomo.Constraint(alike, rule=lambda _, n: count[n] <= count[n - 1])

    def _nodes_of(self, c: int) -> list[int]:
        """List the nodes that configuration `c` could stand on; on whole nodes it takes all GPUs of the largest."""
        gpu_type, gpus = self._configs[c, at.CONFIG_TYPE], self._configs[c, at.CONFIG_GPUS]
        own = (self._nodes[:, 0] == gpu_type) & (self._nodes[:, 1] >= gpus)
        return [int(n) for n in np.flatnonzero(own)]

    def _units(self, c: int) -> float:
        return float(self._configs[c, at.CONFIG_UNITS]) / at.UNITS

    def _any_shared(self) -> bool:
        return bool(np.any(self._configs[:, at.CONFIG_UNITS] > 0))


@dataclass(frozen=True, slots=True)
class RoundCertificate:
    """The least proxy cost of a round.

    Attributes:
        best_eur: Least proxy cost found [€]; the optimum if it equals the bound.
        bound_eur: Nothing that the jobs can hold has a smaller proxy cost [€].
        held: What each active job holds then: a configuration, or -1, in the order of `view.active`.
        programs: How many mixed-integer programs were solved.
        seconds: Wall clock [s].
    """

    best_eur: float
    bound_eur: float
    held: tuple[int, ...]
    programs: int
    seconds: float


def certify_round(view: View, *, limit_s: float = 20.0) -> RoundCertificate:
    """Find the least proxy cost of the round of `view`, over everything that its active jobs can hold.

    The proxy multiplies the nodes' rate by the time to the first completion, so one program is solved for every
    time at which a job could be the first to end, shortest first; one that cannot beat the best so far is left out
    or infeasible. If the time runs out, what was not solved counts with a bound of its own: the cost of the jobs
    without energy.

    Args:
        view: The present state; the round begins from an empty cluster.
        limit_s: Most wall clock [s], > 0.

    Raises:
        SolverMissingError: Pyomo or highspy is missing.
        SolverFailedError: HiGHS fails on one of the programs.
    """
    checks.positive("limit_s", limit_s)
    begin = time.perf_counter()
    program = RoundProgram(load_pyomo(), view)
    best, held = float(program.postponed_eur.sum()), (-1,) * len(program.postponed_eur)
    bound, programs = best, 0
    for first_s in np.unique(program.time_s[np.isfinite(program.time_s)]).tolist():
        least = float(np.minimum(program.running_eur(first_s), program.postponed_eur).sum())
        if least >= best:
            continue
        left = limit_s - (time.perf_counter() - begin)
        if left <= 0.0:
            bound = min(bound, least)
            continue
        program.fix_first(first_s, best)
        programs += 1
        solved = solve(new_highs(seconds=left), program.model)
        if solved is None:
            continue
        bound = min(bound, solved.bound)
        if solved.objective < best:
            best, held = solved.objective, _held(program)
    return RoundCertificate(best, max(0.0, min(bound, best)), held, programs, time.perf_counter() - begin)


def _held(program: RoundProgram) -> tuple[int, ...]:
    held = {j: c for j, c in program.model.allowed if program.model.holds[j, c].value > 0.5}
    return tuple(held.get(j, -1) for j in range(len(program.postponed_eur)))
