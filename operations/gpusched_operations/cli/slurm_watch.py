"""`gpusched slurm watch`."""

import secrets
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Annotated

import typer

from gpusched_env.errors import InputError
from gpusched_env.files import write_atomically
from gpusched_env.formats.run_folder import read_result
from gpusched_env.workload import Scenario, load_scenario
from gpusched_env.workload.traces.seen_jobs import SeenCluster
from gpusched_experiments.cli import interruption
from gpusched_experiments.cli import scenario_options as options
from gpusched_experiments.cli import terminal as completion
from gpusched_experiments.cli.comparison_plan import ComparisonPlan, print_comparisons
from gpusched_experiments.cli.comparison_run import run_comparison
from gpusched_experiments.cli.terminal import output, write_report
from gpusched_experiments.report.comparison_folder import JOURNAL_PAGE, JOURNAL_TRACE, ComparisonFolder
from gpusched_experiments.report.comparison_writing import SCENARIO, Workload, written
from gpusched_experiments.report.recorded_times import AS_TRACED
from gpusched_experiments.report.table import markdown
from gpusched_operations.cli.live_options import (
    QUIET,
    LogFormatOption,
    LogLevelOption,
    address_of,
    live_metrics,
    needed,
)
from gpusched_operations.live.asking import Ask
from gpusched_operations.live.comment import seconds_of_due
from gpusched_operations.live.job_rules import JobRules
from gpusched_operations.live.journal import Journal, log_line
from gpusched_operations.live.progress import JobProgress
from gpusched_operations.live.progress_reports import ProgressReports, ProgressServer
from gpusched_operations.live.slurm_commands import SlurmControl
from gpusched_operations.live.slurm_state import read_cluster
from gpusched_operations.live.state import LiveCluster
from gpusched_operations.live.watch_report import (
    about_the_journal,
    drift_table,
    jobs_without_times,
    scenario_of,
    trace_csv,
)
from gpusched_operations.live.watch_savings import Schedule, savings_table, verdict_of
from gpusched_operations.live.watching import ClusterWatch, watch_on
from gpusched_operations.service.decision import Decider, PolicyCatalogue
from gpusched_operations.service.logs import logging_to_stderr

LEAST_S = 1.0


def slurm_watch_command(
    journal: Annotated[
        str | None, typer.Option("--journal", metavar="DIR", help="Folder of the journal; one that is there goes on.")
    ] = None,
    policy: Annotated[
        str, typer.Option("--policy", "-p", help="The policy that is asked.", autocompletion=completion.a_policy)
    ] = "sts-x",
    partition: Annotated[str | None, typer.Option("--partition", help="Only this partition; default: all.")] = None,
    rules: Annotated[
        str | None, typer.Option("--rules", metavar="FILE", help="What jobs are, and prices, as TOML.")
    ] = None,
    progress: Annotated[
        str | None, typer.Option("--progress", metavar="DIR", help="Folder where jobs report their epochs, if they do.")
    ] = None,
    every: Annotated[float, typer.Option("--every", help="Seconds from one round to the next, >= 1.")] = 60.0,
    duration: Annotated[
        str | None, typer.Option("--for", metavar="TIME", help="How long, such as 24h or 30m; default: until Ctrl-C.")
    ] = None,
    until_idle: Annotated[
        bool, typer.Option("--until-idle", help="End when no job ran or waited in two rounds in a row.")
    ] = False,
    report: Annotated[
        str | None, typer.Option("--report", metavar="JOURNAL", help="Watch nothing: report what this journal saw.")
    ] = None,
    out: Annotated[
        str, typer.Option("--out", "-o", metavar="DIR", help="With --report, the folder for it.")
    ] = "results/watch",
    seeds: Annotated[
        str, typer.Option("--seeds", help="With --report, seeds of what the journal does not say.")
    ] = "0-4",
    workers: options.WorkersOption = None,
    metrics: Annotated[
        str | None, typer.Option("--metrics", metavar="[HOST:]PORT", help="Tell /metrics there, for Prometheus.")
    ] = None,
    log_level: LogLevelOption = QUIET,
    log_format: LogFormatOption = "text",
) -> None:
    """Look at a Slurm cluster every minute: keep a journal, and say what a policy would do now. Nothing is changed.

    It reads **squeue --json** and **scontrol show nodes**, which every user may. The report compares what ran with what
    the policy would have done with the same jobs; journals are traces, for **gpusched compare --trace DIR** too.

    For example:
    - **gpusched slurm watch --journal yesterday --partition gpu --for 24h**

    - **gpusched slurm watch --report yesterday --out results/yesterday**
    """
    jobs = JobRules.load(None if rules is None else Path(rules))
    if report is not None:
        if journal is not None:
            raise InputError("--journal", journal, "nothing beside --report, which takes the journal itself")
        _report(report, out, policy, jobs, (seeds, workers))
        return
    if journal is None:
        raise InputError("--journal", None, "a folder, such as --journal watched")
    if not LEAST_S <= every < float("inf"):
        raise InputError("--every", every, f"a number of seconds >= {LEAST_S:g}")
    for_s = None if duration is None else seconds_of_due(f"+{duration}", 0.0, 1.0, "--for")
    decider = Decider(PolicyCatalogue.of(policy), secrets.token_bytes(32))
    slurm = SlurmControl()

    def read() -> LiveCluster:
        return read_cluster(slurm, time.time())

    with ExitStack() as stack:
        stack.enter_context(logging_to_stderr(log_level, log_format))
        book = stack.enter_context(Journal(journal))
        ask: Ask = decider.ask
        book.listeners.append(log_line)
        if metrics is not None:
            counted = needed(live_metrics(jobs.clock, drives=False))
            book.listeners.append(counted.event)
            ask = counted.asking(ask)
            address = address_of("--metrics", metrics)
            server = ProgressServer(ProgressReports(), lambda _: None, address, counted.text)
            stack.callback(server.close)
            typer.echo(f"figures at http://{address[0]}:{server.port}/metrics")
        stops = bool(decider.policies.make(policy).preemption)
        watch = ClusterWatch(read, jobs, policy, ask, book, partition, _reader(progress), preemptive=stops)
        try:
            watch_on(watch, every, typer.echo, for_s=for_s, until_idle=until_idle)
        except KeyboardInterrupt:
            interruption.say(f"the journal {journal} is kept, the same command goes on with it")
            raise
    typer.echo(f"wrote {journal}; gpusched slurm watch --report {journal} tells what it saw")


