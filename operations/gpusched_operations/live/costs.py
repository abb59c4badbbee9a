"""What the model says that costs what really ran on a cluster: played back in the simulator, or by shares of nodes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gpusched_env.model import EpochDistribution, JobTable
from gpusched_env.model.rates import Rates
from gpusched_env.simulator import State
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.events import accrue, bill_rate, log_interval, submit, take_speed, take_speeds
from gpusched_env.simulator.holdings import apply_holding
from gpusched_env.simulator.placement.whole_gpus import release

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Mapping, Sequence

    from numpy.typing import NDArray

    from gpusched_env.model import GpuType, Instance, Mechanism, Node
    from gpusched_operations.live.last_drive import Interval
    from gpusched_operations.service.decision import OpenRequest


@dataclass(frozen=True, slots=True)
class RealRun:
    """What has happened on a cluster so far. Times are those of the model [s].

    Attributes:
        intervals: What jobs held, of each in order.
        ended_s: When jobs ended, by id.
    """

    intervals: Sequence[Interval]
    ended_s: Mapping[str, float]


class HeldGpus(NamedTuple):
    """GPUs of a node that a job held for a time.

    Attributes:
        node: What names the node.
        gpu_type: Index of its GPU type.
        gpus: Number of the GPUs.
        job: Index of the job.
        start_s: When it began [s].
        end_s: When it ended [s].
        saved_eur_per_s: What they cost less than full busy ones, on this node [€/s].
    """

    node: Hashable
    gpu_type: int
    gpus: int
    job: int
    start_s: float
    end_s: float
    saved_eur_per_s: float = 0.0


def shared_energy_eur(held: Iterable[HeldGpus], instance: Instance) -> NDArray[np.float64]:
    """Return what each job pays for energy [€], (J,): of a node with u busy GPUs, g/u for the g GPUs that it holds.

    Nodes need not be those of the instance. One that seems to have more busy GPUs than any draws as much as that.
    """
    rates, paid = Rates.of(instance).node, np.zeros(len(instance.jobs))
    by_node: dict[Hashable, list[HeldGpus]] = {}
    for each in held:
        by_node.setdefault((each.node, each.gpu_type), []).append(each)
    for there in by_node.values():
        for begin, end in pairwise(sorted({time for each in there for time in (each.start_s, each.end_s)})):
            running = [each for each in there if each.start_s <= begin and end <= each.end_s]
            busy = sum(each.gpus for each in running)
            for each in running:
                rate = rates[each.gpu_type, min(busy, rates.shape[1] - 1)]
                paid[each.job] += (rate * each.gpus / busy - each.saved_eur_per_s) * (end - begin)
    return paid


@dataclass(frozen=True, slots=True, eq=False)
class PlayedRun:
    """A cluster with all jobs that were ever seen there, and their indices by name.

    Attributes:
        instance: The cluster and the jobs.
        jobs: Indices of the jobs, by id.
        nodes: Indices of the nodes, by name.
        configurations: Indices of the configurations, by name.
    """

    instance: Instance
    jobs: Mapping[str, int]
    nodes: Mapping[str, int]
    configurations: Mapping[str, int]


COLUMNS = ("submission_s", "due_s", "tardiness_weight_eur_per_s", "max_epochs", "seconds_per_epoch", "tenant")
"""Of each job what its costs depend on, beside its application."""


class SeenInRequests:
    """The jobs and the nodes that requests have told: jobs as they were told last, nodes with the most GPUs.

    A request does not tell a node that is down, nor GPUs that jobs of others hold; what ran there was real.
    """

    def __init__(self) -> None:
        self._rows: dict[str, dict[str, Any]] = {}
        self._nodes: dict[str, Node] = {}
        self._gpu_types: dict[str, GpuType] = {}

    def meet(self, opened: OpenRequest) -> None:
        table, session = opened.state.instance.jobs, opened.session
        for job, name in zip(session.there.tolist(), session.ids, strict=True):
            row = {column: getattr(table, column)[job] for column in COLUMNS}
            if name in self._rows:  # an instance has no times on what its nodes cannot hold now
                now, before = row["seconds_per_epoch"], self._rows[name]["seconds_per_epoch"]
                row["seconds_per_epoch"] = np.where(np.isfinite(now), now, before)
            self._rows[name] = row | {"application": table.applications[table.application[job]]}
        for gpu_type in opened.names.gpu_types:
            known_type = self._gpu_types.setdefault(gpu_type.name, gpu_type)
            if gpu_type.max_gpus_per_node > known_type.max_gpus_per_node:
                self._gpu_types[gpu_type.name] = gpu_type
        for name, index in opened.names.node.items():
            node = opened.names.nodes[index]
            if node.gpus > self._nodes.setdefault(name, node).gpus:
                self._nodes[name] = node

    def of(self, opened: OpenRequest, prices: Mechanism | None) -> PlayedRun:
        """Return them with the configurations of a request, and with all prices."""
        rows = sorted(self._rows.items(), key=lambda item: item[1]["submission_s"])
        base, index = opened.state.instance, {name: i for i, name in enumerate(opened.state.instance.jobs.applications)}
        columns = {column: np.array([row[column] for _, row in rows]) for column in COLUMNS}
        table = JobTable(
            **columns,
            epochs_needed=columns["max_epochs"],
            memory_gib=np.zeros(len(rows)),
            application=np.array([index.get(row["application"], 0) for _, row in rows]),
            applications=base.jobs.applications,
            distribution=np.zeros(len(rows), dtype=np.int64),
            distributions=(EpochDistribution.certain(),),
        )
        jobs = {name: job for job, (name, _) in enumerate(rows)}
        nodes = {name: node for node, name in enumerate(self._nodes)}
        gpu_types = tuple(self._gpu_types[each.name] for each in base.gpu_types)
        own = replace(base, gpu_types=gpu_types, nodes=tuple(self._nodes.values()), jobs=table)
        own = own if prices is None else own.with_mechanisms(prices)
        return PlayedRun(own, jobs, nodes, opened.names.configuration)


ENDS, RELEASES, SUBMITS, STARTS = range(4)
"""What happens at one time, in this order."""


def played_back(played: PlayedRun, run: RealRun, begin_s: float, until_s: float) -> State:
    """Play back what really ran, and what it cost as the model prices it.

    Jobs that hold GPUs at `begin_s` hold them from then on. An interval that begins while its GPUs are held, or while
    its job holds others, as rounded times may say, begins when that is over.

    Returns:
        A state at `until_s`: its clock has the costs, its rows of jobs theirs, with starts, ends and switches, and its
        log the intervals; epochs in it are those that the model expects.
    """
    state = State(played.instance)
    board, hidden = state.board, state.hidden  # only the log is another one once it has grown
    board.clock[at.NOW] = begin_s
    submit(board, hidden, begin_s)
    late: list[tuple[int, Interval]] = []
    released: set[int] = set()
    events = sorted(_events(played, run, begin_s, until_s), key=lambda event: event[:3])
    for k, (time_s, kind, job, interval) in enumerate(events):
        if time_s > board.clock[at.NOW]:
            accrue(board, hidden, time_s)
        if kind in (ENDS, RELEASES):
            _release(state, job, time_s)
            late = [one for one in late if one[0] != job or one[1] is not interval]
            released.add(job)
        if kind == ENDS:
            _end(state, job, time_s)
        elif kind == SUBMITS:
            submit(board, hidden, time_s)
        elif kind == STARTS and interval is not None:
            late.append((job, interval))
        if k + 1 < len(events) and events[k + 1][0] == time_s:
            continue
        late = [(job, one) for job, one in late if not _hold(state, played, job, one)]
        for one in released - {job for job, _ in late}:
            paused = board.jobs[one, at.CONFIG] < 0.0 and np.isnan(board.jobs[one, at.END_S])
            board.jobs[one, at.SWITCHES] += paused  # a pause is a change, too
        released.clear()
        take_speeds(board, state.hidden)
        board.clock[at.BILL_RATE] = bill_rate(board)
    if until_s > board.clock[at.NOW]:
        accrue(board, hidden, until_s)
    return state


def _events(
    played: PlayedRun, run: RealRun, begin_s: float, until_s: float
) -> Iterable[tuple[float, int, int, Interval | None]]:
    """Return what happened: time, kind, job, and the interval that ends or begins."""
    submission_s = played.instance.jobs.submission_s
    for job, submitted_s in enumerate(submission_s.tolist()):
        if begin_s < submitted_s <= until_s:
            yield submitted_s, SUBMITS, job, None
    for interval in run.intervals:
        if interval.job not in played.jobs or any(node not in played.nodes for node in interval.nodes):
            continue
        job = played.jobs[interval.job]
        first_s = max(begin_s, float(submission_s[job]))
        start_s, end_s = max(first_s, interval.start_s), max(first_s, interval.end_s)
        if start_s < end_s and start_s <= until_s:
            yield start_s, STARTS, job, interval
            if end_s <= until_s:
                yield end_s, RELEASES, job, interval
    for name in run.ended_s.keys() & played.jobs.keys():
        job = played.jobs[name]
        end_s = max(begin_s, run.ended_s[name], float(submission_s[job]))
        if end_s <= until_s:
            yield end_s, ENDS, job, None


def _hold(state: State, played: PlayedRun, job: int, interval: Interval) -> bool:
    """Let a job hold what it held, if that is free; return whether it is."""
    row, now_s = state.board.jobs[job], state.board.clock[at.NOW]
    if np.isnan(row[at.END_S]):
        nodes = sorted(played.nodes[name] for name in interval.nodes)
        if row[at.CONFIG] >= 0 or apply_holding(
            state.board, job, played.configurations[interval.configuration], nodes, interval.gpu
        ):
            return False
        row[at.SWITCHES] += not np.isnan(row[at.START_S])
        row[at.START_S] = now_s if np.isnan(row[at.START_S]) else row[at.START_S]
        row[at.BASE_S] = row[at.READY_S] = now_s
        row[at.BASE_EPOCHS] = row[at.EPOCHS]
        take_speed(state.board, state.hidden, job, 1.0, 0.0)
    return True


def _release(state: State, job: int, time_s: float) -> None:
    if state.board.jobs[job, at.CONFIG] >= 0:
        state.grow_arrays()
        log_interval(state.board, state.hidden, job, False, time_s)
        release(state.board, job)


def _end(state: State, job: int, time_s: float) -> None:
    board = state.board
    count, active = board.count, board.active
    if np.isnan(board.jobs[job, at.END_S]):
        board.jobs[job, at.END_S] = time_s
        left = [one for one in active[: count[at.ACTIVE]].tolist() if one != job]
        count[at.DONE] += count[at.ACTIVE] - len(left)
        count[at.ACTIVE] = len(left)
        active[: len(left)] = left
