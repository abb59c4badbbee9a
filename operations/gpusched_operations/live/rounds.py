"""The rounds of a cluster that runs, as states of the simulator, which an environment steps through."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np

from gpusched_env.errors import InputError
from gpusched_env.mechanisms.prices.model import PriceSeries
from gpusched_env.simulator import Asking, Result, State
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.events import anything_runs, milestone_s
from gpusched_env.simulator.placement.whole_gpus import release
from gpusched_env.simulator.policy import environment_columns
from gpusched_env.simulator.rounds import begin_round, order_by
from gpusched_env.simulator.survival import SAME_EPOCH
from gpusched_experiments.report.code_version import code_version
from gpusched_operations.live.costs import PlayedRun, SeenInRequests, played_back
from gpusched_operations.service.client import cluster_part, prices_part
from gpusched_operations.service.decision import Decider, OpenRequest, PolicyCatalogue, open_request

if TYPE_CHECKING:
    from numpy.random import Generator

    from gpusched_env.model import Instance
    from gpusched_env.simulator import View
    from gpusched_operations.live.costs import RealRun
    from gpusched_operations.service.fields import DecideRequest
    from gpusched_operations.service.memory import Memory

MOST_JOBS_OVER = 1_000_000
"""All: jobs keep their indices until the episode ends."""
FROM_CLUSTER = ("now_s", "jobs", "times", "distributions", "applications", "restart_s")
"""The fields of a request that the cluster tells; GPU types, configurations and prices are those of the instance."""
COSTS = [
    at.BILL, at.TARDINESS_COST, at.KWH, at.CO2_KG, at.DEMAND_EUR, at.PEAK_KW, at.INTERVAL_KWH, at.RENT_EUR,
]  # fmt: skip
"""Columns of the clock that sum up from the beginning of the run."""


@runtime_checkable
class RunningCluster(Protocol):
    """A cluster that runs, whose jobs are decided. Times are those of the model [s], from the start of the episode."""

    def begin(self, instance: Instance) -> None:
        """Begin an episode: run the jobs of an instance, or only look at those that are there."""

    def observe(self) -> dict[str, Any]:
        """Read the cluster: the fields `now_s`, `cluster.nodes` and `jobs` of a request, and what the jobs name."""

    def apply(self, answer: dict[str, Any]) -> None:
        """Do what the answer to the latest request says."""

    def wait(self, until_s: float) -> None:
        """Wait until something happens that is to be decided on, or until a time; inf: as long as it takes."""

    def next_submission_s(self) -> float:
        """Return when the next job is submitted, as far as that is known; inf: it is not."""

    def real_run(self) -> RealRun:
        """Return what has happened until now."""

    def over(self) -> bool:
        """Return whether all jobs have ended, and none is to come."""

    def events(self) -> list[dict[str, Any]]:
        """Return what happened since the last call, in the form of a journal's lines."""

    def close(self) -> None:
        """Leave the cluster as it would be without us."""


@dataclass(frozen=True)
class Stepped:
    """Stands for a policy where an environment's actions decide.

    Attributes:
        asking: How rounds ask.
        name: Its name in requests.
        jobs_over: How many of the jobs that are over its states hold: all.
    """

    asking: Asking
    name: str = "environment"
    jobs_over: int = MOST_JOBS_OVER

    @property
    def preemption(self) -> bool:
        return self.asking.preemption

    def memory_columns(self, instance: Instance) -> int:
        return environment_columns(instance)

    def decide(self, view: View, rng: Generator) -> None:
        """Do nothing: actions have placed the jobs."""


