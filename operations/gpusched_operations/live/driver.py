"""A driver: round by round it reads what a partition does, asks a policy, does what it says, and looks what came of it.

Slurm's word counts. Every action may fail; that is an event in the journal, and the next round begins from what Slurm
says. What must be undone is written down before it is done.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from gpusched_env.errors import InputError
from gpusched_operations.live.acting import Acting
from gpusched_operations.live.actions import actions_of, held_by, may_stop
from gpusched_operations.live.driven_job import Running
from gpusched_operations.live.following import LONGEST_WAIT_S, holder, is_held_by_user
from gpusched_operations.live.releasing import release_all, release_jobs
from gpusched_operations.live.request import LiveRequest, request_of
from gpusched_operations.live.slurm_commands import SlurmError
from gpusched_operations.live.state import LiveCluster, LiveJob

TRANSIENT = ("jobs that the policy is not told hold", "a request has at most")
"""How reasons begin for which a job is left out of a request only for now."""
OF_A_JOB = ("submission_s", "due_s", "tardiness_weight_eur_per_s", "application", "max_epochs", "distribution")
"""What a request tells of a job that stays as it is."""
_OF_JOB = re.compile(r"jobs\[(\d+)\]")


@dataclass
class Driver(Acting):
    """Drives a partition.

    Its arguments are those of `Acting`.

    Attributes:
        state: What it knows.
        actions: What was last to be done.
        answer: What the policy last answered.
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.state.policy != self.settings.policy:
            self.state.policy, self.state.memory = self.settings.policy, None
        self.answer: Mapping[str, Any] = {}
        self._request: LiveRequest | None = None
        self._left_out_s: dict[str, float] = {}
        self._overview: frozenset[str] = frozenset()
        self._noted: dict[str, dict[str, Any]] = {}
        self._again_s = float("inf")

    # A round

    def round(self) -> None:
        begin_s, calls = self.steady(), self.commands.calls
        request = self.observe()
        read_s = self.steady()
        answer = self.decide(request)
        asked_s = self.steady()
        self.apply(answer)
        self.state.rounds += 1
        self.state.decision_s += asked_s - read_s
        self._save()
        self.on_event(
            "round",
            round=self.state.rounds,
            told=len(request.jobs),
            running=sum(isinstance(record.stage, Running) for record in self.state.jobs.values()),
            stopped=len(self.actions.stops),
            started=len(self.actions.starts),
            refused=len(self.actions.refused),
            left_out=len(request.left_out),
            calls=self.commands.calls - calls,
            read_s=round(read_s - begin_s, 4),
            ask_s=round(asked_s - read_s, 4),
            act_s=round(self.steady() - asked_s, 4),
            expected_cost_eur=answer.get("expected_cost_eur"),
            energy_eur_per_h=answer.get("energy_eur_per_h"),
        )

    def observe(self) -> LiveRequest:
        """Read Slurm and what jobs report, take care of jobs that are new, and return the request to the policy."""
        self._nodes_text = self.commands.nodes()
        cluster = self._read_cluster()
        given = self._for_policy(cluster, self._take_care(cluster))
        fixed = frozenset(job.id for job in given.jobs if self._is_fixed(job))
        try:
            request = request_of(
                given,
                self.rules,
                self.settings.policy,
                memory=self.state.memory,
                progress=self._follower.progress(),
                seen=self._follower.seen(),
                fixed=fixed,
                partition=self.settings.partition,
                only_opted_in=True,
            )
        except InputError as error:
            if error.field != "cluster.nodes":
                raise
            request = LiveRequest({}, {}, {}, {})  # all GPUs are held by jobs that the policy is not told
        self._tell_restart(request)
        self._give_back(request, cluster)
        self._note(request, cluster)
        self._request = request
        return request

    def decide(self, request: LiveRequest) -> Mapping[str, Any]:
        """Ask the policy. A job that cannot be told is left out, and the others are asked for again."""
        while request.fields.get("jobs"):
            try:
                answer = self.ask(request.fields)
            except InputError as error:
                self._repair(request, error)
                continue
            self.state.memory = answer.get("memory")
            again_s = answer.get("ask_again_at_s")
            self._again_s = self.rules.clock.unix_s(again_s) if isinstance(again_s, int | float) else float("inf")
            return answer
        self._again_s = float("inf")
        return {"jobs": []}

    def apply(self, answer: Mapping[str, Any]) -> None:
        """Do what an answer says: jobs are stopped, then others start, on GPUs that are free by then."""
        if self._seen is None or self._request is None:
            raise InputError("driver", None, "observe before apply")
        self.answer = answer
        nodes = self._request.fields.get("cluster", {}).get("nodes", ())
        types = {node["name"]: node["gpu_type"] for node in nodes}
        self.actions = actions_of(answer, self._seen, self.state.jobs, self._request.jobs, types)
        for job, why in self.actions.refused.items():
            self.on_event("refused", job=job, action="policy", said=why)
        if not self.commands.dry:
            self._stop(list(self.actions.stops))
            self._start([p for p in self.actions.starts if p.job not in self.actions.refused])
        self._power_down()
        self._overview = self.commands.overview(self.settings.partition)

    def wait(self, seconds: float, looked: Callable[[], object] | None = None) -> None:
        """Wait until something is new in the partition, the policy wants to be asked, or so many seconds are over."""
        until_s = self.steady() + seconds
        while (left_s := until_s - self.steady()) > 0.0 and self.clock() < self._again_s:
            self.pause(max(0.05, min(self.settings.poll_s, left_s, max(0.0, self._again_s - self.clock()))))
            try:
                overview = self.commands.overview(self.settings.partition)
            except SlurmError as error:
                self.on_event("slurm", said=str(error))
                continue
            if looked is not None:
                looked()
            if overview != self._overview:
                return

    def idle(self) -> bool:
        return self._seen is not None and all(record.given_back for record in self.state.jobs.values())

    def finish(self, why: str = "the driver ends") -> list[str]:
        """Undo all: requests as they were submitted, no job held; jobs that run go on. Returns the jobs released."""
        if self.commands.dry:
            return []
        return release_all(
            self.folder, self.state, self.commands, self.on_event, clock=self.clock, pause=self.pause, why=why
        )

    # Reading

    def _take_care(self, cluster: LiveCluster) -> list[str]:
        """Hold jobs that wait and that nobody holds; what a user holds is left alone. Returns the jobs held now."""
        to_hold, to_release = [], []
        for job in cluster.jobs:
            record = self.state.jobs.get(job.id)
            if record is None:
                continue
            if record.given_back and job.phase == "pending":
                if record.must_be_undone:
                    to_release.append(job.id)
            elif job.phase == "pending" and not is_held_by_user(job, record) and holder(job) != "admin":
                to_hold.append(job.id)
            elif type(record.stage) is Running and record.stage.held and job.request.priority == 0.0:
                to_release.append(job.id)  # Slurm started it while it was being held
        if to_release and not self.commands.dry:
            release_jobs(to_release, cluster, self.state, self.commands, self.on_event)
            self._save()
        self._hold(to_hold)
        return to_hold

    def _for_policy(self, cluster: LiveCluster, held: list[str]) -> LiveCluster:
        """Return the cluster that the policy gets: without waiting jobs that are not the driver's to start."""
        now_s, jobs = cluster.read_s, []
        for job in cluster.jobs:
            record = self.state.jobs.get(job.id)
            if job.phase == "ended":
                continue
            if job.phase == "pending":
                if (
                    record is None
                    or record.given_back
                    or not record.ours
                    or (job.id not in held and is_held_by_user(job, record))
                    or job.request.waits_for
                    or 0.0 < record.not_before_s - now_s <= LONGEST_WAIT_S  # more: the time of day was set back
                ):
                    continue
                jobs.append(replace(job, submit_s=record.submit_s, held="admin", reason=""))
            elif record is not None:
                jobs.append(replace(job, submit_s=record.submit_s, holds=held_by(job, record)))
            else:
                jobs.append(job)
        return replace(cluster, jobs=tuple(jobs))

    def _is_fixed(self, job: LiveJob) -> bool:
        if job.phase == "pending":
            return False
        record = self.state.jobs.get(job.id)
        if record is None or record.given_back or job.phase != "running":
            return True
        try:
            return not may_stop(job, record, self.rules.describe(job))
        except InputError:
            return True

    def _tell_restart(self, request: LiveRequest) -> None:
        restart_s = self.state.restart_s
        if restart_s is None:
            return
        for entry in request.fields.get("jobs", ()):
            what = request.jobs[entry["id"]]
            own = self.rules.file.applications.get(what.application)
            if what.restart_s is None and (own is None or own.restart_s is None):
                entry["restart_s"] = restart_s * self.rules.clock.speed

    def _note(self, request: LiveRequest, cluster: LiveCluster) -> None:
        """Write down what jobs and nodes are, for the record of the run."""
        rules, times = self.rules, request.fields.get("times", {})
        for entry in request.fields.get("jobs", ()):
            known = {name: entry[name] for name in OF_A_JOB if name in entry}
            known["seconds_per_epoch"] = times[entry["seconds_per_epoch"]]
            if self._noted.get(entry["id"]) != known:
                self._noted[entry["id"]] = known
                self.on_event("told", job=entry["id"], fields=known)
        nodes = tuple(replace(node, available=True) for node in cluster.nodes)
        empty = replace(cluster, nodes=nodes, jobs=())
        fields = request_of(empty, rules, self.settings.policy, partition=self.settings.partition).fields
        known = {name: fields[name] for name in ("policy", "cluster", "prices", "distributions")}
        known |= {"clock": [rules.clock.speed, rules.clock.origin_s]}
        known["applications"] = self._noted.get("", {}).get("applications", {}) | request.fields.get("applications", {})
        if self._noted.get("") != known:
            self._noted[""] = known
            self.on_event("cluster", fields=known)

    def _repair(self, request: LiveRequest, error: InputError) -> None:
        """Make a request right that was refused: without the memory, or without the job that is wrong."""
        found, jobs = _OF_JOB.match(error.field), request.fields["jobs"]
        if error.field == "memory" and request.fields.get("memory") is not None:
            self.on_event("memory-refused", why=str(error))
            request.fields["memory"] = self.state.memory = None
        elif found and int(found[1]) < len(jobs):
            entry = jobs.pop(int(found[1]))
            request.jobs.pop(entry["id"], None)
            request.left_out[entry["id"]] = str(error)
            self._tell_left_out(request, entry, str(error))
        else:
            raise error

    def _tell_left_out(self, request: LiveRequest, entry: Mapping[str, Any], why: str) -> None:
        """Take the GPUs of a job that cannot be told from the nodes of the request."""
        self.on_event("left-out", job=entry["id"], why=why)
        job = self._seen.job(entry["id"]) if self._seen is not None else None
        if job is None or job.phase == "pending":
            return
        held = dict(job.holds)
        for node in list(request.fields["cluster"]["nodes"]):
            node["gpus"] -= held.get(node["name"], 0)
            if node["gpus"] <= 0:
                request.fields["cluster"]["nodes"].remove(node)
        if not request.fields["cluster"]["nodes"]:
            request.fields["jobs"].clear()

    def _give_back(self, request: LiveRequest, cluster: LiveCluster) -> None:
        """Leave jobs to Slurm that no request can tell for long: nothing is held that nobody will start."""
        now_s = self.steady()
        there = {name: why for name, why in request.left_out.items() if not why.startswith(TRANSIENT)}
        waiting = {
            job.id for job in cluster.jobs if job.phase == "pending" and job.id in there and job.id in self.state.jobs
        }
        self._left_out_s = {name: self._left_out_s.get(name, now_s) for name in waiting}
        back = [name for name in waiting if now_s - self._left_out_s[name] > self.settings.lease_s]
        for name in back:
            self.on_event("left-to-slurm", job=name, why=there[name])
            self.state.jobs[name].given_back = there[name]
        if back and not self.commands.dry:
            release_jobs(back, cluster, self.state, self.commands, self.on_event)
            self._save()