def _reader(folder: str | None) -> Callable[[LiveCluster], Mapping[str, JobProgress]]:
    """Return what reads the newest reports of jobs that run from a folder; a file that is no report is none."""
    if folder is None:
        return lambda _: {}
    reports = ProgressReports(Path(folder))

    def newest(cluster: LiveCluster) -> dict[str, JobProgress]:
        found = {}
        for job in cluster.jobs:
            with suppress(InputError):
                if job.phase == "running" and (said := reports.newest(job.id, "", job.user)) is not None:
                    found[job.id] = JobProgress(said.epochs, said.at_s)
        return found

    return newest


def _is_of(out: str, scenario: Scenario) -> bool:
    """Return whether a folder has a report of the same journal."""
    with suppress(InputError):
        former = load_scenario(Path(out) / SCENARIO).trace
        own = scenario.trace
        return former is not None and own is not None and Path(former.path).resolve() == Path(own.path).resolve()
    return False


def _report(journal: str, out: str, policy: str, rules: JobRules, how: tuple[str, int | None]) -> None:
    """Compare what ran with policies, on the jobs that a journal saw, and write the folder."""
    seen = SeenCluster.of(journal)
    scenario = scenario_of(seen, journal, rules)
    left = jobs_without_times(seen, scenario)
    plan = ComparisonPlan.of(Workload(scenario), f"{AS_TRACED},{policy}", how[0], AS_TRACED, how[1], "exact,elastic")
    compared = run_comparison(plan, out, replaces=_is_of(out, scenario))  # of the same journal, which grows
    folder = ComparisonFolder(out)
    recorded = {name: folder.recorded(name) for name in (each.name for each in plan.policies)}
    said, tables = about_the_journal(seen, left), [drift] if (drift := drift_table(seen)) is not None else []
    page = ["## What the journal saw", "", *(f"- {each}" for each in said), ""]
    if all(path.exists() for path in recorded.values()):
        results = [read_result(path) for path in recorded.values()]
        ran = Schedule.of_journal(seen, results[0].instance, left)
        others = [Schedule.of_result(result) for result in results if result.policy != AS_TRACED]
        tables.insert(0, savings_table(ran, others, seen.speed))
        page = [verdict_of(tables[0]), "", *page]
    page += map(markdown, tables)
    write_atomically(folder.path / JOURNAL_TRACE, trace_csv(seen))
    write_atomically(folder.path / JOURNAL_PAGE, "\n".join(page))
    write_report(folder.path)
    print_comparisons(output(), compared, plan.reference, None, str(folder.path / "table.md"))
    typer.echo("\n" + "\n".join(page))
    for path in written(out):
        typer.echo(f"wrote {path}")