class LiveRounds:
    """The rounds of one episode on a cluster that runs.

    Args:
        cluster: The cluster.
        instance: Whose GPU types, configurations and prices hold.
        asking: How rounds ask.
        every_s: Longest time between two rounds [s]; inf: they are at events only.

    Attributes:
        state: The state of the open round; at the end of the episode, that of the empty cluster.
    """

    def __init__(self, cluster: RunningCluster, instance: Instance, asking: Asking, every_s: float = np.inf) -> None:
        self.cluster, self.asking, self.every_s, self._instance = cluster, asking, every_s, instance
        self.state = State(instance, asking, record=False, memory_columns=environment_columns(instance))
        self._policy, self._fixed = Stepped(asking), cluster_part(instance)
        self._request = Decider(PolicyCatalogue((), {}), b"").request
        self._opened: OpenRequest | None = None
        self._memory: Memory | None = None
        self._now_s = self._begin_s = 0.0
        self._idle, self._rounds, self._milestones = 0, 0, dict[str, float]()
        self._met = SeenInRequests()
        self._played: PlayedRun | None = None
        self._real = self.state

    def first(self) -> State:
        self._read()
        self._begin_s = self._now_s
        return self._open_round()

    def next(self) -> State:
        if self._opened is not None:
            self._commit(self._opened)
            self.cluster.apply(self._opened.told())
        self._advance()
        return self._open_round()

    def result(self, policy: str, seed: int) -> Result:
        """Return what has really run until now, as the model prices it."""
        if self._played is None:
            raise InputError("jobs", "none", "at least one job that ran")
        return replace(Result.of(self._real, policy, seed, float("nan")), rounds=self._rounds)

    def _open_round(self) -> State:
        """Run to a round that asks at least one job, and open it; return its state, or that of the end."""
        while not self.cluster.over():
            board = self.state.board
            if self._opened is not None:
                self._rounds += 1
                begin_round(board, self.asking.preemption)
                order_by(board, board.count[at.ORDER], not self.asking.preemption)
                if board.count[at.TO_ASK] > 0:
                    break
                self._commit(self._opened)
            self._advance()
        else:
            self._end()
        self.state.board.clock[COSTS] = self._real.board.clock[COSTS]
        return self.state

    def _commit(self, opened: OpenRequest) -> None:
        opened.state.commit_round()
        self._memory = opened.session.taken_from(opened.state, opened.rng)

    def _advance(self) -> None:
        runs = self._opened is not None and bool(anything_runs(self.state.board))
        comes = runs or self.cluster.next_submission_s() < np.inf
        self._idle = 0 if comes else self._idle + 1
        until_s = self._wake_s()
        if not comes and until_s == np.inf:
            until_s = self._now_s + self.asking.idle_review_s
        self.cluster.wait(until_s)
        self._read()

    def _wake_s(self) -> float:
        """Return when the next round is if nothing happens: at a timer, a milestone or a review; inf: never."""
        board, count = self.state.board, self.state.board.count
        wake_s = self._now_s + self.every_s
        for job in board.active[: count[at.ACTIVE]].tolist() if self._opened is not None else ():
            timer_s = float(board.jobs[job, at.TIMER_S])
            if timer_s > self._now_s:
                wake_s = min(wake_s, timer_s)
            if count[at.MILESTONES] > 0 and board.jobs[job, at.CONFIG] >= 0:
                wake_s = min(wake_s, max(self._now_s, milestone_s(board, job)))
        return wake_s

    def _read(self) -> None:
        """Read the cluster as a state, in which no round is open."""
        fields = self.cluster.observe()
        self._now_s = fields["now_s"]
        if self._played is not None:
            self._real = played_back(self._played, self.cluster.real_run(), self._begin_s, self._now_s)
        request: DecideRequest = self._request(self._body(fields))
        self._opened = open_request(request, self._policy, code_version(), self._memory)
        if self._opened is None:
            return
        self.state = self._opened.state
        self._met.meet(self._opened)
        self._played = self._met.of(self._opened, self._instance.find("prices"))
        board, parts = self.state.board, self.state.board.count[at.MILESTONES]
        for job, name in zip(self._opened.session.there.tolist(), self._opened.session.ids, strict=True):
            done = board.jobs[job, at.EPOCHS] / board.jobs[job, at.MAX_EPOCHS] + SAME_EPOCH
            passed = max(self._milestones.get(name, 1.0), np.floor(done * parts) + 1.0)
            self._milestones[name] = board.jobs[job, at.MILESTONE] = passed

    def _body(self, fields: dict[str, Any]) -> dict[str, Any]:
        """Return the request of a look at the cluster: its own fields, on the GPU types and prices of the instance."""
        nodes = fields.get("cluster", self._fixed["cluster"])["nodes"]
        given = {name: fields[name] for name in FROM_CLUSTER if name in fields}
        own = {"cluster": self._fixed["cluster"] | {"nodes": nodes}, "idle_rounds": self._idle, "seed": 0}
        series = self._instance.of(PriceSeries)
        if series is not None:
            told_s = series.published_s
            known = len(series.start_s) if told_s is None else int(np.count_nonzero(told_s <= self._now_s))
            peak_kw = float(self._real.board.clock[at.PEAK_KW])
            own["prices"] = prices_part(self._instance, series, known, peak_kw)
        return self._fixed | given | own | {"policy": self._policy.name}

    def _end(self) -> None:
        board, count = self.state.board, self.state.board.count
        for job in board.active[: count[at.ACTIVE]].tolist():
            release(board, job)
            board.jobs[job, at.END_S] = self._now_s
        count[at.DONE] += count[at.ACTIVE]
        count[[at.ACTIVE, at.TO_ASK, at.ASKED]] = 0
        board.clock[at.NOW], self._opened = self._now_s, None
        if board.has_prices:
            board.prices[:] = self._real.board.prices
        count[at.PUBLISHED] = self._real.board.count[at.PUBLISHED]
