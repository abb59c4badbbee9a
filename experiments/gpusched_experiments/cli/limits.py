"""`gpusched limits`."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Annotated

import numpy as np
import typer

from gpusched_agents.any_policy import make_any_policy
from gpusched_env.errors import InputError
from gpusched_env.model import Instance
from gpusched_env.workload import Scenario
from gpusched_env.workload.mixture import variants_of
from gpusched_env.workload.scenario.comparison import parse_seeds
from gpusched_env.workload.tables import read_table
from gpusched_experiments.cli import scenario_options as options
from gpusched_experiments.cli.comparison_plan import default_workers
from gpusched_experiments.cli.progress import counting
from gpusched_experiments.cli.terminal import output, print_table
from gpusched_experiments.report.comparison import Comparison, compare
from gpusched_experiments.report.comparison_writing import Workload
from gpusched_experiments.report.estimate import Estimate, paired_saving
from gpusched_experiments.report.table import COUNT, MONEY, PERCENT, SHARE, Column, Table

USUAL = "1,0.85,0.7,0.6"


@dataclass(frozen=True, slots=True)
class Limited:
    """What a policy costs at one power limit for all, or where it chooses, in the mean over the seeds.

    Attributes:
        limit: The limit, or "chosen".
        kwh: Energy [kWh]; NaN where nodes are paid by the hour.
        energy_eur: Its cost [€].
        tardiness_eur: Tardiness cost [€].
        late: Part of the jobs that end late.
        completion_h: Mean time from submission to completion [h].
        saving: What is saved against no limit, paired by seed.
    """

    limit: str
    kwh: float
    energy_eur: float
    tardiness_eur: float
    late: float
    completion_h: float
    saving: Estimate

    @classmethod
    def of(cls, limit: str, runs: Comparison, unlimited: Comparison) -> "Limited":
        def total(each: Comparison) -> list[float]:
            return [run.energy_eur + run.tardiness_eur for run in each]

        return cls(
            limit,
            float(np.mean([run.metrics.energy_kwh for run in runs])),
            float(np.mean([run.energy_eur for run in runs])),
            float(np.mean([run.tardiness_eur for run in runs])),
            sum(run.late_jobs for run in runs) / sum(run.jobs for run in runs),
            float(np.mean([run.mean_completion_s for run in runs])) / 3600.0,
            paired_saving(total(runs), total(unlimited)),
        )


COLUMNS: tuple[Column[Limited], ...] = (
    Column("limit", "limit", lambda each: each.limit),
    Column("energy_kwh", "kWh", lambda each: each.kwh, COUNT),
    Column("energy_eur", "energy €", lambda each: each.energy_eur, MONEY),
    Column("tardiness_eur", "tardiness €", lambda each: each.tardiness_eur, MONEY),
    Column("late", "late", lambda each: each.late, SHARE),
    Column("completion_h", "completion h", lambda each: each.completion_h, MONEY),
    Column("saving", "saved", lambda each: each.saving, PERCENT, interval=True),
)


def at_limit(instance: Instance, limit: float) -> Instance:
    """Return the instance with the configurations of one power limit alone.

    Jobs that have none of them, on GPU types that do not offer the limit, keep those without a limit.
    """
    jobs = instance.jobs
    wanted = np.array([c.power_limit == limit for c in instance.configurations])
    free = np.array([c.power_limit == 1.0 for c in instance.configurations])
    seconds = np.where(wanted, jobs.seconds_per_epoch, np.inf)
    none = ~np.isfinite(seconds).any(axis=1)
    seconds[none] = np.where(free, jobs.seconds_per_epoch, np.inf)[none]
    return replace(instance, jobs=replace(jobs, seconds_per_epoch=seconds))


@options.with_options
def limits_command(
    *,
    policy: Annotated[str, typer.Option("--policy", "-p", help="The policy; agent:NAME too.")] = "sts-x",
    scenario: options.ScenarioOption = "default",
    track: options.TrackOption = None,
    seeds: Annotated[
        str | None, typer.Option("--seeds", help="Seeds of the workloads: 0-9, or 0,3,5; default: 0-9, of a trace 0-4.")
    ] = None,
    limits: Annotated[
        str, typer.Option("--limits", help="Power limits as parts of a full busy GPU's power, separated by commas.")
    ] = USUAL,
    workers: options.WorkersOption = None,
    given: options.ScenarioOptions,
) -> None:
    """Show what power limits of GPUs are worth: none, one for all GPUs, or one chosen for every job.

    All rows run the same policy on the same jobs with the same due dates. In the last one the policy chooses a
    limit with every configuration, and may change it at any time without a restart.

    For example:
    - **gpusched limits --trace philly.csv --jobs 2000 --nodes 60**

    - **gpusched limits --track slack --limits 1,0.8,0.65 --seeds 20000-20019**
    """
    numbers = _numbers(limits)
    made = replace(given, scenario=options.scenario_or_track(scenario, track)).make()
    made = made.replace({"jobs.power_limits": list(numbers)})
    chosen = parse_seeds(seeds or ("0-4" if made.trace is not None else "0-9"), "--seeds")
    make = Workload(made).maker()
    choices: list[tuple[str, Callable[[int], Instance]]] = [
        *((f"{limit:g} for all" if limit < 1.0 else "none", _Limiting(make, limit)) for limit in numbers),
        ("chosen", make),
    ]
    rows, unlimited = [], None
    with counting(policy, len(choices) * len(chosen)) as bar:
        for name, maker in choices:
            runs = compare(
                [make_any_policy(policy)],
                maker,
                chosen,
                workers=workers or default_workers(),
                on_run=lambda _: bar.advance(),
            )
            unlimited = unlimited or runs
            rows.append(Limited.of(name, runs, unlimited))
    table = Table.of(f"Power limits: {policy} on {made.name}", COLUMNS, rows, _notes(made, make(chosen[0])))
    print_table(output(), table, title=table.title)


@dataclass(frozen=True, slots=True)
class _Limiting:
    """Makes the instance of a seed with one power limit."""

    make: Callable[[int], Instance]
    limit: float

    def __call__(self, seed: int) -> Instance:
        return at_limit(self.make(seed), self.limit)


def _numbers(text: str) -> tuple[float, ...]:
    allowed = "numbers above 0 and up to 1, separated by commas, each once"
    try:
        numbers = [float(part) for part in text.split(",")]
    except ValueError:
        raise InputError("--limits", text, allowed) from None
    if len(set(numbers)) < len(numbers) or not all(0.0 < number <= 1.0 for number in numbers):
        raise InputError("--limits", text, allowed)
    return tuple(sorted({1.0, *numbers}, reverse=True))


def _notes(scenario: Scenario, instance: Instance) -> tuple[str, ...]:
    """Return which curves of time at a limit are measured, which are assumed, and what is modelled."""
    like = {v.name: v.source or v.name for each in variants_of(scenario) for v in each.gpu_types}
    names = [like.get(v.name, v.name) for v in instance.gpu_types]
    of_zeus = {row["gpu_type"] for row in read_table("power_curves.csv") if row["method"] == "measured"}
    measured = [name for name in names if name in of_zeus]
    assumed = [name for name in names if name not in measured]
    notes = []
    if measured:
        notes.append(f"Measured (Zeus, medians of sweeps): the time at a limit on {', '.join(measured)}.")
    if assumed:
        notes.append(f"Assumed: that {', '.join(assumed)} slow down as V100 do; no sweep of theirs is public.")
    notes.append("Modelled: the power of a node, and that a limit takes its part of every busy GPU's power.")
    return tuple(notes)
