"""What Slurm says of the jobs of a partition becomes what a driver knows of them: runs begin and end, and events."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from gpusched_env.errors import InputError
from gpusched_operations.live.drive_state import MOST_COSTS, DrivenJob, DriveState
from gpusched_operations.live.progress import JobHistory, JobProgress
from gpusched_operations.live.progress_reports import ProgressReports
from gpusched_operations.live.state import WORD, LiveCluster, LiveJob, LiveNode

if TYPE_CHECKING:
    from gpusched_operations.live.job_rules import JobRequest, JobRules

SHORT_RUN_S = 20.0
"""A run that ends so soon, and that nobody stopped, came to nothing: the launch failed."""
SILENT_S = 600.0
FIRST_WAIT_S, LONGEST_WAIT_S = 30.0, 1800.0

OnEvent = Callable[..., Any]
"""Takes an event: its kind, and its fields."""


def holder(job: LiveJob) -> str:
    if job.held and job.request.reason == "JobHeldAdmin":
        return "admin"
    return "user" if job.held == "requeue" else job.held


def is_held_by_user(job: LiveJob, record: DrivenJob) -> bool:
    """Return whether a waiting job is held by somebody else than the driver, who is to be respected.

    The driver's holds are those of an administrator, but for jobs that were submitted with `--hold`, and those that
    it has just put back into the queue, until they were `confirmed` as such.
    """
    held = holder(job)
    if held == "admin":
        return not (launch_failed(job) or record.ours)
    if held == "user" and not record.confirmed:
        return not (record.stopped or record.ours) if job.held == "requeue" else not record.held_at_first
    return held == "user"


def launch_failed(job: LiveJob) -> bool:
    return "launch failed" in job.reason.replace("_", " ")


class Follower:
    """Keeps the records of a driver's jobs."""

    def __init__(self, state: DriveState, rules: JobRules, reports: ProgressReports, on_event: OnEvent) -> None:
        self.state, self.rules, self.reports, self.on_event = state, rules, reports, on_event
        self._refused: dict[str, str] = {}
        self._here = rules
        self._nodes: tuple[LiveNode, ...] = ()
        self._jobs: dict[str, LiveJob] = {}

    def follow(self, cluster: LiveCluster) -> None:
        now_s = cluster.read_s
        self._here, self._nodes = self.rules.on(cluster), cluster.nodes
        there = self._jobs = {job.id: job for job in cluster.jobs}
        for name, record in list(self.state.jobs.items()):
            if name in there and not record.is_of(there[name]):
                self.on_event(
                    "other-job", job=name, user=there[name].user
                )  # what was done to its own job is gone with it
                self._over(name, record, None, now_s)
        for job in cluster.jobs:
            if job.partition == self.state.partition and job.phase in ("pending", "running"):
                self._adopt(job, now_s)
        for name, record in list(self.state.jobs.items()):
            if name in there:
                self._follow_job(there[name], record, now_s)
            elif cluster.names or not self.state.cluster or not record.must_be_undone:
                self._over(name, record, None, now_s)  # else nothing says that this is its cluster
        for name in [name for name in self.state.left_alone if name not in there or there[name].phase == "ended"]:
            del self.state.left_alone[name]

    def _follow_job(self, job: LiveJob, record: DrivenJob, now_s: float) -> None:
        record.saw(job)
        if job.partition != self.state.partition and self._has_left(job, record, now_s):
            return
        self._hear(job, record)
        if job.phase == "ended":
            self._over(job.id, record, job, now_s)
        elif job.phase == "running":
            self._runs(job, record, now_s)
            self._hear(job, record)
        elif job.phase == "pending":
            self._waits(job, record, now_s)

    def progress(self) -> dict[str, JobProgress]:
        return {
            name: JobProgress(record.epochs, record.told_s)
            for name, record in self.state.jobs.items()
            if record.epochs is not None and record.told_s is not None
        }

    def seen(self) -> dict[str, JobHistory]:
        usual_s = self.state.restart_s
        found = {}
        for name, record in self.state.jobs.items():
            runs = bool(record.configuration)
            ready_s = record.ready_s
            if runs and ready_s is None and record.since_s is not None and usual_s is not None:
                ready_s = record.since_s + usual_s
            since_s, ready_s = (record.since_s, ready_s) if runs else (None, None)
            times = (record.submit_s, record.first_start_s, since_s, ready_s)
            found[name] = JobHistory(*times, record.last_nodes, record.modelled_epochs)
        return found

    def came_to_nothing(self, record: DrivenJob, now_s: float) -> None:
        record.not_before_s = now_s + min(LONGEST_WAIT_S, FIRST_WAIT_S * 2.0**record.tries)
        record.tries += 1

    def _has_left(self, job: LiveJob, record: DrivenJob, now_s: float) -> bool:
        """Return whether a job that is in another partition now is done with; what was done to it is undone first."""
        if job.phase != "ended" and not (record.must_be_undone or record.stopped):
            self._over(job.id, record, None, now_s)
            return True
        if job.phase != "ended" and not record.given_back:
            record.given_back = f"it is in the partition {job.partition} now"
            self.on_event("left-to-slurm", job=job.id, why=record.given_back)
        return False

    def _adopt(self, job: LiveJob, now_s: float) -> None:
        known = self.state.jobs.get(job.id)
        opted_in = WORD in job.comment.split()
        if known is not None:
            if known.given_back and opted_in and job.comment != known.comment and not known.must_be_undone:
                self._adopt_again(job, known, now_s)
            elif not opted_in and not known.given_back:
                known.given_back = "its comment no longer says gpusched"
            return
        if not opted_in or self._left_alone(job, now_s):
            return
        record = DrivenJob(job.request, job.comment, job.submit_s, command=job.script, restarts=job.restarts)
        record.saw(job)
        self.state.jobs[job.id] = record
        self._adopted(job, record)

    def _adopt_again(self, job: LiveJob, record: DrivenJob, now_s: float) -> None:
        """Take care again of a job that was given back, as it is now; what it did until now stays known."""
        if self._left_alone(job, now_s):
            return
        record.request, record.comment, record.given_back = job.request, job.comment, ""
        record.confirmed = record.cannot_stop = False
        record.tries, record.not_before_s = 0, 0.0
        self._adopted(job, record)

    def _adopted(self, job: LiveJob, record: DrivenJob) -> None:
        record.held_at_first = job.phase == "pending" and job.held == "user"
        self.on_event("adopted", job=job.id, phase=job.phase, held=job.held, asked=job.request.tres, user=job.user)

    def _left_alone(self, job: LiveJob, now_s: float) -> bool:
        why = self._why_alone(job, now_s)
        if not why:
            self.state.left_alone.pop(job.id, None)
        elif self.state.left_alone.get(job.id) != why:
            self.state.left_alone[job.id] = why
            self.on_event("left-alone", job=job.id, why=why)
        return bool(why)

    def _why_alone(self, job: LiveJob, now_s: float) -> str:
        if job.request.why_not:
            return job.request.why_not
        if job.phase == "pending" and job.request.waits_for:
            return f"it waits for {job.request.waits_for}"
        if job.phase == "pending" and job.held not in ("", "user"):
            return f"it is held already: {job.reason}"
        if job.phase == "pending" and job.request.eligible_s > now_s and not job.restarts:
            return "it is not to begin yet"
        return self._no_description(job)

    def _no_description(self, job: LiveJob) -> str:
        try:
            self._here.describe(job)
        except InputError as error:
            return str(error)
        return ""

    def _runs(self, job: LiveJob, record: DrivenJob, now_s: float) -> None:
        if not record.configuration or record.restarts != job.restarts:
            self._begins(job, record, now_s)
        if record.stopped and record.stopped_s is not None and now_s - record.stopped_s > SHORT_RUN_S:
            record.stopped, record.stopped_s = False, None  # Slurm never heard that it should stop
        if record.ours and job.request.priority > 0.0 and not record.stopped:
            record.ours = False
        if record.ready_s is not None and now_s - record.ready_s > SHORT_RUN_S:
            record.tries = 0
        last_s = max(each for each in (record.since_s, record.told_s, 0.0) if each is not None)
        if not record.silent and now_s - last_s > SILENT_S:
            record.silent = True
            self.on_event("silent", job=job.id, since_s=last_s)

    def _begins(self, job: LiveJob, record: DrivenJob, now_s: float) -> None:
        """Take note that a run began."""
        start_s = job.start_s if job.start_s is not None else now_s
        if record.configuration:
            self._run_ends(job.id, record, min(now_s, start_s))
        record.nodes = tuple(name for name, _ in job.holds)
        record.gpus_per_node = max((count for _, count in job.holds), default=0)
        wanted = self._held_name(job, record)
        own = record.planned == wanted or _is_limited(record.planned, wanted)
        record.configuration = record.planned if own else wanted
        record.since_s, record.ready_s, record.first_epochs = start_s, None, None
        record.restarts, record.stopped, record.silent = job.restarts, False, False
        record.confirmed = record.held_at_first = False
        if record.first_start_s is None:
            record.first_start_s = start_s
        self.on_event(
            "runs",
            job=job.id,
            configuration=record.configuration,
            nodes=record.nodes,
            start_s=start_s,
            restarts=job.restarts,
            waited_s=round(start_s - record.submit_s, 3),
            by="driver" if own else "slurm",
        )

    def _held_name(self, job: LiveJob, record: DrivenJob) -> str:
        node = next((node for node in self._nodes if node.name in record.nodes), None)
        gpu_type = None if node is None else self.rules.gpu_type(node.gpu_type)
        even = len({count for _, count in job.holds}) == 1
        if gpu_type is None or not even or not record.gpus_per_node:
            return f"{gpu_type or 'unknown'}x{sum(count for _, count in job.holds) or '?'}"
        from gpusched_env.model import Configuration  # noqa: PLC0415 - a release needs no compiled functions

        return Configuration(gpu_type, record.gpus_per_node, len(record.nodes)).name

    def _waits(self, job: LiveJob, record: DrivenJob, now_s: float) -> None:
        if not record.changed:
            record.request = job.request  # its user may have changed it
            if job.request.why_not and not record.given_back:
                record.given_back = job.request.why_not
                self.on_event("left-to-slurm", job=job.id, why=job.request.why_not)
        if record.configuration:
            short = record.since_s is not None and now_s - record.since_s < SHORT_RUN_S
            if not record.stopped:
                self.on_event("requeued", job=job.id, why=job.reason)
                if short or launch_failed(job):
                    self.came_to_nothing(record, now_s)
        if launch_failed(job) and not record.given_back:
            record.ours = True  # Slurm held it; it is started again
        if record.configuration:
            self._run_ends(job.id, record, now_s)
        if record.ours and holder(job) == "admin":
            record.confirmed = True

    def _run_ends(self, name: str, record: DrivenJob, end_s: float) -> None:
        """Take note that a run ended."""
        since_s = record.since_s if record.since_s is not None else end_s
        record.ended_s = max(since_s, end_s)
        self.on_event(
            "interval",
            job=name,
            configuration=record.configuration,
            nodes=record.nodes,
            gpus_per_node=record.gpus_per_node,
            start_s=since_s,
            ready_s=record.ready_s,
            end_s=record.ended_s,
            first_epochs=record.first_epochs,
            epochs=record.epochs,
        )
        if record.epochs is None:
            record.modelled_epochs += self._modelled_epochs(name, record, record.ended_s - since_s)
        if record.ready_s is not None:
            record.last_nodes = record.nodes
        record.configuration, record.nodes, record.gpus_per_node = "", (), 0

    def _modelled_epochs(self, name: str, record: DrivenJob, seconds: float) -> float:
        """Return the epochs that the model expects of a run of so many seconds, after which a job can continue."""
        from gpusched_operations.service.cluster import configuration_of  # noqa: PLC0415 - as below

        what = self._described(name)
        try:
            held = configuration_of(record.configuration)
        except InputError:
            return 0.0
        if what is None or not what.checkpoints:
            return 0.0
        made_s = max(0.0, seconds - (self.state.restart_s or 0.0)) * self._here.clock.speed
        return made_s / self._here.seconds(what.application, held)

    def _over(self, name: str, record: DrivenJob, job: LiveJob | None, now_s: float) -> None:
        """Take note that a job is over."""
        end_s = job.end_s if job is not None and job.end_s is not None else now_s
        if record.configuration:
            self._run_ends(name, record, min(now_s, end_s))
        elif job is not None and job.start_s and (record.since_s is None or job.start_s > record.since_s) and job.holds:
            self._begins(job, record, now_s)  # it started and ended between two looks
            self._run_ends(name, record, min(now_s, end_s))
        self.on_event(
            "ended",
            job=name,
            outcome=job.outcome if job is not None else "unknown",
            end_s=record.ended_s if record.ended_s is not None else min(now_s, end_s),
            epochs=record.epochs,
            submit_s=record.submit_s,
            restarts=job.restarts if job is not None else record.restarts,
        )
        self.reports.forget(name)
        self._refused.pop(name, None)
        del self.state.jobs[name]

    def _hear(self, job: LiveJob, record: DrivenJob) -> None:
        """Take the newest report of a job, if it is to be believed."""
        name = job.id
        try:
            report = self.reports.newest(name, job.request.folder, job.request.user)
        except InputError as error:
            self._refuse(name, str(error))
            return
        if report is None or report.restarts != record.restarts or not record.first_start_s:
            return
        former = record.epochs if record.first_epochs is not None else None
        if former == report.epochs and record.told_s is not None and record.told_s >= report.at_s:
            return
        what = self._described(name)
        why = report.why_not(former, float("inf") if what is None else what.max_epochs)
        if why:
            self._refuse(name, why)
            return
        at_s = report.at_s
        if record.first_epochs is None and record.configuration:
            self._first_report(name, record, report.epochs, at_s)
        record.epochs, record.told_s = report.epochs, at_s

    def _first_report(self, name: str, record: DrivenJob, epochs: float, at_s: float) -> None:
        since_s = record.since_s if record.since_s is not None else at_s
        record.first_epochs, record.ready_s = epochs, max(since_s, at_s)
        if record.stopped_s is not None and record.ended_s is not None and record.ended_s <= since_s + 1.0:
            cost_s = max(0.0, record.ended_s - record.stopped_s) + record.ready_s - since_s
            self.state.costs = [*self.state.costs, round(cost_s, 3)][-MOST_COSTS:]
            lost = max(0.0, (record.epochs or 0.0) - epochs)
            self.on_event("restarted", job=name, cost_s=round(cost_s, 3), lost_epochs=lost)
        record.stopped_s = None

    def _refuse(self, name: str, why: str) -> None:
        if self._refused.get(name) != why:
            self._refused[name] = why
            self.on_event("report-refused", job=name, why=why)

    def _described(self, name: str) -> JobRequest | None:
        job = self._jobs.get(name)
        try:
            return None if job is None else self._here.describe(job)
        except InputError:
            return None


def _is_limited(planned: str, held: str) -> bool:
    from gpusched_operations.service.cluster import configuration_of  # noqa: PLC0415 - a release needs none of it

    try:
        return bool(planned) and replace(configuration_of(planned), power_limit=1.0).name == held
    except InputError:
        return False
