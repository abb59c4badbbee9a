"""The page of a snapshot, and its tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, NamedTuple

from gpusched_env.rendering.text import duration_text
from gpusched_env.workload.tables import SLICES
from gpusched_experiments.report.table import COUNT, MONEY, RATIO, Column, Table
from gpusched_operations.html_report import ReportData
from gpusched_operations.live.asking import deferrals
from gpusched_operations.live.occupancy import occupancy
from gpusched_operations.live.request import NO_GPU
from gpusched_operations.live.snapshot import FULL, PolicyAnswer, Snapshot
from gpusched_operations.live.state import Clock, LiveJob, LiveNode, parts_text
from gpusched_operations.service.gpu_names import sevenths

MANAGERS = {"slurm": "Slurm", "kueue": "Kueue", "kai": "KAI-Scheduler"}
ACTIONS = {
    "start": "start {}",
    "keep": "leave {} as they are",
    "change": "move or resize {}",
    "stop": "stop {}",
    "wait": "let {} wait",
}
FIXED_SPACE = "\N{NO-BREAK SPACE}"
SHOWN_IDS = 8
MEANT = (
    "Nothing was changed: this is what each policy would do if it were asked then.",
    (
        "Jobs that policies are not told keep their GPUs. Those that run and did not say that they can be stopped and "
        "continued are told to policies that stop no jobs. To the others they are not told, and their GPUs never "
        "become free."
    ),
    (
        "Running jobs €: what the jobs that would run cost until they end, energy and tardiness, and those that are "
        "deferred while GPUs are idle. Others that wait count nothing there. All jobs €: until all of these jobs are "
        "done, by rollouts of the policy without new jobs."
    ),
    (
        "The whole base power of a node counts where a job would run, even if jobs that policies are not told keep it "
        "on anyway."
    ),
    "What a job has done is taken from the time since its last start, and how fast the model says it is.",
    (
        "instance.json has an empty cluster to which these jobs come at time 0 with the epochs that are left; "
        "epochs_needed is the expected number of them. request.json is what the first policy was asked that could be. "
        "It does not say which jobs may be stopped: if that policy stops no jobs, ask only such policies with it."
    ),
)


def policies_table(snapshot: Snapshot) -> Table:
    """Return what each policy would do now, in numbers."""

    def of(name: str) -> Any:
        return lambda each: None if each.answer is None else each.answer[name]

    columns: list[Column[PolicyAnswer]] = [Column("policy", "policy", lambda each: each.policy)]
    alike = len({each.told for each in snapshot.answers}) == 1
    if not alike:
        columns.append(Column("told", "told", lambda each: each.told, COUNT))
    columns += [Column(name, name, _count_of(name), COUNT) for name in ACTIONS]
    prices = snapshot.request.fields["prices"]
    per_kw = 0.0 if prices["gpu_hour_eur"] or "series" in prices else prices["energy_eur_per_kwh"] * prices["pue"]
    if per_kw > 0.0:
        columns.append(
            Column("power_kw", "power kW", lambda each: _divided(of("energy_eur_per_h")(each), per_kw), RATIO)
        )
    columns += [
        Column("energy_eur_per_h", "energy €/h", of("energy_eur_per_h"), MONEY),
        Column("expected_cost_eur", "running jobs €", of("expected_cost_eur"), MONEY),
    ]
    if any(each.forecast is not None for each in snapshot.answers):
        columns += [
            Column("forecast_energy_eur", "all jobs: energy €", _forecast("expected_energy_eur"), MONEY),
            Column("forecast_total_eur", "all jobs €", _forecast("expected_total_eur"), MONEY),
            Column("forecast_late_jobs", "late jobs", _forecast("expected_late_jobs"), RATIO),
        ]
    notes = tuple(f"{each.policy} cannot decide here: {each.error}" for each in snapshot.answers if each.error)
    if not alike:
        notes = (*notes, "told: jobs that it is told. Costs are those of these jobs, so that rows with others differ.")
    return Table.of("What each policy would do now", columns, snapshot.answers, notes)


def _forecast(name: str) -> Any:
    def value(each: PolicyAnswer) -> float | None:
        cluster = None if each.forecast is None else each.forecast["cluster"]
        return None if cluster is None else cluster[name]

    return value


def _divided(value: float | None, by: float) -> float | None:
    return None if value is None else value / by


def _count_of(action: str) -> Any:
    def count(each: PolicyAnswer) -> int | None:
        return None if each.answer is None else sum(job["action"] == action for job in each.answer["jobs"])

    return count


def jobs_table(snapshot: Snapshot) -> Table:
    """Return the jobs that policies are told, and what each policy would do with them."""
    entries, known, now_s = snapshot.entries(), snapshot.jobs(), snapshot.cluster.read_s
    told = [job for job in snapshot.cluster.jobs if job.id in entries]
    told.sort(key=lambda job: (job.phase == "pending", job.submit_s))
    speed = snapshot.rules.clock.speed

    def epochs(job: LiveJob) -> str:
        entry = entries[job.id]
        return f"{entry.get('epochs_done', 0.0):.3g} of {entry['max_epochs']:.4g}"

    def due(job: LiveJob) -> str:
        left_s = known[job.id].due_s - now_s
        return f"in {_long(left_s)}" if left_s >= 0.0 else f"{_long(-left_s)} ago"

    columns: list[Column[LiveJob]] = [
        Column("job", "job", lambda job: job.id),
        Column("name", "name", lambda job: job.name),
        Column("user", "user", lambda job: job.user, main=False),
        Column("application", "application", lambda job: known[job.id].application, main=False),
        Column("now", "now", lambda job: now_text(job, now_s)),
        Column("epochs", "epochs", epochs),
        Column("due", "due", due),
    ]
    for each in snapshot.answers[1:]:
        waits = each.waits_s(snapshot.now_s)
        columns.append(Column(each.policy, each.policy, _action_of(each, snapshot.rules.clock)))
        if any(entries[name].get("started_s") is None for name in waits):
            columns.append(Column(f"{each.policy}_wait", f"{each.policy}: wait", _wait_of(waits, entries, speed)))
    notes: tuple[str, ...] = ()
    samples = [each.forecast["samples"] for each in snapshot.answers if each.forecast is not None]
    if samples:
        notes = (f"Wait until the first start: median (10 % to 90 %) of {min(samples)} rollouts without new jobs.",)
    return Table.of("Jobs that policies are told", columns, told, notes)


def _long(seconds: float) -> str:
    return duration_text(max(0.0, seconds)).replace(" ", FIXED_SPACE)


def now_text(job: LiveJob, now_s: float, why: str = "") -> str:
    """Return what a job does, with the reason of one that waits unless `why` names it."""
    if job.phase == "pending":
        waits = f"waits {_long(now_s - job.submit_s)}" if job.submit_s > 0.0 else "waits"
        return waits + (f", {job.reason}" if job.reason and job.reason not in why else "")
    since = "" if job.start_s is None else f", {_long(now_s - job.start_s)}"
    return (", ".join(f"{gpus} on {node}" for node, gpus in job.holds) or "runs") + since


def _action_of(asked: PolicyAnswer, clock: Clock) -> Any:
    jobs, waits = asked.jobs(), {} if asked.answer is None else deferrals(asked.answer, clock)

    def action(job: LiveJob) -> str:
        told = jobs.get(job.id)
        if told is None and (asked.request is None or job.id not in asked.request.jobs):
            return "wait, no GPUs now" if job.phase == "pending" else "not told"
        if told is None:
            return ""
        if told["configuration"] is None:
            return f"{told['action']}, {waits[job.id]}" if job.id in waits else str(told["action"])
        return f"{told['action']} {told['configuration']} on {', '.join(told['nodes'])}"

    return action


def _wait_of(waits: Mapping[str, tuple[float | None, ...]], entries: Mapping[str, dict[str, Any]], speed: float) -> Any:
    def wait(job: LiveJob) -> str:
        found = waits.get(job.id)
        if found is None and job.phase == "pending":
            return "no node for it"
        if found is None or entries[job.id].get("started_s") is not None:
            return ""
        low, middle, high = ("?" if each is None else _long(each / speed) for each in found)
        return middle if low == middle == high else f"{middle} ({low} to {high})"

    return wait


class LeftOut(NamedTuple):
    """A job that policies are not told, and why."""

    job: LiveJob
    why: str


def left_out_table(snapshot: Snapshot) -> Table:
    told = snapshot.jobs()
    by_id = {job.id: job for job in snapshot.cluster.jobs}
    rows = [LeftOut(by_id[name], why) for name, why in snapshot.request.left_out.items() if name not in told]
    columns: tuple[Column[LeftOut], ...] = (
        Column("job", "job", lambda each: each.job.id),
        Column("name", "name", lambda each: each.job.name),
        Column("user", "user", lambda each: each.job.user),
        Column("now", "now", lambda each: now_text(each.job, snapshot.cluster.read_s, each.why)),
        Column("why", "why", lambda each: each.why),
    )
    return Table.of("Jobs that policies are not told", columns, rows)


def nodes_table(snapshot: Snapshot) -> Table:
    """Return the nodes with GPUs."""
    held = occupancy(snapshot.cluster)
    told = {node["name"]: node for node in snapshot.request.fields["cluster"]["nodes"]}

    def gpu_type(node: LiveNode) -> str:
        return f"{node.gpu_type} = {snapshot.rules.gpu_type(node.gpu_type) or '?'}"

    columns: tuple[Column[LiveNode], ...] = (
        Column("node", "node", lambda node: node.name),
        Column("gpu_type", "GPU type", gpu_type),
        Column("gpus", "GPUs", lambda node: node.gpus, COUNT),
        Column("parts", "parts", lambda node: parts_text(node.parts)),
        Column("held", "held", lambda node: held[node.name].held, COUNT),
        Column("unseen", "of them unseen", lambda node: held[node.name].unseen, COUNT),
        Column("told", "told", lambda node: told[node.name]["gpus"] if node.name in told else 0, COUNT),
        Column("state", "state", lambda node: node.state),
        Column("why", "why it is left out", lambda node: snapshot.request.nodes_left_out.get(node.name, "")),
    )
    nodes = [node for node in snapshot.cluster.nodes if node.gpus or node.name in snapshot.request.nodes_left_out]
    notes = (
        "told: GPUs that policies may decide about, those of jobs that they are told among them.",
        "unseen: the node says that they are held, and no job that can be seen holds them.",
    )
    return Table.of("Nodes with GPUs", columns, nodes, notes)


def nodes_left_out_table(snapshot: Snapshot) -> Table:
    """Return why nodes are left out, and which."""
    names: dict[str, list[str]] = {}
    for name, why in snapshot.request.nodes_left_out.items():
        names.setdefault(why, []).append(name)
    columns: tuple[Column[tuple[str, list[str]]], ...] = (
        Column("why", "why", lambda each: each[0]),
        Column("nodes", "nodes", lambda each: len(each[1]), COUNT),
        Column("names", "names", lambda each: _some(each[1])),
    )
    return Table.of("Nodes that are left out", columns, list(names.items()))


def defaults_table(snapshot: Snapshot) -> Table:
    """Return what nobody said of jobs, and what was taken."""
    names: dict[str, list[str]] = {}
    for name, what in snapshot.jobs().items():
        for default in what.defaults:
            names.setdefault(default, []).append(name)
    rows = sorted(names.items(), key=lambda each: -len(each[1]))
    columns: tuple[Column[tuple[str, list[str]]], ...] = (
        Column("taken", "taken", lambda each: each[0]),
        Column("jobs", "jobs", lambda each: len(each[1]), COUNT),
        Column("ids", "ids", lambda each: _some(each[1])),
    )
    return Table.of("What nobody said, and what was taken instead", columns, rows)


def _some(names: Iterable[str]) -> str:
    listed = list(names)
    return ", ".join(listed[:SHOWN_IDS]) + (f" and {len(listed) - SHOWN_IDS} more" if len(listed) > SHOWN_IDS else "")


def sentences(snapshot: Snapshot) -> tuple[str, ...]:
    """Return what there is, and what the policies say, a sentence or two each."""
    jobs = [job for job in snapshot.cluster.jobs if job.phase != "ended" and job.wants_gpus]
    nodes = [node for node in snapshot.cluster.nodes if node.gpus]
    uses = [each for each in occupancy(snapshot.cluster).values() if each.gpus]
    held, unseen = sum(each.held for each in uses), sum(each.unseen for each in uses)
    running, waiting = (sum(job.phase == phase for job in jobs) for phase in ("running", "pending"))
    gpus, told = sum(node.gpus for node in nodes), len(snapshot.jobs())
    by_jobs = f" by {running} running jobs"
    if unseen:
        others = f", the others{by_jobs}" if held > unseen else f"; {running} jobs are seen to run"
        by_jobs = f", {unseen} of them by jobs that cannot be seen{others}"
    there = f"{held} of {gpus} GPUs on {len(nodes)} nodes are held{by_jobs}, and {waiting} jobs wait."
    said = [f"{there} Policies are told {told} of these jobs."]
    said += _of_parts(snapshot.cluster.nodes)
    fewer = [each for each in snapshot.answers[1:] if each.told < told]
    if fewer:
        names = ", ".join(each.policy for each in fewer)
        said.append(f"{names}: told {min(each.told for each in fewer)}, since others run and may not be stopped.")
    for each in snapshot.answers[1:]:
        counts = Counter(job["action"] for job in ([] if each.answer is None else each.answer["jobs"]))
        done = ", ".join(text.format(counts[action]) for action, text in ACTIONS.items() if counts[action])
        if done or each.error in (FULL, NO_GPU):
            said.append(f"{each.policy} would {done}." if done else f"{each.policy}: {each.error}.")
    return tuple(said)


def _of_parts(nodes: Iterable[LiveNode]) -> list[str]:
    """Return what parts of GPUs there are beside the GPUs, which no policy is told."""
    parts: Counter[str] = Counter()
    for node in nodes:
        parts.update(dict(node.parts))
    slices = {name: many for name, many in parts.items() if sevenths(name)}
    others = {name: many for name, many in parts.items() if name not in slices}
    said = []
    if slices:
        whole = f"{sum(many * sevenths(name) for name, many in slices.items())}/{SLICES} of a GPU in all"
        shown = parts_text(sorted(slices.items()))
        said.append(f"Beside them are {sum(slices.values())} slices of GPUs ({shown}), {whole}.")
    if others:
        said.append(f"Not counted as GPUs: {parts_text(sorted(others.items()))}.")
    return said


def snapshot_report(snapshot: Snapshot, provenance: Mapping[str, Any]) -> ReportData:
    at = datetime.fromtimestamp(snapshot.cluster.read_s).astimezone().strftime("%Y-%m-%d at %H:%M:%S %Z")
    more = (left_out_table(snapshot), nodes_table(snapshot), defaults_table(snapshot))
    return ReportData(
        title=f"A cluster of {MANAGERS[snapshot.cluster.manager]}",
        question=f"What ran and waited on {at}, why, and what each policy would have done then.",
        verdict=sentences(snapshot),
        tables=(policies_table(snapshot), jobs_table(snapshot)),
        more_tables=tuple(table for table in more if table.rows),
        page="\n".join(["## What the figures mean", "", *(f"- {each}" for each in MEANT)]),
        provenance=provenance,
    )
