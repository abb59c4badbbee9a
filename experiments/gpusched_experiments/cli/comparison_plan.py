"""What a comparison runs, from options, the scenario's section `compare` or defaults; and its tables on a terminal."""

import os
from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import Console

from gpusched_agents.any_policy import OR_AN_AGENT, is_agent, make_any_policy, runs_code
from gpusched_baselines.registry import policy_descriptions, usual_policy_names
from gpusched_env.errors import InputError, nearest_first
from gpusched_env.model import checks
from gpusched_env.simulator import Policy
from gpusched_env.workload import ComparisonSettings, Scenario, parse_seeds
from gpusched_env.workload.scenario.comparison import GpuDemand
from gpusched_experiments.cli.policies import parse_policies
from gpusched_experiments.cli.terminal import print_table
from gpusched_experiments.report.comparison_folder import Compared
from gpusched_experiments.report.comparison_writing import Workload
from gpusched_experiments.report.processes import PROCESSES, Backend
from gpusched_experiments.report.recorded_times import AS_TRACED

USUAL_SEEDS = "0-39"
USUAL_SEEDS_OF_THE_SAME_JOBS = "0-4"  # of a trace, whose runs are long, and of one instance
USUAL_REFERENCE = "edf"
MOST_WORKERS = 4  # by default


@dataclass(frozen=True, slots=True)
class ComparisonPlan:
    """Everything that is decided before the first run.

    Attributes:
        workload: What they run; if it is a scenario, its section `compare` names the policies and seeds as they are
            run, so that the scenario alone is enough to compare the same again, unless the code of a policy is the
            user's: a scenario may not run such code.
        policies: The policies, with different names.
        entered: The names that make them: of code of the user its file and class.
        seeds: The seeds, each once.
        reference: Name of the policy that savings are measured against, one of the policies.
        workers: Number of processes, ≥ 1.
        backend: What makes the runs.
        gpu_demands: Rules for the GPU demand of a trace, each a comparison of its own; empty without a trace.
        demands_given: Whether somebody asked for these rules.
    """

    workload: Workload
    policies: tuple[Policy, ...]
    entered: tuple[str, ...]
    seeds: tuple[int, ...]
    reference: str
    workers: int
    backend: Backend = PROCESSES
    gpu_demands: tuple[GpuDemand, ...] = ()
    demands_given: bool = False

    @property
    def count(self) -> int:
        return len(self.policies) * len(self.seeds)

    @property
    def title(self) -> str:
        policies, seeds = len(self.policies), len(self.seeds)
        return f"{policies} {'policies' if policies > 1 else 'policy'}, {seeds} {'seeds' if seeds > 1 else 'seed'}"

    @classmethod
    def of(
        cls,
        workload: Workload,
        policies: str | None,
        seeds: str | None,
        reference: str | None,
        workers: int | None,
        gpu_demand: str | None = None,
        backend: Backend = PROCESSES,
    ) -> "ComparisonPlan":
        """Put options and workload together; an option that is None was not given."""
        scenario = workload.scenario
        settings = ComparisonSettings() if scenario is None else scenario.compare
        made = _policies_of_file(settings, scenario) if policies is None else parse_policies(policies)
        chosen = tuple(made.values())
        names = [policy.name for policy in chosen]
        text = _seeds_of_file(settings, scenario) if seeds is None else seeds.strip()
        numbers = parse_seeds(text, "--seeds")
        if workers is not None:
            checks.whole("--workers", workers)
        against = _reference(settings, reference, names)
        demands = None if gpu_demand is None else [each.strip() for each in gpu_demand.split(",")]
        if demands is not None and (scenario is None or scenario.trace is None):
            raise InputError("--gpu-demand", gpu_demand, "nothing without a trace")
        used = {
            "policies": list(made), "seeds": text, "reference": reference, "workers": workers, "gpu_demands": demands,
        }  # fmt: skip
        values = {f"compare.{name}": value for name, value in used.items() if value is not None}
        chosen_workload = workload if scenario is None else Workload(scenario.replace(values))
        return cls(
            workload=chosen_workload,
            policies=chosen,
            entered=tuple(made),
            seeds=numbers,
            reference=against,
            workers=workers or settings.workers or (default_workers() if backend is PROCESSES else backend.cores()),
            backend=backend,
            gpu_demands=_gpu_demands(chosen_workload.scenario),
            demands_given=demands is not None or settings.gpu_demands is not None,
        )

    def parts(self) -> list[tuple[str, Workload]]:
        """List the rules for the GPU demand, each with its workload; the workload alone without a trace."""
        scenario = self.workload.scenario
        if scenario is None or scenario.trace is None:
            return [("", self.workload)]
        return [(rule, Workload(scenario.replace({"trace.gpu_demand": rule}))) for rule in self.gpu_demands]


def _policies_of_file(settings: ComparisonSettings, scenario: Scenario | None) -> dict[str, Policy]:
    known, traced = policy_descriptions(), scenario is not None and scenario.trace is not None
    names = usual_policy_names(of_cluster=traced) if settings.policies is None else settings.policies
    for index, name in enumerate(names):
        if runs_code(name):  # a file that somebody sent must not run code
            raise InputError(f"compare.policies[{index}]", name, "nothing whose code would run: use --policies")
        if name not in known and not is_agent(name):
            raise InputError(f"compare.policies[{index}]", name, f"one of {nearest_first(name, known)}{OR_AN_AGENT}")
    return {name: make_any_policy(name) for name in names}


def default_workers() -> int:
    return min(MOST_WORKERS, os.cpu_count() or 1)


def _gpu_demands(scenario: Scenario | None) -> tuple[GpuDemand, ...]:
    if scenario is None or scenario.trace is None:
        return ()
    usual: tuple[GpuDemand, ...] = (scenario.trace.gpu_demand, "exact")
    # What really ran gave every job what it asked for: beside it, that is the fair comparison, so it comes first.
    ordered = usual[::-1] if AS_TRACED in (scenario.compare.policies or ()) else usual
    return scenario.compare.gpu_demands or tuple(dict.fromkeys(ordered))


def _seeds_of_file(settings: ComparisonSettings, scenario: Scenario | None) -> str:
    same = scenario is None or scenario.trace is not None
    return settings.seeds or (USUAL_SEEDS_OF_THE_SAME_JOBS if same else USUAL_SEEDS)


def _reference(settings: ComparisonSettings, wanted: str | None, names: list[str]) -> str:
    field, name = ("--reference", wanted) if wanted is not None else ("compare.reference", settings.reference)
    if name is None:
        return USUAL_REFERENCE if USUAL_REFERENCE in names else names[0]
    if name not in names:
        raise InputError(field, name, f"one of the policies compared: {', '.join(names)}")
    return name


def print_comparisons(
    console: Console, compared: Sequence[Compared], reference: str, instance: str | None, whole: str | None = None
) -> None:
    """Print every table of every comparison, with as many columns as there is room for.

    Args:
        compared: The comparisons, first the main one.
    """
    cut = False
    for each in compared:
        if each.not_claimed and each.replay is not None:
            console.print(each.replay.sentence, style="bold red", markup=False)
        for table in each.tables(reference, instance):
            title = table.title if each.gpu_demand else None
            best = each.best if table.columns[0].name == "policy" else None
            cut |= print_table(console, table, title=title, named=True, best=best, stacked=True, wide=True)
        for sentence in each.modelled:
            console.print(sentence, style="yellow", markup=False)
    if cut and whole is not None:
        console.print(f"All columns are in {whole}.", style="dim", markup=False)
