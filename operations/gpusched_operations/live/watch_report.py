"""What a journal of a watched cluster says: a scenario, durations modelled and seen, and savings with intervals."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpusched_env.errors import InputError
from gpusched_env.model import Configuration
from gpusched_env.rendering.text import duration_text
from gpusched_env.workload import Scenario, load_scenario
from gpusched_env.workload.traces.seen_jobs import COLUMNS, RUNNING, SeenCluster, SeenJob
from gpusched_experiments.report.estimate import LEAST_SEEDS, Estimate, bootstrap
from gpusched_experiments.report.store import csv_lines
from gpusched_experiments.report.table import COUNT, RATIO, Column, Table
from gpusched_operations.live.job_rules import JobRules

HOUR_S = 3600.0


def trace_csv(seen: SeenCluster) -> str:
    return csv_lines([COLUMNS, *seen.rows()])


def scenario_of(seen: SeenCluster, path: str | Path, rules: JobRules, base: str = "default") -> Scenario:
    """Make the scenario that replays a journal on the cluster that it saw.

    Raises:
        InputError: There is no node with GPUs of a type that is known, or no job ran on GPUs.
    """
    nodes = [
        (seen.gpu_types[node["gpu_type"]], int(node["gpus"]))
        for node in seen.nodes.values()
        if node["gpus"]
        and node["gpu_type"] in seen.gpu_types
        and (seen.partition is None or seen.partition in (node.get("partitions") or ()))
    ]
    if not nodes:
        raise InputError("journal", str(path), "one that saw a node with GPUs of a type that is known")
    pools = [{"gpu_type": name, "gpus_per_node": gpus, "nodes": many} for (name, gpus), many in Counter(nodes).items()]
    ran = [job for job in seen.jobs.values() if job.runs and (seen.partition in (None, job.fields.get("partition")))]
    values: dict[str, Any] = {
        "name": "journal",
        "description": "What a journal saw, replayed on the cluster that it saw.",
        "cluster.pools": pools,
        "trace": {"path": str(Path(path).resolve()), "format": "journal", "gpu_demand": "exact"},
        "jobs.count": max(1, len(ran)),
        "prices.energy_price_eur_per_kwh": rules.file.prices.energy_eur_per_kwh,
        "prices.pue": rules.file.prices.pue,
    }
    if seen.partition is not None:
        values["trace.where"] = [f'partition = "{seen.partition}"']
    if rules.file.own_gpu_types:
        values["gpu_types"] = [each.model_dump(exclude_unset=True) for each in rules.file.own_gpu_types]
    made = load_scenario(base)
    own = _own_applications(ran, made)
    names = sorted({job.known["application"] for job in ran if job.known})
    if own:
        values["applications"] = own
    if names:
        values["jobs.applications"] = names
    restarts: dict[str, list[float]] = {}
    for job in ran:
        if job.known.get("restart_s") is not None:
            restarts.setdefault(job.known["application"], []).append(float(job.known["restart_s"]))
    values["restart_by_application"] = {name: statistics.median(each) for name, each in restarts.items()}
    made = made.replace(values)
    left = jobs_without_times(seen, made)
    if not left:
        return made
    if len(left) >= len(ran):
        raise InputError(
            "--rules", "; ".join(sorted(set(left.values()))), "times for at least one of the jobs that ran"
        )
    where = [*values.get("trace.where", ()), *(f'job != "{name}"' for name in left)]
    return made.replace({"trace.where": where, "jobs.count": max(1, sum(job.id not in left for job in ran))})


def jobs_without_times(seen: SeenCluster, scenario: Scenario) -> dict[str, str]:
    """Return the jobs that last ran on a GPU type for which their application has no times: why, by id."""
    catalogue, found = scenario.catalogue(), {}
    for job in seen.jobs.values():
        name, kind = job.known.get("application", seen.usual), seen.type_of(job.runs[-1]) if job.runs else ""
        own = catalogue.applications.get(name or "") if kind in catalogue.gpu_types else None
        if own is not None and all(each[0] != kind for each in (*own.seconds_per_epoch, *own.whole_nodes_s)):
            found[job.id] = f"{name} has no times on {kind}"
    return found


def _own_applications(ran: Sequence[SeenJob], base: Scenario) -> list[dict[str, Any]]:
    """Return the applications that are not built in, with the times that the policy was told."""
    built_in = base.catalogue().applications
    times: dict[str, dict[str, dict[str, float]]] = {}
    most: dict[str, float] = {}
    for job in ran:
        name = job.known.get("application")
        if name is None or name in built_in:
            continue
        most[name] = max(most.get(name, 0.0), float(job.known["max_epochs"]))
        for configuration, seconds in job.known["seconds_per_epoch"].items():
            nodes, star, rest = configuration.rpartition("*")
            gpu_type, _, size = rest.rpartition("x")
            times.setdefault(name, {}).setdefault(gpu_type, {})[f"{nodes}{star}{size}"] = seconds
    return [{"name": name, "max_epochs": most[name], "seconds_per_epoch": times[name]} for name in times]


@dataclass(frozen=True, slots=True)
class Drift:
    """Seen and modelled durations of one application on one configuration.

    Attributes:
        application: The application.
        configuration: Name of the configuration.
        source: What the seen ones are taken from: `progress`, or `end`.
        seen_s: Seen durations, one for each run [s of the model], (R,).
        modelled_s: What the model says of as many epochs [s], (R,).
    """

    application: str
    configuration: str
    source: str
    seen_s: NDArray[np.float64]
    modelled_s: NDArray[np.float64]

    @property
    def ratio(self) -> Estimate:
        seen_s, modelled_s = self.seen_s, self.modelled_s
        interval = bootstrap(len(seen_s), lambda draws: seen_s[draws].sum(axis=1) / modelled_s[draws].sum(axis=1))
        return Estimate(float(seen_s.sum() / modelled_s.sum()), interval, len(seen_s))


def drifts(seen: SeenCluster) -> list[Drift]:
    """Compare modelled with seen durations: of what jobs reported, else of those that completed.

    A job that reported its epochs twice or more in a run counts with the epochs and the time between the first and the
    last report of it. One that did not, completed in one run, and of which somebody said how many epochs it needs,
    counts with all of them.
    """
    found: dict[tuple[str, str, str], list[tuple[float, float]]] = {}
    for job in seen.jobs.values():
        if not job.known:
            continue
        for configuration, source, epochs, seconds in _measured(seen, job):
            modelled = job.known["seconds_per_epoch"].get(configuration)
            if modelled is not None and epochs > 0.0 and seconds > 0.0:
                key = (job.known["application"], configuration, source)
                found.setdefault(key, []).append((seconds * seen.speed, epochs * modelled))
    return [Drift(*key, *np.array(pairs).T) for key, pairs in sorted(found.items())]


def _measured(seen: SeenCluster, job: SeenJob) -> Iterator[tuple[str, str, float, float]]:
    """Yield configuration, source, epochs and seconds of the cluster that a job took for them."""
    for run in job.runs:
        nodes = max(1, len(run.nodes))
        if run.gpus < 1 or run.gpus % nodes:
            continue
        name = Configuration(seen.type_of(run), run.gpus // nodes, nodes).name
        inside = [(epochs, at_s) for epochs, at_s in job.reports if run.start_s <= at_s <= run.end_s]
        if len(inside) > 1:
            yield name, "progress", inside[-1][0] - inside[0][0], inside[-1][1] - inside[0][1]
        elif not job.reports and len(job.runs) == 1 and _is_said(job):
            yield name, "end", float(job.known["max_epochs"]), run.end_s - run.start_s


def _is_said(job: SeenJob) -> bool:
    taken = ("application", "most epochs", "epochs")
    return (
        job.outcome == "completed" and job.is_known and not any(str(d).startswith(taken) for d in job.known["defaults"])
    )


DRIFT: tuple[Column[Drift], ...] = (
    Column("application", "application", lambda row: row.application),
    Column("configuration", "configuration", lambda row: row.configuration),
    Column("source", "from", lambda row: row.source),
    Column("runs", "runs", lambda row: len(row.seen_s), COUNT),
    Column("seen_s", "seen, mean", lambda row: float(row.seen_s.mean()), duration_text),
    Column("modelled_s", "modelled, mean", lambda row: float(row.modelled_s.mean()), duration_text),
    Column("ratio", "seen / modelled", lambda row: row.ratio, RATIO, interval=True),
)


def drift_table(seen: SeenCluster) -> Table | None:
    rows = drifts(seen)
    note = (
        "Seen / modelled: sum over sum; 95 % bootstrap interval over runs, none with fewer than "
        f"{LEAST_SEEDS}. From `progress`: the epochs between two reports of a job. From `end`: completed jobs and all "
        "epochs that their owners said; a job that needs fewer looks fast."
    )
    return Table.of("Modelled and seen durations", DRIFT, rows, (note,)) if rows else None


def about_the_journal(seen: SeenCluster, left: Mapping[str, str] = MappingProxyType({})) -> tuple[str, ...]:
    """Say in sentences what the journal saw, and how jobs count that it did not see to their end.

    Args:
        left: Jobs that are left out, `jobs_without_times`.
    """
    own = [j for j in seen.jobs.values() if seen.partition in (None, j.fields.get("partition")) and _gpus(j)]
    first, last = (f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M}" for at in (seen.first_s, seen.last_s))
    unseen = sum(bool(job.runs) and not job.is_known for job in own)
    before = sum(bool(job.runs) and job.runs[0].start_s < seen.first_s for job in own)
    running = sum(job.outcome == RUNNING for job in own)
    ran, never = sum(bool(job.runs) for job in own), sum(not job.runs for job in own)
    readings = (
        f"{seen.readings:,} readings from {first} to {last} UTC; the longest time between two was "
        f"{duration_text(seen.longest_gap_s)}; {seen.events['read-failed']} readings failed."
    )
    counted = (
        f"{len(own):,} jobs with GPUs: {ran:,} ran, of which {running:,} still ran at the end. Those count with what "
        "they had run by then, as if they had ended there: every schedule does the same work, but what their later "
        "delay costs is missing."
    )
    said = [readings, counted]
    if never or unseen:
        said.append(
            f"{never:,} jobs never ran, and {unseen:,} ended while nobody looked: they are left out, and no policy had "
            "to run them."
        )
    if left:
        said.append(f"Left out: {'; '.join(f'job {name}, {why}' for name, why in left.items())}.")
    if before:
        said.append(
            f"{before:,} jobs ran already at the first reading; jobs that had ended by then are not known, so the "
            "replayed cluster begins emptier than the real one."
        )
    drawn = "Durations are what was seen; a job's maximum epochs are drawn so that it takes this long on its GPUs."
    said.append(drawn)
    fixed = sum(bool(job.runs) and not job.known.get("checkpoints", False) for job in own)
    if fixed:
        said.append(
            f"{fixed:,} of the jobs that ran did not say that they can be stopped and continued; policies that stop "
            "jobs stop them all the same here, so what they save is an upper limit."
        )
    usual = Counter(each for job in own for each in job.known.get("defaults", ()))
    if usual:
        most = "; ".join(f"{text} ({count:,} jobs)" for text, count in usual.most_common(4))
        said.append(f"Nobody said, so it was taken: {most}.")
    return tuple(said)


def _gpus(job: SeenJob) -> int:
    return max([int(job.fields.get("gpus") or 0), *(run.gpus for run in job.runs)])
