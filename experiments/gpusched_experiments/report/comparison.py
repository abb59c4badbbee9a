"""Compare policies: every policy on the same instance of every seed."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from gpusched_baselines.planning.bounds import clairvoyant_bound, non_clairvoyant_bound
from gpusched_env.errors import InputError
from gpusched_env.model import Instance, checks
from gpusched_env.simulator import Result, simulate
from gpusched_env.simulator.policy import check_fit
from gpusched_experiments.report.processes import run_in_processes
from gpusched_experiments.report.run_summary import RunSummary
from gpusched_experiments.report.warm_up import warm_up

if TYPE_CHECKING:
    from gpusched_env.simulator import Policy

InstanceMaker: TypeAlias = Callable[[int], Instance]
OnRun: TypeAlias = Callable[[RunSummary], None]
OnResult: TypeAlias = Callable[[Result], None]


@dataclass(frozen=True, slots=True)
class _Cell:
    """One run: it makes its instance itself, so that it is the same in whatever process it happens."""

    make: InstanceMaker
    policy: Policy
    seed: int
    bounds_eur: tuple[float, float]
    whole: bool

    def run(self) -> tuple[RunSummary, Result | None]:
        """Give the summary, and if wanted the whole result with its intervals."""
        result = simulate(self.make(self.seed), self.policy, seed=self.seed, record=self.whole)
        return RunSummary.of(result, self.seed, *self.bounds_eur), result if self.whole else None


@dataclass(frozen=True, slots=True)
class _Listeners:
    """Whom to tell of a run that has ended."""

    on_run: OnRun | None
    on_result: OnResult | None

    def told(self, run: RunSummary, result: Result | None) -> RunSummary:
        if result is not None and self.on_result is not None:
            self.on_result(result)
        if self.on_run is not None:
            self.on_run(run)
        return run


def compare(
    make: InstanceMaker,
    policies: Sequence[Policy],
    seeds: Sequence[int],
    *,
    workers: int = 1,
    on_run: OnRun | None = None,
    on_result: OnResult | None = None,
) -> tuple[RunSummary, ...]:
    """Run every policy on the instance of every seed.

    The result does not depend on `workers`, but for the seconds of scheduling, which are measured. Before the first
    run, every instance is made once for its bounds (so bad input shows, and a policy that cannot decide on it), and
    each process runs every policy on a tiny instance, so that compilation is not measured.

    Args:
        make: Gives the instance of a seed, always the same one: `functools.partial(make_instance, scenario)`.
        policies: The policies, with different names.
        seeds: The seeds, all different, ≥ 0; a seed decides the instance and the policy's own randomness.
        workers: Number of processes, ≥ 1; with more than one, `make` and the policies must be picklable.
        on_run: Called in this process after every run, in order of completion.
        on_result: Called in this process with the whole result, intervals included, of every policy's run on the
            first seed; without it no intervals are kept.

    Returns:
        The summaries by seed, and of each seed by policy, both in the order given.

    Raises:
        InputError: There is no policy or seed, one stands twice, a policy cannot decide on an instance, or something
            cannot be sent to other processes.
        WorkerError: A process ended early.
    """
    _check_unique("policies", [policy.name for policy in policies])
    _check_unique("seeds", [checks.whole(f"seeds[{i}]", seed, 0) for i, seed in enumerate(seeds)])
    checks.whole("workers", workers)
    bounds_eur = {seed: _bounds_eur(make(seed), policies) for seed in seeds}
    whole = None if on_result is None else seeds[0]
    cells = [_Cell(make, policy, seed, bounds_eur[seed], seed == whole) for seed in seeds for policy in policies]
    listeners = _Listeners(on_run, on_result)
    if workers == 1:
        warm_up(policies)
        return tuple(listeners.told(*cell.run()) for cell in cells)
    return _run_in_processes(cells, policies, workers, listeners)


def _bounds_eur(instance: Instance, policies: Sequence[Policy]) -> tuple[float, float]:
    """Give both bounds of an instance that every policy can decide on."""
    check_fit(policies, instance)
    return clairvoyant_bound(instance), non_clairvoyant_bound(instance)


def _run_in_processes(
    cells: list[_Cell], policies: Sequence[Policy], workers: int, listeners: _Listeners
) -> tuple[RunSummary, ...]:
    _check_picklable(cells, workers)
    runs = run_in_processes([cell.run for cell in cells], policies, workers)
    done = {index: listeners.told(*result) for index, result in runs}
    return tuple(done[index] for index in range(len(cells)))


def _check_unique(field: str, values: list[str] | list[int]) -> None:
    if not values or len(set(values)) != len(values):
        raise InputError(field, values, "one or more, each once")


def _check_picklable(cells: list[_Cell], workers: int) -> None:
    for cell in cells:
        try:
            pickle.dumps(cell)
        except (pickle.PicklingError, AttributeError, TypeError) as error:
            allowed = f"1, since policy {cell.policy.name} or its workload cannot be sent to other processes ({error})"
            raise InputError("workers", workers, allowed) from error
