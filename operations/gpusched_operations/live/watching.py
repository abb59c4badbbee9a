"""Watching a cluster: every round its state goes to a journal, and what a policy would do now. Nothing is changed."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import Any

from gpusched_env.errors import InputError, RunError
from gpusched_operations.live.asking import Ask, deferrals
from gpusched_operations.live.job_rules import JobRules
from gpusched_operations.live.journal import ROUND, Journal
from gpusched_operations.live.occupancy import occupancy
from gpusched_operations.live.progress import JobProgress
from gpusched_operations.live.request import NO_GPU, UNSEEN, LiveRequest, request_of
from gpusched_operations.live.state import LiveCluster
from gpusched_operations.service.cluster import configuration_of

STEP_S = 5.0
"""By how much the clock must be set, beside a steady one, to be an event [s]."""
NAMED = 3
"""Most jobs that a line names for each action."""
DESCRIBE = ("name", "user", "account", "partition", "comment", "script", "time_limit_s", "gpus", "gpu_type")
"""Fields of a job by which it is described; its submission is not among them, as Slurm changes it."""
ACTIONS = ("start", "change", "stop")


@dataclass
class ClusterWatch:
    """Looks at a cluster, once a round.

    Args:
        read: Reads the state; raises RunError or InputError where that fails, which is an event.
        rules: What jobs are.
        policy: Name of the policy.
        ask: Asks the policy.
        journal: Where all goes.
        partition: The only partition whose nodes and jobs the policy is told; None: all.
        progress: Reads what the jobs of a state reported last, by id.
        preemptive: Whether the policy stops jobs that run; only then those that may not be stopped are not told.
        clock: What tells the Unix time [s].
        ticks: What tells steady seconds.

    Attributes:
        cluster: What was read last; None: nothing was.
        failures: How many readings failed since one did not.
    """

    read: Callable[[], LiveCluster]
    rules: JobRules
    policy: str
    ask: Ask
    journal: Journal
    partition: str | None = None
    progress: Callable[[LiveCluster], Mapping[str, JobProgress]] = lambda _: {}
    preemptive: bool = True
    clock: Callable[[], float] = time.time
    ticks: Callable[[], float] = time.monotonic
    cluster: LiveCluster | None = None
    failures: int = 0
    _offset_s: float | None = None
    _told: dict[str, tuple[Any, ...]] = field(default_factory=dict)
    _would: list[dict[str, Any]] | None = None
    _reported: dict[str, JobProgress] = field(default_factory=dict)

    def round(self) -> str:
        """Look once, write it down, and say in a line what the policy would do now."""
        now = f"{datetime.fromtimestamp(self.clock(), UTC):%Y-%m-%d %H:%M:%S}"
        self._check_clock()
        try:
            cluster = self.read()
        except (RunError, InputError) as error:
            return f"{now}  {self._failed('read-failed', error)}; the next round tries again"
        self.failures, self.cluster, self.rules = 0, cluster, self.rules.on(cluster)
        said = self._write_state(cluster)
        try:
            reported = dict(self.progress(cluster))
            self._describe(cluster, reported, again=said)
            request = request_of(
                cluster,
                self.rules,
                self.policy,
                progress=reported,
                partition=self.partition,
                preemptive=self.preemptive,
                with_nodes=False,
            )
            if not request.fields["cluster"]["nodes"]:
                self.journal.append(ROUND, read=cluster.read_s)
                return f"{now}  {self._head(cluster)}{NO_GPU}{self._why_none(cluster, request)}"
            begin = self.ticks()
            answer = self.ask(request.fields)
            spent_s = self.ticks() - begin
        except (RunError, InputError) as error:
            self.journal.append(ROUND, read=cluster.read_s)
            return f"{now}  {self._failed('decide-failed', error)}"
        would = actions_of(answer)
        new = {} if would == self._would and not said else {"would": would}
        self._would = would
        self.journal.append(
            ROUND, read=cluster.read_s, policy=self.policy, **new, seconds=round(spent_s, 3),
            running=answer["running"], waiting=answer["waiting"], left_out=len(request.left_out),
        )  # fmt: skip
        return f"{now}  {self._line(cluster, request, would)}{_waits(deferrals(answer, self.rules.clock))}"

    @property
    def is_idle(self) -> bool:
        if self.cluster is None or self.failures:
            return False
        return not any(job.phase != "ended" for job in self.cluster.jobs if self.partition in (None, job.partition))

    def _check_clock(self) -> None:
        offset_s = self.clock() - self.ticks()
        step_s = 0.0 if self._offset_s is None else offset_s - self._offset_s
        if abs(step_s) > STEP_S:
            self.journal.append("event", event="clock-step", seconds=round(step_s, 3))
        self._offset_s = offset_s

    def _failed(self, event: str, error: Exception) -> str:
        self.failures += event == "read-failed"
        why = " ".join(str(error).split())
        self.journal.append("event", event=event, why=why)
        return f"{'not read' if event == 'read-failed' else 'not decided'}: {why}"

    def _write_state(self, cluster: LiveCluster) -> bool:
        """Write what changed; return whether a file began with the whole state, and must say all else again."""
        line = self.journal.append_state(cluster)
        if line is None or not line["full"]:
            return False
        types = {node.gpu_type: self.rules.gpu_type(node.gpu_type) for node in cluster.nodes if node.gpus}
        self.journal.append(
            "watch",
            policy=self.policy,
            partition=self.partition,
            speed=self.rules.clock.speed,
            gpu_types={name: own for name, own in types.items() if own is not None},
        )
        return True

    def _describe(self, cluster: LiveCluster, reported: dict[str, JobProgress], *, again: bool) -> None:
        """Write what is known of jobs, also of those that the policy is not told, where that is new."""
        rules = self.rules
        former = {} if again else self._told
        self._told = {}
        for job in cluster.jobs:
            told = self._told[job.id] = tuple(getattr(job, name) for name in DESCRIBE)
            if former.get(job.id) == told:
                continue
            with suppress(InputError):  # no job that a policy could be told of: nothing is known
                known = rules.describe(job)
                seconds = {
                    each: rules.seconds(known.application, configuration_of(each)) for each in known.configurations
                }
                described = {name: value for name, value in asdict(known).items() if name != "fields"}
                described["restart_s"] = rules.restart_s(known)
                self.journal.append("job", id=job.id, **described, seconds_per_epoch=seconds)
        for name, each in reported.items():
            if name in self._told and self._reported.get(name) != each:
                self.journal.append("progress", id=name, epochs=each.epochs, at_s=each.at_s)
        self._reported = reported

    def _head(self, cluster: LiveCluster) -> str:
        nodes = {n.name: n.gpus for n in cluster.nodes if self.partition is None or self.partition in n.partitions}
        own = [job for job in cluster.jobs if self.partition in (None, job.partition)]
        uses = [each for name, each in occupancy(cluster).items() if name in nodes]
        held, unseen = sum(each.held for each in uses), sum(each.unseen for each in uses)
        phases = Counter(job.phase for job in own)
        head = f"{phases['running'] + phases['ending']} run on {held} of {sum(nodes.values())} GPUs, "
        return f"{head}{phases['pending']} wait; " + (f"{UNSEEN} hold {unseen}; " if unseen else "")

    def _why_none(self, cluster: LiveCluster, request: LiveRequest) -> str:
        own = [node.name for node in cluster.nodes if node.gpus and self.partition in (None, *node.partitions)]
        return f"; {own[0]}: {request.nodes_left_out[own[0]]}" + (", ..." if len(own) > 1 else "")

    def _line(self, cluster: LiveCluster, request: LiveRequest, would: list[dict[str, Any]]) -> str:
        out = f"; {len(request.left_out)} left out" if request.left_out else ""
        return f"{self._head(cluster)}{self.policy} {said_of(would)}{out}"


def actions_of(answer: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [
        {"id": job["id"], "action": job["action"]}
        | ({} if job["configuration"] is None else {"configuration": job["configuration"], "nodes": job["nodes"]})
        for job in answer["jobs"]
        if job["action"] in ACTIONS
    ]


def said_of(would: list[dict[str, Any]]) -> str:
    """Say what a policy would do: by action the number of jobs, and the first few by name."""
    parts = []
    for action in ACTIONS:
        jobs = [each for each in would if each["action"] == action]
        if jobs:
            places = (
                each["id"] + (f" on {'+'.join(each['nodes'])} as {each['configuration']}" if "nodes" in each else "")
                for each in jobs[:NAMED]
            )
            parts.append(f"{action} {len(jobs)} ({', '.join(places)}{', ...' if len(jobs) > NAMED else ''})")
    return f"would {', '.join(parts)}" if parts else "would change nothing"


def _waits(texts: Mapping[str, str]) -> str:
    first = [f"; {name} {text}" for name, text in list(texts.items())[:NAMED]]
    return "".join(first) + (f"; {len(texts) - NAMED} more wait to save" if len(texts) > NAMED else "")


def watch_on(
    watch: ClusterWatch,
    every_s: float,
    say: Callable[[str], None],
    *,
    for_s: float | None = None,
    until_idle: bool = False,
    wait: Callable[[float], None] = time.sleep,
) -> int:
    """Look again and again, until the time is over, the cluster is idle, or somebody interrupts.

    Rounds begin `every_s` seconds after each other; those that a slow one missed are left out.

    Args:
        for_s: When to end [s]; None: never.
        until_idle: Whether to end when two readings in a row found no job that runs or waits.
        wait: What waits so many seconds.

    Returns:
        The number of rounds.
    """
    begin_s, rounds, idle = watch.ticks(), 0, 0
    watch.journal.append("event", event="begin", every_s=every_s)
    try:
        while True:
            say(watch.round())
            rounds += 1
            idle = idle + 1 if watch.is_idle else 0
            passed_s = watch.ticks() - begin_s
            if (until_idle and idle > 1) or (for_s is not None and passed_s + every_s > for_s):
                return rounds
            wait(every_s - passed_s % every_s)
    finally:
        watch.journal.append("event", event="end", rounds=rounds)
