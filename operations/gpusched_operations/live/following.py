"""What Slurm says of the jobs of a partition becomes what a driver knows of them: runs begin and end, and events."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from gpusched_env.errors import InputError
from gpusched_operations.live.drive_state import MOST_COSTS, DriveState
from gpusched_operations.live.driven_job import DrivenJob, Held, Running, Stopping, as_a
from gpusched_operations.live.progress import JobHistory, JobProgress
from gpusched_operations.live.progress_reports import ProgressReports, Report
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
    if job.held == "requeue":
        return not record.ours or (isinstance(record.stage, Held) and record.stage.confirmed)
    return held == "user" and not record.held_at_first


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
        return {name: record.progress for name, record in self.state.jobs.items() if record.progress is not None}

    def seen(self) -> dict[str, JobHistory]:
        usual_s = self.state.restart_s
        found = {}
        for name, record in self.state.jobs.items():
            run = record.stage if isinstance(record.stage, Running) else None
            since_s, ready_s = (None, None) if run is None else (run.start_s, run.ready_s)
            if since_s is not None and ready_s is None and usual_s is not None:
                ready_s = since_s + usual_s
            times = (record.submit_s, record.first_start_s, since_s, ready_s)
            found[name] = JobHistory(*times, record.last_nodes, record.modelled_epochs)
        return found

    def came_to_nothing(self, record: DrivenJob, now_s: float) -> None:
        record.not_before_s = now_s + min(LONGEST_WAIT_S, FIRST_WAIT_S * 2.0**record.tries)
        record.tries += 1

    def _has_left(self, job: LiveJob, record: DrivenJob, now_s: float) -> bool:
        """Return whether a job that is in another partition now is done with; what was done to it is undone first."""
        if job.phase != "ended" and not record.must_be_undone:
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
        record = self.state.jobs[job.id] = DrivenJob.of(job)
        self._adopted(job, record)

    def _adopt_again(self, job: LiveJob, record: DrivenJob, now_s: float) -> None:
        """Take care again of a job that was given back, as it is now; what it did until now stays known."""
        if self._left_alone(job, now_s):
            return
        record.request, record.comment, record.given_back = job.request, job.comment, ""
        record.cannot_stop, record.tries, record.not_before_s = False, 0, 0.0
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
        run = record.stage
        if not isinstance(run, Running) or record.restarts != job.restarts:
            run = self._begins(job, record, now_s)
        if isinstance(run, Stopping) and now_s - (run.stopped_s or now_s) > SHORT_RUN_S:
            run = record.stage = as_a(Running, run, held=True, stopped_s=None)  # Slurm never heard that it should stop
        if run.held and job.request.priority > 0.0:
            run.held = False
        if run.ready_s is not None and now_s - run.ready_s > SHORT_RUN_S:
            record.tries = 0
        last_s = max(run.start_s, 0.0 if record.progress is None else record.progress.at_s)
        if not run.silent and now_s - last_s > SILENT_S:
            run.silent = True
            self.on_event("silent", job=job.id, since_s=last_s)

    def _begins(self, job: LiveJob, record: DrivenJob, now_s: float) -> Running:
        """Take note that a run began."""
        start_s = job.start_s if job.start_s is not None else now_s
        if isinstance(record.stage, Running):
            self._run_ends(job.id, record, record.stage, min(now_s, start_s))
        nodes, gpus_per_node = tuple(name for name, _ in job.holds), max((count for _, count in job.holds), default=0)
        wanted = self._held_name(job, nodes, gpus_per_node)
        own = record.placed == wanted or _is_limited(record.placed, wanted)
        run = Running(record.placed if own else wanted, nodes, gpus_per_node, start_s)
        record.begin(run, job.restarts)
        self.on_event(
            "runs",
            job=job.id,
            configuration=run.configuration,
            nodes=nodes,
            start_s=start_s,
            restarts=job.restarts,
            waited_s=round(start_s - record.submit_s, 3),
            by="driver" if own else "slurm",
        )
        return run

    def _held_name(self, job: LiveJob, nodes: tuple[str, ...], gpus_per_node: int) -> str:
        node = next((node for node in self._nodes if node.name in nodes), None)
        gpu_type = None if node is None else self.rules.gpu_type(node.gpu_type)
        even = len({count for _, count in job.holds}) == 1
        if gpu_type is None or not even or not gpus_per_node:
            return f"{gpu_type or 'unknown'}x{sum(count for _, count in job.holds) or '?'}"
        from gpusched_env.model import Configuration  # noqa: PLC0415 - a release needs no compiled functions

        return Configuration(gpu_type, gpus_per_node, len(nodes)).name

    def _waits(self, job: LiveJob, record: DrivenJob, now_s: float) -> None:
        if not record.placed:
            record.request = job.request  # its user may have changed it
            if job.request.why_not and not record.given_back:
                record.given_back = job.request.why_not
                self.on_event("left-to-slurm", job=job.id, why=job.request.why_not)
        run = record.stage
        if isinstance(run, Running):
            if not isinstance(run, Stopping):
                self.on_event("requeued", job=job.id, why=job.reason)
                if now_s - run.start_s < SHORT_RUN_S or launch_failed(job):
                    self.came_to_nothing(record, now_s)
            self._run_ends(job.id, record, run, now_s)
        if launch_failed(job) and not record.given_back:
            record.hold()  # Slurm held it; it is started again
        if holder(job) == "admin":
            record.confirm()

    def _run_ends(self, name: str, record: DrivenJob, run: Running, end_s: float) -> None:
        """Take note that a run ended."""
        record.end(max(run.start_s, end_s))
        self.on_event(
            "interval",
            job=name,
            configuration=run.configuration,
            nodes=run.nodes,
            gpus_per_node=run.gpus_per_node,
            start_s=run.start_s,
            ready_s=run.ready_s,
            end_s=record.ended_s,
            first_epochs=run.first_epochs,
            epochs=None if record.progress is None else record.progress.epochs,
        )
        if record.progress is None:
            record.modelled_epochs += self._modelled_epochs(name, run, end_s - run.start_s)

    def _modelled_epochs(self, name: str, run: Running, seconds: float) -> float:
        """Return the epochs that the model expects of a run of so many seconds, after which a job can continue."""
        from gpusched_operations.service.cluster import configuration_of  # noqa: PLC0415 - as below

        what = self._described(name)
        try:
            held = configuration_of(run.configuration)
        except InputError:
            return 0.0
        if what is None or not what.checkpoints:
            return 0.0
        made_s = max(0.0, seconds - (self.state.restart_s or 0.0)) * self._here.clock.speed
        return made_s / self._here.seconds(what.application, held)

    def _over(self, name: str, record: DrivenJob, job: LiveJob | None, now_s: float) -> None:
        """Take note that a job is over."""
        end_s = job.end_s if job is not None and job.end_s is not None else now_s
        run, last = record.stage, record.last
        last_s = 0.0 if last is None else last.start_s
        if job is not None and job.holds and not isinstance(run, Running) and (job.start_s or 0.0) > last_s:
            run = self._begins(job, record, now_s)  # it started and ended between two looks
        if isinstance(run, Running):
            self._run_ends(name, record, run, min(now_s, end_s))
        self.on_event(
            "ended",
            job=name,
            outcome=job.outcome if job is not None else "unknown",
            end_s=record.ended_s if record.ended_s is not None else min(now_s, end_s),
            epochs=None if record.progress is None else record.progress.epochs,
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
        run, known = record.run, record.progress
        former = known.epochs if run is not None and run.first_epochs is not None and known is not None else None
        if known is not None and former == report.epochs and known.at_s >= report.at_s:
            return
        what = self._described(name)
        why = report.why_not(former, float("inf") if what is None else what.max_epochs)
        if why:
            self._refuse(name, why)
            return
        if isinstance(record.stage, Running) and record.stage.first_epochs is None:
            self._first_report(name, record, record.stage, report)
        record.progress = JobProgress(report.epochs, report.at_s)

    def _first_report(self, name: str, record: DrivenJob, run: Running, report: Report) -> None:
        run.first_epochs, run.ready_s = report.epochs, max(run.start_s, report.at_s)
        if isinstance(run, Stopping):
            return
        if run.stopped_s is not None and record.ended_s is not None and record.ended_s <= run.start_s + 1.0:
            cost_s = round(max(0.0, record.ended_s - run.stopped_s) + run.ready_s - run.start_s, 3)
            self.state.costs = [*self.state.costs, cost_s][-MOST_COSTS:]
            lost = max(0.0, (0.0 if record.progress is None else record.progress.epochs) - report.epochs)
            self.on_event("restarted", job=name, cost_s=cost_s, lost_epochs=lost)
        run.stopped_s = None

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
