"""`gpusched worlds`."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from gpusched_baselines import policy_descriptions
from gpusched_baselines.registry import POLICIES
from gpusched_env import Scenario, make_instance
from gpusched_env.errors import InputError
from gpusched_env.files import write_atomically
from gpusched_env.model import checks
from gpusched_env.simulator.policy import check_fit
from gpusched_env.workload import draw_scenario
from gpusched_experiments.cli import scenario_options as options
from gpusched_experiments.cli.comparison_plan import ComparisonPlan
from gpusched_experiments.cli.comparison_run import run_comparison
from gpusched_experiments.cli.policies import parse_policies
from gpusched_experiments.cli.scenarios import load_of
from gpusched_experiments.cli.terminal import output, print_table
from gpusched_experiments.report import RunSummary
from gpusched_experiments.report.comparison_writing import Workload
from gpusched_experiments.report.estimate import Estimate, paired_saving
from gpusched_experiments.report.table import MONEY, PLAIN, RATIO, Column, Table, csv_text, markdown

CHEAPER = 0.02  # a policy that saves more than this is listed


@dataclass(frozen=True, slots=True)
class ComparedScenario:
    """A drawn scenario, and what the policies cost there.

    Attributes:
        scenario: The scenario.
        reference_eur: Mean cost of the reference policy [€].
        best: The policy with the least cost among the others.
        saving: What it saves of the reference's cost, paired by seed.
    """

    scenario: Scenario
    reference_eur: float
    best: str
    saving: Estimate

    @classmethod
    def of(cls, scenario: Scenario, runs: Sequence[RunSummary], reference: str) -> "ComparedScenario":
        costs: dict[str, dict[int, float]] = {}
        for run in runs:
            costs.setdefault(run.policy, {})[run.seed] = run.total_eur
        own = np.array(list(costs.pop(reference).values()))
        best = min(costs, key=lambda name: sum(costs[name].values()))
        saving = paired_saving(np.array(list(costs[best].values())), own)
        return cls(scenario, float(own.mean()), best, saving)

    @property
    def ratio(self) -> float:
        return 1.0 / (1.0 - self.saving.value)

    @property
    def surely(self) -> bool:
        return self.saving.interval is not None and self.saving.interval[0] > CHEAPER


def _interval(compared: ComparedScenario) -> str:
    if compared.saving.interval is None:
        return ""
    return " to ".join(f"{1.0 / (1.0 - end):.3f}" for end in compared.saving.interval)


def _cluster(compared: ComparedScenario) -> str:
    return " + ".join(f"{pool.nodes} {pool.gpu_type}" for pool in compared.scenario.cluster.pools)


COLUMNS: tuple[Column[ComparedScenario], ...] = (
    Column("scenario", "scenario", lambda compared: compared.scenario.name),
    Column("reference_eur", "reference €", lambda compared: compared.reference_eur, MONEY),
    Column("best", "best other", lambda compared: compared.best),
    Column("ratio", "reference/best", lambda compared: compared.ratio, "{:.3f}".format),
    Column("interval", "95 %", _interval),
    Column("load", "load", lambda compared: load_of(compared.scenario), RATIO),
    Column("jobs", "jobs", lambda compared: compared.scenario.jobs.count, PLAIN),
    Column("slack", "slack", lambda compared: compared.scenario.due_dates.slack, "{:.2g}".format),
    Column("restart", "restart", lambda compared: str(compared.scenario.restart_s)),
    Column("family", "epochs", lambda compared: compared.scenario.epochs.family),
    Column("nodes", "nodes", _cluster),
)


def summary(drawn: Sequence[ComparedScenario], reference: str) -> str:
    ratios = np.array([each.ratio for each in drawn])
    lost = sum(each.saving.value > CHEAPER for each in drawn)
    surely = sum(each.surely for each in drawn)
    mean = float(np.exp(np.mean(np.log(ratios))))
    return (
        f"{len(drawn)} scenarios: on {lost} another policy is more than {CHEAPER:.0%} cheaper than {reference}, on "
        f"{surely} surely (95 %); geometric mean of {reference} over the best other policy {mean:.3f}."
    )


def worlds_command(
    *,
    count: Annotated[int, typer.Option("--count", "-n", help="Number of scenarios that are drawn.")] = 50,
    seed: Annotated[int, typer.Option("--seed", help="Seed of the draw.")] = 1,
    seeds: Annotated[str, typer.Option("--seeds", help="Seeds of the workloads of each.")] = "91000-91004",
    policies: options.PoliciesOption = None,
    reference: Annotated[
        str, typer.Option("--reference", "-r", help="Policy that the others are held against.")
    ] = "sts-x",
    workers: options.WorkersOption = None,
    out: Annotated[str, typer.Option("--out", "-o", metavar="DIR", help="Folder for the results.")] = "results/worlds",
) -> None:
    """Draw random clusters and jobs, and list where another policy is cheaper than the reference.

    Nobody tuned a policy on them. Loads, due dates, weights, restarts, GPU types and applications are drawn over wide
    ranges; the same seed draws the same scenarios. Each is a comparison in a folder of its own, with its scenario.
    Finished runs are kept: stop it at any moment, the same command in the same folder goes on.

    For example: **gpusched worlds --count 50 --seed 1**
    """
    checks.whole("--count", count, 1)
    names = _names(policies, reference)
    drawn = [_run(draw_scenario(seed, index), names, seeds, reference, workers, out) for index in range(count)]
    drawn.sort(key=lambda each: -each.ratio)
    table = Table.of(f"Drawn scenarios, seed {seed}", COLUMNS, drawn, (summary(drawn, reference),))
    folder = Path(out)
    write_atomically(folder / "worlds.md", markdown(table))
    write_atomically(folder / "worlds.csv", csv_text(table))
    lost, title = [each for each in drawn if each.ratio > 1.0], f"Where {reference} is not the cheapest"
    if lost:
        print_table(output(), Table.of(title, COLUMNS, lost, table.notes), title=title)
    else:
        typer.echo(summary(drawn, reference))
    typer.echo(f"wrote {folder / 'worlds.md'}\nwrote {folder / 'worlds.csv'}")


def _names(policies: str | None, reference: str) -> list[str]:
    if policies is None:
        records = {name: POLICIES[name] for name in policy_descriptions()}
        chosen = [name for name, shipped in records.items() if shipped.compiled and not shipped.slow]
    else:
        chosen = list(parse_policies(policies))
    others = [name for name in chosen if name != reference]
    if not others:
        raise InputError("--policies", policies, f"a policy beside the reference {reference}")
    return [reference, *others]


def _run(
    scenario: Scenario, names: Sequence[str], seeds: str, reference: str, workers: int | None, out: str
) -> ComparedScenario:
    instance, fitting = make_instance(scenario, 0), []
    for name in names:
        try:
            check_fit(parse_policies(name).values(), instance)
        except InputError:
            continue
        fitting.append(name)
    plan = ComparisonPlan.of(Workload(scenario), ",".join(fitting), seeds, reference, workers)
    (compared,) = run_comparison(plan, str(Path(out) / scenario.name))
    return ComparedScenario.of(scenario, compared.runs, reference)
