"""A simulated run that is played as a cluster which runs: a stand-in for Slurm."""

from dataclasses import replace
from typing import Any

import numpy as np

from gpusched_env import Instance
from gpusched_env.simulator import Asking, State
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.placement.held_nodes import places_of
from gpusched_env.simulator.placement.whole_gpus import release
from gpusched_operations.live.costs import RealRun
from gpusched_operations.live.last_drive import Interval
from gpusched_operations.service.client import apply_answer, cluster_part, jobs_part


class SimulatedCluster:
    """Runs the jobs of an instance; whoever drives it sees what requests tell, and no more.

    Args:
        idle_review_s: How far time goes on when nothing runs and nothing is to come [s].

    Attributes:
        truth: The run.
        answers: What was done, in order.
    """

    def __init__(self, idle_review_s: float = 3600.0) -> None:
        self._idle_review_s = idle_review_s
        self.answers: list[dict[str, Any]] = []
        self.closed = False

    def begin(self, instance: Instance) -> None:
        self.instance = instance
        asking = Asking(milestones=0, idle_review_s=self._idle_review_s)
        self.truth = State(self.instance, asking)
        self._seen: dict[int, list[str]] = {}
        self._over = self._open = False
        self._ended, self._now_held = list[Interval](), dict[int, Interval]()

    def observe(self) -> dict[str, Any]:
        return cluster_part(self.instance) | jobs_part(self.truth.view, self.instance, self._seen)

    def apply(self, answer: dict[str, Any]) -> None:
        self.answers.append(answer)
        board = self.truth.board
        for job in board.active[: board.count[at.ACTIVE]].tolist():
            release(board, job)
        apply_answer(self.truth.view, answer)

    def wait(self, until_s: float) -> None:
        board = self.truth.board
        if self._open:
            self.truth.commit_round()
            self._write_intervals()
        active = board.active[: board.count[at.ACTIVE]]
        board.jobs[active, at.TIMER_S] = np.inf
        board.jobs[active[:1], at.TIMER_S] = until_s
        self._over = not self.truth.advance()
        for job in np.flatnonzero(board.jobs[:, at.END_S] <= board.clock[at.NOW]).tolist():
            self._close_interval(job, float(board.jobs[job, at.END_S]))
        self._open = not self._over
        if self._open:
            self.truth.begin_round(preemption=False)

    def _write_intervals(self) -> None:
        board, now_s = self.truth.board, float(self.truth.board.clock[at.NOW])
        for job in board.active[: board.count[at.ACTIVE]].tolist():
            held = None
            config, slot = int(board.jobs[job, at.CONFIG]), int(board.jobs[job, at.SLOT])
            if config >= 0:
                nodes = tuple(f"node-{n}" for n in places_of(board, job, old=False))
                held = self.instance.configurations[config].name, nodes, None if slot < 0 else slot
            before = self._now_held.get(job)
            if before is None or (before.configuration, before.nodes, before.gpu) != held:
                self._close_interval(job, now_s)
                if held is not None:
                    self._now_held[job] = Interval(f"job-{job}", *held, now_s)

    def _close_interval(self, job: int, end_s: float) -> None:
        if job in self._now_held:
            self._ended.append(replace(self._now_held.pop(job), end_s=end_s))

    def next_submission_s(self) -> float:
        submitted = int(self.truth.board.count[at.SUBMITTED])
        times = self.instance.jobs.submission_s
        return float(times[submitted]) if submitted < len(times) else np.inf

    def real_run(self) -> RealRun:
        ends = self.truth.board.jobs[:, at.END_S]
        ended = {f"job-{job}": float(ends[job]) for job in np.flatnonzero(~np.isnan(ends))}
        return RealRun([*self._ended, *self._now_held.values()], ended)

    def over(self) -> bool:
        return self._over

    def events(self) -> list[dict[str, Any]]:
        return []

    def close(self) -> None:
        self.closed = True
