"""A planned comparison, conducted: what is not finished yet is run, and the folder is written."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import cache, partial
from importlib import import_module
from pathlib import Path
from types import ModuleType

import numpy as np
import typer

from gpusched_env.errors import InputError
from gpusched_env.files import one_error, write_atomically
from gpusched_env.formats import save_instance
from gpusched_env.formats.instance_file import instance_json
from gpusched_env.formats.run_folder import read_result
from gpusched_env.model import Instance
from gpusched_env.model.tenant import machines
from gpusched_env.provenance import provenance
from gpusched_env.simulator import Result
from gpusched_env.simulator.policy import check_fit
from gpusched_env.workload import InstanceMaker, Trace, scenario_toml
from gpusched_env.workload.traces.summary import modelled
from gpusched_experiments.cli import interruption
from gpusched_experiments.cli.comparison_plan import ComparisonPlan
from gpusched_experiments.cli.progress import Bar, counting
from gpusched_experiments.cli.report import write_report
from gpusched_experiments.cli.scenario_options import Workload
from gpusched_experiments.report import RunSummary, compare
from gpusched_experiments.report.cell import origin
from gpusched_experiments.report.comparison_folder import (
    FIGURES,
    FILES,
    JOURNAL_PAGE,
    JOURNAL_TRACE,
    Compared,
    ComparisonFolder,
    can_be_recorded,
    comparison_files,
)
from gpusched_experiments.report.metrics import Billing
from gpusched_experiments.report.recorded_times import Traced
from gpusched_experiments.report.store import key_of

ALWAYS_OF_A_TRACE = (
    "Due dates and slowdown follow from what jobs are offered: one schedule may be late under one rule alone.",
    "Nodes on which nothing runs are off, and cost nothing.",
)


CHARTS = "gpusched_experiments.report.figures"


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
        made_by = {policy.name: origin(name) for policy, name in zip(plan.policies, plan.entered, strict=True)}
        keys, billing = {}, asdict(self.billing)
        for seed in plan.seeds:
            instance = key_of(instance=instance_json(self.make(seed)))  # once a seed: it is long
            for name, code in made_by.items():
                keys[seed, name] = key_of(code=code, instance=instance, policy=name, seed=seed, billing=billing)
        return keys

    def modelled(self) -> tuple[str, ...]:
        scenario = self.workload.scenario
        if scenario is None:
            return ()
        off = () if scenario.trace is None else ALWAYS_OF_A_TRACE
        return (*self.billing.said(), *modelled(scenario, self.trace), *off, *self._free_restarts())

    def _free_restarts(self) -> tuple[str, ...]:
        restart_s = self.make(self.first).jobs.restart_s
        if self.trace is None or restart_s.any():
            return ()
        return ("Restarts are free (restart_s = 0): policies change GPUs as often as they like.",)


def run_comparison(plan: ComparisonPlan, out: str | Path, pictures: Sequence[str] = ()) -> tuple[Compared, ...]:
    """Run what is not finished yet, and write the folder; a stopped comparison goes on where it was."""
    charts = import_module(CHARTS) if pictures else None  # before anything is run: it may not be installed
    folder = ComparisonFolder(out)
    parts = _checked(plan)  # a bad workload, and a policy that does not fit it, show before anything begins
    keys = [part.keys(plan) for part in parts]
    finished = sum(key in folder.runs for each in keys for key in each.values())
    if finished:
        _note(f"{out}: {finished} of {plan.count * len(parts)} runs are finished already")
    _print_what_is_run(parts[0])
    with _kept_if_stopped(folder), folder.taken(), counting(plan.title, plan.count * len(parts)) as bar:
        bar.show(finished)
        compared = tuple(
            Compared.of(_run(plan, part, own, folder, bar, record=index == 0), plan.reference, part.gpu_demand,
                        part.modelled(), None if part.trace is None else Traced.of(part.trace))
            for index, (part, own) in enumerate(zip(parts, keys, strict=True))
        )  # fmt: skip
        _write(plan, parts[0], folder, compared)
        folder.keep([policy.name for policy in plan.policies], {key for own in keys for key in own.values()})
        if charts is not None:
            bar.say("drawing the charts")
            _draw(charts, pictures, plan, parts[0], folder, compared[0])
        bar.say("writing the report")
        write_report(folder.path)
    return compared


def written(out: str | Path) -> list[Path]:
    return [path for name in FILES if (path := Path(out) / name).exists()]


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
    nodes = machines(instance)
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


def _write(plan: ComparisonPlan, part: _Part, folder: ComparisonFolder, compared: Sequence[Compared]) -> None:
    """Write the files that say what came out, in place of those of a former comparison."""
    facts = {
        **plan.workload.facts(),
        "policies": [policy.name for policy in plan.policies],
        "seeds": plan.seeds,
        "reference": plan.reference,
        "workers": plan.workers,
    }
    recorded = {
        policy.name: path.name
        for policy in plan.policies
        if (path := folder.recorded(policy.name)).exists() and can_be_recorded(part.make(plan.seeds[0]))
    }
    contents = comparison_files(compared, plan.reference, instance_title(plan), recorded, provenance(None, **facts))
    if plan.workload.scenario is not None:
        contents["scenario.toml"] = scenario_toml(plan.workload.scenario)
    for name, content in contents.items():
        write_atomically(folder.path / name, content)
    if plan.workload.instance is not None:
        save_instance(plan.workload.instance, folder.path / "instance.json")
    with one_error(folder.path):
        made = {"groups.csv", "scenario.toml", "instance.json", "report.html", JOURNAL_TRACE, JOURNAL_PAGE, *FIGURES}
        for name in made - contents.keys():
            if name != "instance.json" or plan.workload.instance is None:
                (folder.path / name).unlink(missing_ok=True)  # of a former comparison


def _draw(
    charts: ModuleType,
    forms: Sequence[str],
    plan: ComparisonPlan,
    part: _Part,
    folder: ComparisonFolder,
    compared: Compared,
) -> None:
    """Draw the costs, and the first seed's run of the policy that costs least."""
    count = len(plan.seeds)
    seeds = f"{count} seed{'s' if count > 1 else ''}{' of the policies' if plan.workload.scenario is None else ''}"
    instance = part.make(plan.seeds[0])
    title = f"{plan.workload.title}: {len(machines(instance))} nodes, {len(instance.jobs)} jobs, {seeds}"
    costs = partial(charts.cost_figure, compared.rows, compared.runs, title, of_trace=bool(compared.gpu_demand))
    contents = charts.figure_files("costs", costs(), forms)
    best = folder.recorded(compared.best)
    if can_be_recorded(instance) and best.exists():
        contents |= charts.figure_files("gantt", charts.gantt(read_result(best)), forms)
    for name, content in contents.items():
        write_atomically(folder.path / name, content)
