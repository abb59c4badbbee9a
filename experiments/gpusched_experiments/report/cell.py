"""A cell: one run and what is measured of it, defined so that it is the same in whatever process and order."""

from __future__ import annotations

import math
import time
from dataclasses import Field, asdict, dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from gpusched_agents.any_policy import is_agent, make_any_policy
from gpusched_baselines.bounds.capacity import capacity_bound, clairvoyant_bound, non_clairvoyant_bound
from gpusched_baselines.registry import POLICIES
from gpusched_env.errors import InputError
from gpusched_env.simulator import Policy, simulate
from gpusched_env.workload import Scenario, make_instance
from gpusched_experiments.report.code_version import agent_version, machine, run_version
from gpusched_experiments.report.processes import PROCESSES, Backend, call_all
from gpusched_experiments.report.run_summary import RunSummary
from gpusched_experiments.report.store import Store, key_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from gpusched_env.model import Instance
    from gpusched_experiments.report.run import Label, Values

BOUNDS: tuple[Callable[[Instance], float], ...] = (clairvoyant_bound, capacity_bound)
"""All that bound the total cost of a run from below, whatever the policy."""


@dataclass(frozen=True, slots=True)
class Measure:
    """A way of measuring a policy on an instance.

    Attributes:
        name: Its name; cells that are measured otherwise are other cells.
        of: Gives what was measured by name, `run_s` among it: the seconds it all took. Takes the policy's seed last.
        timing: Whether it measures times, which are those of one machine.
    """

    name: str
    of: Callable[[Instance, Policy, int], Values]
    timing: bool = False


def whole_run(instance: Instance, policy: Policy, seed: int) -> Values:
    begin = time.perf_counter()
    result = simulate(instance, policy, seed=seed, record=False)
    summary = RunSummary.of(result, seed, clairvoyant_bound(instance), non_clairvoyant_bound(instance)).costs()
    numbers = {name: value for name, value in summary.items() if name not in {"policy", "seed"}}
    return {**numbers, "run_s": time.perf_counter() - begin}


def bound_of(instance: Instance) -> float:
    """Return the largest of the total costs [€] of which each is known to be undercut by no policy on this instance."""
    return max(bound(instance) for bound in BOUNDS)


def cost_alone(of: Callable[[Instance], float], instance: Instance, _policy: Policy, seed: int) -> Values:
    """Work out a cost: as `total_eur`, under the names of a whole run, of which the others say nothing here."""
    begin = time.perf_counter()
    summary = RunSummary("", seed, len(instance.jobs), math.nan, math.nan, 0, math.nan, 0, 0, 0.0, math.nan, math.nan)
    values = summary.costs() | {"total_eur": of(instance)}
    numbers = {name: value for name, value in values.items() if name not in {"policy", "seed"}}
    return {**numbers, "run_s": time.perf_counter() - begin}


WHOLE_RUN = Measure("run", whole_run)
BOUND = Measure("bound", partial(cost_alone, bound_of))


NO_TEXT = {"name", "description", "compare"}
"""Settings of a scenario that decide nothing about its instances."""


class Change(Protocol):
    """A pure change of an instance: a frozen dataclass whose fields are numbers and texts."""

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]

    def __call__(self, instance: Instance) -> Instance:
        """Return the changed instance."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One policy on one workload.

    Args:
        labels: Where the cell stands in its report; decides nothing about the run.
        scenario: The scenario of the workload.
        policy: Name of a registered policy, or of an agent: `agent:NAME`, `agent:DIR`.
        seed: Seed of the workload and of the policy's randomness.
        change: Change of the instance, if any.
        measure: What is measured.
    """

    labels: tuple[tuple[str, Label], ...]
    scenario: Scenario
    policy: str
    seed: int
    change: Change | None = None
    measure: Measure = WHOLE_RUN

    def key(self, origin: str) -> str:
        """Return what identifies the run: equal keys mean equal definitions, made by the same code.

        Args:
            origin: What made it: the version of the code, for agents also theirs, for times also the machine.
        """
        return key_of(
            origin=origin,
            scenario=self.scenario.model_dump(mode="json", exclude=NO_TEXT),
            change=None if self.change is None else [type(self.change).__name__, asdict(self.change)],
            policy=self.policy,
            seed=self.seed,
            measure=self.measure.name,
        )

    def run(self) -> Values:
        return self.measure.of(self.instance(), make_any_policy(self.policy), self.seed)

    def instance(self) -> Instance:
        instance = make_instance(self.scenario, self.seed)
        return instance if self.change is None else self.change(instance)


def origin(
    policy: str, measure: Measure = WHOLE_RUN, change: type[Change] | None = None, mechanisms: tuple[str, ...] = ()
) -> str:
    """Return what makes a cell: the version of the code that it uses, and of an agent; for times also the machine."""
    modules = {*_modules_of(measure.of), *(() if change is None else (change.__module__,))}
    parts = [run_version(policy, mechanisms, tuple(sorted(modules)))]
    if is_agent(policy):
        parts.append(agent_version(policy))
    if measure.timing:
        parts.append(machine())
    return ", ".join(parts)


def _modules_of(call: Any) -> set[str]:
    if isinstance(call, partial):
        return {module for part in (call.func, *call.args, *call.keywords.values()) for module in _modules_of(part)}
    return {call.__module__} if callable(call) else set()


def run_cells(
    cells: Mapping[str, Cell],
    known: Mapping[str, Values],
    store: Store,
    workers: int,
    on_finished: Callable[[], None],
    backend: Backend = PROCESSES,
) -> dict[str, Values]:
    """Run every cell that is not known, long ones first, so that all processes end at about the same time.

    Args:
        cells: The cells by key.
        known: What was measured in those that are finished, by key.

    Returns:
        What was measured in every cell, by key.
    """
    values = dict(known)
    left = [key for key in cells if key not in values]
    if workers > 1:
        left.sort(key=lambda key: -_weight(cells[key]))
    policies = tuple(make_any_policy(name) for name in dict.fromkeys(cells[key].policy for key in left))
    for index, measured in call_all([cells[key].run for key in left], policies, workers, backend):
        key = left[index]
        store.append(key, cells[key], measured)
        values[key] = measured
        on_finished()
    return values


def _weight(cell: Cell) -> float:
    return cell.scenario.jobs.count**2 * (100.0 if is_slow(cell.policy) else 1.0)


def is_slow(policy: str) -> bool:
    """Return whether rounds take long, of a thousand constructions or not compiled: fewer seeds on large clusters."""
    return policy in POLICIES and (POLICIES[policy].slow or not POLICIES[policy].compiled)


def each_once(field: str, values: Sequence[object]) -> None:
    """Check that there are one or more of these values, each once."""
    if not values or len(set(values)) != len(values):
        raise InputError(field, list(values), "one or more, each once")
