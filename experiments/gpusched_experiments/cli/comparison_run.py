"""A planned comparison, conducted: what is not finished yet is run, and the folder is written."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path

import numpy as np
import typer

from gpusched_env.errors import InputError
from gpusched_env.model import Instance
from gpusched_env.simulator import Result
from gpusched_env.simulator.policy import check_fit
from gpusched_env.workload import InstanceMaker, Trace
from gpusched_env.workload.traces.summary import modelled
from gpusched_experiments.cli import interruption
from gpusched_experiments.cli.comparison_plan import ComparisonPlan
from gpusched_experiments.cli.progress import Bar, counting
from gpusched_experiments.cli.terminal import write_report
from gpusched_experiments.report import RunSummary, compare
from gpusched_experiments.report.comparison_folder import (
    Compared,
    ComparisonFolder,
    can_be_recorded,
)
from gpusched_experiments.report.comparison_writing import CHARTS, Workload, Written, keys_of
from gpusched_experiments.report.metrics import Billing
from gpusched_experiments.report.recorded_times import Traced

ALWAYS_OF_A_TRACE = (
    "Due dates and slowdown follow from what jobs are offered: one schedule may be late under one rule alone.",
    "Nodes on which nothing runs are off, and cost nothing.",
)


@dataclass(frozen=True, slots=True)
class _Part:
    """A comparison under one rule for the GPU demand of a trace, or the only one."""

    gpu_demand: str
    workload: Workload
    make: Callable[[int], Instance]
    first: int
    trace: Trace | None = None

    @classmethod
    def of(cls, gpu_demand: str, workload: Workload, first: int, trace: Trace | None) -> "_Part":
        if workload.scenario is None:
            return cls(gpu_demand, workload, cache(workload.maker()), first)
        maker = InstanceMaker(workload.scenario, trace=trace)
        return cls(gpu_demand, workload, cache(maker.make), first, maker.trace)

    @property
    def billing(self) -> Billing:
        return Billing.of(self.workload.scenario)

    def keys(self, plan: ComparisonPlan) -> dict[tuple[int, str], str]:
        entered = {policy.name: name for policy, name in zip(plan.policies, plan.entered, strict=True)}
        return keys_of(self.make, plan.seeds, entered, self.billing)

    def modelled(self) -> tuple[str, ...]:
        scenario = self.workload.scenario
        if scenario is None:
            return ()
        off = () if scenario.trace is None else ALWAYS_OF_A_TRACE
        said = (*self.billing.said(), *self.workload.notes(), *modelled(scenario, self.trace))
        return (*said, *off, *self._free_restarts())

    def _free_restarts(self) -> tuple[str, ...]:
        restart_s = self.make(self.first).jobs.restart_s
        if self.trace is None or restart_s.any():
            return ()
        return ("Restarts are free (restart_s = 0): policies change GPUs as often as they like.",)


def run_comparison(
    plan: ComparisonPlan, out: str | Path, pictures: Sequence[str] = (), *, replaces: bool = False, page: bool = True
) -> tuple[Compared, ...]:
    """Run what is not finished yet, and write the folder; a stopped comparison goes on where it was.

    Args:
        replaces: Whether runs of another workload in the folder are replaced; else they are an error.
        page: Whether the HTML report is written, which takes a second or more.
    """
    if pictures:
        import_module(CHARTS)  # before anything is run: it may not be installed
    folder = ComparisonFolder(out)
    parts = _checked(plan)  # a bad workload, and a policy that does not fit it, show before anything begins
    keys = [part.keys(plan) for part in parts]
    finished = sum(key in folder.runs for each in keys for key in each.values())
    if finished:
        _note(f"{out}: {finished} of {plan.count * len(parts)} runs are finished already")
    _print_what_is_run(parts[0])
    with _kept_if_stopped(folder), folder.taken(), counting(plan.title, plan.count * len(parts)) as bar:
        plan.workload.write(folder, [key for own in keys for key in own.values()], replaces=replaces)
        bar.show(finished)
        compared = tuple(
            Compared.of(_run(plan, part, own, folder, bar, record=index == 0), plan.reference, part.gpu_demand,
                        part.modelled(), None if part.trace is None else Traced.of(part.trace))
            for index, (part, own) in enumerate(zip(parts, keys, strict=True))
        )  # fmt: skip
        about = Written(
            plan.workload, tuple(policy.name for policy in plan.policies), plan.seeds, plan.reference, plan.workers,
            parts[0].make(plan.seeds[0]),
        )  # fmt: skip
        about.files(folder, compared)
        named = [policy.name for policy in plan.policies]
        folder.keep(named, plan.seeds, {key for own in keys for key in own.values()}, others=not replaces)
        if pictures:
            bar.say("drawing the charts")
            about.draw(folder, compared[0], pictures)
        if page:
            bar.say("writing the report")
            write_report(folder.path)
    return compared


def instance_title(plan: ComparisonPlan) -> str | None:
    return plan.workload.title if plan.workload.scenario is None else None


@contextmanager
def _kept_if_stopped(folder: ComparisonFolder) -> Iterator[None]:
    try:
        yield
    except KeyboardInterrupt:
        if folder.runs:
            interruption.say(f"{len(folder.runs)} finished runs are kept, the same command goes on")
        raise


def _print_what_is_run(part: _Part) -> None:
    instance = part.make(part.first)
    nodes = instance.machines
    count = Counter(node.gpu_type for node in nodes)
    gpus = Counter(name for node in nodes for name in [node.gpu_type] * node.gpus)
    kinds = ", ".join(f"{number} with {gpus[name]} {name}" for name, number in count.items())
    days = float(np.ptp(instance.jobs.submission_s)) / 86_400.0
    over = f", submitted over {days:.1f} days" if part.trace is not None else ""
    _note(f"{len(instance.jobs):,} jobs{over}, on {len(nodes)} nodes and {gpus.total()} GPUs ({kinds})")


def _note(text: str) -> None:
    typer.echo(f"note: {text}", err=True)


def _checked(plan: ComparisonPlan) -> list[_Part]:
    """Make the first instance of every part; a rule that nobody asked for and that does not fit is left out."""
    parts: list[_Part] = []
    for rule, workload in plan.parts():
        part = _Part.of(rule, workload, plan.seeds[0], parts[0].trace if parts else None)
        try:
            for seed in plan.seeds[: 1 if workload.scenario is None else max(1, len(workload.scenario.mixture))]:
                check_fit(plan.policies, part.make(seed))
        except InputError as error:
            if not parts or plan.demands_given:
                raise
            _note(f"not compared with GPU demand {rule}, since {error}")
            continue
        parts.append(part)
    return parts


def _run(
    plan: ComparisonPlan,
    part: _Part,
    keys: dict[tuple[int, str], str],
    folder: ComparisonFolder,
    bar: Bar,
    *,
    record: bool,
) -> tuple[RunSummary, ...]:
    first = plan.seeds[0]
    record = record and can_be_recorded(part.make(first))
    known = folder.runs
    missing = {
        place
        for place, key in keys.items()
        if key not in known or (record and place[0] == first and not folder.is_recorded(place[1], key))
    }

    def keep(run: RunSummary) -> None:
        again = keys[run.seed, run.policy] in known
        folder.add(keys[run.seed, run.policy], run)
        if not again:
            bar.advance()

    def write(result: Result) -> None:
        folder.record(result, keys[first, result.policy])

    return compare(
        plan.policies,
        part.make,
        plan.seeds,
        workers=plan.workers,
        on_run=keep,
        on_result=write if record else None,
        known=[
            RunSummary.from_dict({**known[key], "seed": place[0], "policy": place[1]})
            for place, key in keys.items()
            if place not in missing
        ],
        billing=part.billing,
        backend=plan.backend,
    )
