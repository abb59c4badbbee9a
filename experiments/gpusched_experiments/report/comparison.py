"""Compare policies: every policy on the same instance of every seed."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self, TypeAlias, cast

from gpusched_agents.any_policy import full_name
from gpusched_env.errors import InputError
from gpusched_env.model import Instance, checks
from gpusched_env.simulator import Policy, Result
from gpusched_experiments.report.cell import each_once
from gpusched_experiments.report.compared_run import ComparedRun, ComparedWorkload
from gpusched_experiments.report.comparison_folder import Compared, ComparisonFolder, can_be_recorded
from gpusched_experiments.report.comparison_table import comparison_table
from gpusched_experiments.report.comparison_writing import Workload as NamedWorkload
from gpusched_experiments.report.comparison_writing import (
    Written,
    keys_of,
    source_of_function,
    write_page,
)
from gpusched_experiments.report.evaluation import Workload, policy_of, replayed_or_made, seeds_of
from gpusched_experiments.report.metrics import Billing
from gpusched_experiments.report.processes import PROCESSES, Backend, call_all
from gpusched_experiments.report.run_summary import RunSummary
from gpusched_experiments.report.statistics import PolicyStatistics, summarise
from gpusched_experiments.report.table import Table, html_table, text_table

OnRun: TypeAlias = Callable[[RunSummary], None]
OnResult: TypeAlias = Callable[[Result], None]

SHOWN = ("policy", "energy_eur", "tardiness_eur", "total_eur", "late_jobs", "saving")
"""Columns of the table as which a comparison is printed."""


class Comparison(tuple[RunSummary, ...]):  # noqa: SLOT001 - a tuple has no room for slots
    """The runs of a comparison, by seed and of each seed by policy: a tuple that is printed as a table of the means.

    Attributes:
        reference: Name of the policy that savings are measured against.
        instance: Name of the instance, if all seeds ran the same one.
        made: How it was made, if `compare` made it.
    """

    reference: str
    instance: str | None
    made: Made | None = None

    def __new__(cls, runs: Iterable[RunSummary], reference: str = "", instance: str | None = None) -> Self:
        made = super().__new__(cls, runs)
        made.reference, made.instance = reference, instance
        return made

    @property
    def rows(self) -> tuple[PolicyStatistics, ...]:
        """The statistics of every policy, as `summarise` gives them."""
        return summarise(self, self.reference)

    @property
    def table(self) -> Table:
        """The table that is printed."""
        whole = comparison_table(self.rows, self.reference, self.instance)
        names = [column.name for column in whole.columns]
        return whole.keeping(names.index(name) for name in SHOWN)

    def write(self, folder: str | Path, pictures: Sequence[str] = ()) -> Path:
        """Write the folder that `gpusched compare --out` writes: runs, tables, the scenario, and the HTML report.

        Args:
            folder: A new or empty folder, or one of a comparison on the same workload. Finished runs of other policies
                and seeds stay in it. The tables, pictures and the report are those of this comparison alone.
            pictures: Figures to draw beside them, in the forms `svg`, `png` and `pdf`.

        Returns:
            The HTML report.

        Raises:
            InputError: The folder holds something else, or runs of another workload; or `compare` did not make this.
            MissingExtraError: What draws is not installed (extra `plot`).
        """
        if self.made is None:
            raise InputError("comparison", type(self).__name__, "what compare returned")
        return self.made.write(self, ComparisonFolder(folder), pictures)

    def __repr__(self) -> str:
        return text_table(self.table)

    def _repr_html_(self) -> str:
        return html_table(self.table)


@dataclass(frozen=True, slots=True)
class Made:
    """How a comparison was made.

    Attributes:
        workload: What was run.
        make: Makes the instance of a seed.
        policies: The policies, each with the name that made it, if one did.
        seeds: The seeds.
        workers: Number of processes.
        billing: What was billed.
        results: The whole results of the first seed.
    """

    workload: NamedWorkload
    make: Callable[[int], Instance]
    policies: tuple[tuple[Policy, str | None], ...]
    seeds: tuple[int, ...]
    workers: int
    billing: Billing
    results: list[Result]

    def write(self, runs: Comparison, folder: ComparisonFolder, pictures: Sequence[str]) -> Path:
        policies = {each.name: name or each for each, name in self.policies}
        keys = keys_of(self.make, self.seeds, policies, self.billing)
        first = self.make(self.seeds[0])
        compared = Compared.of(runs, runs.reference, modelled=self.billing.said())
        about = Written(self.workload, tuple(policies), self.seeds, runs.reference, self.workers, first)
        with folder.taken():
            self.workload.write(folder, keys.values())
            for run in runs:
                if keys[run.seed, run.policy] not in folder.runs:
                    folder.add(keys[run.seed, run.policy], run)
            for result in self.results:
                folder.record(result, keys[self.seeds[0], result.policy])
            about.files(folder, (compared,))
            folder.keep(policies, self.seeds, set(keys.values()))
            about.draw(folder, compared, pictures)
            return write_page(folder.path)


def compare(
    policies: str | Policy | Iterable[str | Policy],
    workload: Workload,
    seeds: int | Iterable[int] = 10,
    *,
    reference: str | None = None,
    workers: int = 1,
    on_run: OnRun | None = None,
    on_result: OnResult | None = None,
    known: Sequence[RunSummary] = (),
    billing: Billing | None = None,
    backend: Backend = PROCESSES,
) -> Comparison:
    """Run every policy on the instance of every seed.

    `print(compare(["sts", "edf"], "published-high"))` prints a table. The result does not depend on `workers`, but for
    the seconds of scheduling, which are measured. Before the first run, every instance is made (so bad input shows, and
    a policy that cannot decide on it), and each process runs every policy on a tiny instance, so that compilation is
    not measured.

    Args:
        policies: The policies, with different names: each a name (`edf`, `agent:default`) or a policy.
        workload: What they run: the name of a scenario or track, the path of a scenario file, a `Scenario`, an
            `Instance` for all seeds, or what gives the instance of a seed, which is called once for each seed. It may
            stand before the policies, too.
        seeds: The seeds, all different, ≥ 0, or n for 0 to n - 1; a seed decides the instance and the policy's own
            randomness.
        reference: Name of the policy that savings are measured against; by default the first.
        workers: Number of processes, ≥ 1; with more than one, the policies and instances must be picklable.
        on_run: Called in this process after every run, in order of completion.
        on_result: Called in this process with the whole result, intervals included, of every policy's run on the
            first seed; without it the comparison keeps them, if they are not too large to be written.
        known: Runs that are finished already, and are not run again; others among them are passed over.
        billing: What is billed; by default what the scenario says.
        backend: What makes the runs; by default processes of this machine.

    Returns:
        The summaries by seed, and of each seed by policy, both in the order given.

    Raises:
        InputError: There is no such policy or workload, no policy or seed, one stands twice, the reference is none of
            the policies, a policy cannot decide on an instance, or something cannot be sent to other processes.
        WorkerError: A process ended early.
    """
    if callable(policies) and not isinstance(policies, Policy):
        policies, workload = cast("Any", workload), policies
    made_by = _policies(policies)
    chosen = [policy for policy, _ in made_by]
    names = [policy.name for policy in chosen]
    each_once("policies", names)
    seeds = seeds_of(seeds)
    checks.whole("workers", workers)
    if reference is not None and reference not in names:
        raise InputError("reference", reference, f"one of the policies compared: {', '.join(names)}")
    about, make, instance, billed = _workload(workload)
    results: list[Result] = []
    finished = {(run.seed, run.policy): run for run in known}
    places = [(seed, name) for seed in seeds for name in names]
    done = {place: finished[place] for place in places if place in finished}
    left = [seed for seed in seeds if any((seed, name) not in done for name in names)]
    workloads = {seed: ComparedWorkload.of(seed, make(seed), chosen) for seed in left}
    if left and (workers > 1 or backend is not PROCESSES):
        _check_picklable(chosen, workloads[left[0]], workers)
    runs = [
        ComparedRun(workloads[seed], policy, seed == seeds[0], billing or billed)
        for seed in left
        for policy in chosen
        if (seed, policy.name) not in done
    ]
    for _, (summary, result) in call_all([run.run for run in runs], chosen, workers, backend):
        done[summary.seed, summary.policy] = summary
        if result is not None and on_result is not None:
            on_result(result)
        elif result is not None and can_be_recorded(result.instance):
            results.append(result)
        if on_run is not None:
            on_run(summary)
    compared = Comparison((done[place] for place in places), reference or names[0], instance)
    compared.made = Made(about, make, tuple(made_by), seeds, workers, billing or billed, results)
    return compared


def _policies(given: Any) -> list[tuple[Policy, str | None]]:
    each = [given] if isinstance(given, str) or not isinstance(given, Iterable) else list(given)
    return [
        (policy_of(policy, f"policies[{i}]"), full_name(policy) if isinstance(policy, str) else None)
        for i, policy in enumerate(each)
    ]


def _workload(given: Workload) -> tuple[NamedWorkload, Callable[[int], Instance], str | None, Billing]:
    if callable(given):
        about = NamedWorkload(None, None, getattr(given, "__qualname__", "a function"), source_of_function(given))
        return about, given, None, Billing()
    source = replayed_or_made(given)
    name = source.name or "no name" if source.scenario is None else None
    instance = source.make(0) if source.scenario is None else None
    return NamedWorkload(source.scenario, instance, name or ""), source.make, name, Billing.of(source.scenario)


def _check_picklable(policies: Sequence[Policy], workload: ComparedWorkload, workers: int) -> None:
    for policy in policies:
        try:
            pickle.dumps((policy, workload))
        except (pickle.PicklingError, AttributeError, TypeError) as error:
            allowed = f"1, since policy {policy.name} or its workload cannot be sent to other processes ({error})"
            raise InputError("workers", workers, allowed) from error
