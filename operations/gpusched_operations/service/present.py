"""The state of a request: the simulator's own, brought to the present time and schedule, and what it will cost."""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING

import numpy as np

from gpusched_env.errors import InputError
from gpusched_env.kernel import kernel
from gpusched_env.mechanisms.network.kernels import cpu_machines_rate, draws_cpu_power, help_now
from gpusched_env.simulator import Asking, Board, State, hooks
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.events import charge, seconds_per_epoch, submit
from gpusched_env.simulator.holdings import QUOTA, SHARE, apply_holding
from gpusched_env.simulator.placement.held_nodes import add_to_mark
from gpusched_env.simulator.policy import AS_A_POLICY
from gpusched_env.simulator.survival import SAME_EPOCH, expected_left
from gpusched_operations.service.deferral import late_s

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from gpusched_env.arrays import Floats
    from gpusched_env.model import Configuration, Instance
    from gpusched_operations.service.cluster import ClusterNames
    from gpusched_operations.service.fields import DecideRequest, JobFields, RunningFields

SOMEWHERE = 0  # the node of a state of which nobody says where it is: with no mark, so that no place is the same


def present_state(
    request: DecideRequest,
    names: ClusterNames,
    order: list[int],
    there: NDArray[np.int64],
    instance: Instance,
    memory_columns: int,
    asking: Asking = AS_A_POLICY,
) -> State:
    """Make the state in which a policy decides.

    Some of the jobs that are submitted are there, as the request says; the others are over.

    Args:
        order: Place in the request of every job that is there.
        there: Their indices in the instance, rising.
        memory_columns: Columns of the policy's memory.
    """
    for index in order:
        _past(f"jobs[{index}].submission_s", request.jobs[index].submission_s, request.now_s)
    state = State(instance, asking, record=False, memory_columns=memory_columns)
    board = state.board
    board.clock[at.NOW], board.clock[at.PEAK_KW] = request.now_s, request.prices.peak_kw
    hooks.restore(board, state.hidden)
    submit(board, state.hidden, request.now_s)
    submitted = int(board.count[at.SUBMITTED])
    board.count[at.ACTIVE], board.count[at.DONE] = len(order), submitted - len(order)
    board.active[: len(order)] = there
    board.jobs[np.setdiff1d(np.arange(submitted), there), at.END_S] = request.now_s
    for job, index in zip(there.tolist(), order, strict=True):
        _write_history(board, job, f"jobs[{index}]", request, request.jobs[index])
        _write_place_of_state(board, job, f"jobs[{index}]", request.jobs[index], names)
    for job, index in zip(there.tolist(), order, strict=True):
        running = request.jobs[index].running
        if running is not None:
            _hold(board, job, f"jobs[{index}].running", running, names)
    slowdowns = np.ones(len(order))
    hooks.slow_down(board, slowdowns)
    board.jobs[there, at.SLOWDOWN] = slowdowns
    return state


def _write_history(board: Board, job: int, where: str, request: DecideRequest, given: JobFields) -> None:
    """Write what a job has done, and when."""
    row, now = board.jobs[job], request.now_s
    largest = float(row[at.MAX_EPOCHS])
    if given.epochs_done is not None and given.share_done is not None:
        raise InputError(f"{where}.share_done", given.share_done, "nothing beside epochs_done")
    done = given.epochs_done if given.share_done is None else given.share_done * largest
    done = 0.0 if done is None else done
    if done > largest * (1.0 + SAME_EPOCH):
        raise InputError(f"{where}.epochs_done", done, f"a number from 0 to max_epochs ({largest:g})")
    row[at.EPOCHS] = row[at.BASE_EPOCHS] = row[at.ANCHOR_EPOCHS] = done
    running, started = given.running, given.started_s
    if running is not None:
        _past(f"{where}.running.since_s", running.since_s, now)
        _from(f"{where}.running.since_s", running.since_s, "submission_s", given.submission_s)
    if started is None and (running is not None or done > 0.0):
        started = given.submission_s if running is None else running.since_s
    if started is not None:
        _from(f"{where}.started_s", started, "submission_s", given.submission_s)
        row[at.START_S] = _past(f"{where}.started_s", started, now)


def _write_place_of_state(board: Board, job: int, where: str, given: JobFields, names: ClusterNames) -> None:
    row = board.jobs[job]
    if given.state_on:
        nodes = sorted({_node(f"{where}.state_on[{i}]", name, names) for i, name in enumerate(given.state_on)})
        row[at.LAST_NODE], row[at.LAST_NODES] = nodes[0], int(reduce(add_to_mark, nodes, 0))
    elif given.running is None and row[at.EPOCHS] > 0.0:
        if given.resume_s is not None:
            raise InputError(f"{where}.state_on", [], "the nodes where a job with resume_s has run last")
        row[at.LAST_NODE], row[at.LAST_NODES] = SOMEWHERE, at.NO_MARK


def _hold(board: Board, job: int, where: str, given: RunningFields, names: ClusterNames) -> None:
    """Let a job hold what it holds now, which must be there, and free of what the jobs before it hold."""
    config = names.index_of(given.configuration)
    if config is None:
        there = ", ".join(names.configuration)
        raise InputError(f"{where}.configuration", given.configuration, f"one of {there}")
    configuration = names.configurations[config]
    if not np.isfinite(board.tau[job, config]):
        raise InputError(f"{where}.configuration", given.configuration, "one that the job may use")
    if given.ready_s is not None:
        _from(f"{where}.ready_s", given.ready_s, "since_s", given.since_s)
    nodes = sorted(_node(f"{where}.nodes[{i}]", name, names) for i, name in enumerate(given.nodes))
    if len(nodes) != configuration.nodes or (len(set(nodes)) != configuration.nodes and not configuration.spread):
        wanted = (
            f"the node of each of {configuration.nodes} GPUs"
            if configuration.spread
            else f"{configuration.nodes} different nodes"
        )
        raise InputError(f"{where}.nodes", list(given.nodes), wanted)
    _check_consecutive(f"{where}.nodes", given, nodes, configuration)
    if (given.gpu is None) == (configuration.kind == "shared"):
        raise InputError(f"{where}.gpu", given.gpu, "the number of the GPU if it is shared, else null")
    name, types = given.nodes[0] if len(nodes) == 1 else str(list(given.nodes)), board.nodes[nodes, at.NODE_TYPE]
    if np.any(types != board.facts.configs[config, at.CONFIG_TYPE]):
        raise InputError(f"{where}.nodes", name, f"nodes of {configuration.gpu_type}")
    wrong = apply_holding(board, job, config, nodes, given.gpu)
    if wrong == SHARE:
        raise InputError(f"{where}.gpu", given.gpu, "a GPU of which this share is free beside other jobs'")
    if wrong == QUOTA:
        raise InputError(where, given.configuration, "what the quota of the job's tenant still covers")
    if wrong:
        free = int(board.nodes[nodes, at.FREE].min())
        raise InputError(where, given.configuration, f"GPUs that are free: {name} has {free} beside other jobs'")
    row = board.jobs[job]
    row[at.BASE_S] = given.since_s
    row[at.READY_S] = given.since_s if given.ready_s is None else given.ready_s
    row[at.ANCHOR_S] = max(board.clock[at.NOW], row[at.READY_S])  # what it has done is told of the present


def _check_consecutive(field: str, given: RunningFields, nodes: list[int], configuration: Configuration) -> None:
    if configuration.kind == "shared" and nodes != list(range(nodes[0], nodes[0] + len(nodes))):
        raise InputError(field, list(given.nodes), "nodes that follow each other, for a share of several")


def _past(field: str, time_s: float, now_s: float) -> float:
    if time_s > now_s:
        raise InputError(field, time_s, f"a time not after now_s ({now_s:g})")
    return time_s


def _from(field: str, time_s: float, name: str, first_s: float) -> None:
    if time_s < first_s:
        raise InputError(field, time_s, f"a time not before {name} ({first_s:g})")


def _node(field: str, name: str, names: ClusterNames) -> int:
    if name not in names.node:
        raise InputError(field, name, "the name of one of cluster.nodes")
    return names.node[name]


ENERGY, TARDINESS, END_S, COLUMNS = 0, 1, 2, 3


@kernel
def expected_costs(board: Board) -> Floats:
    """Return energy [€], tardiness [€] and expected end [s] of every active job, (A, COLUMNS); NaN where it waits."""
    jobs, active = board.jobs, board.active
    found = np.full((board.count[at.ACTIVE], COLUMNS), np.nan)
    for i in range(found.shape[0]):
        job = active[i]
        config = int(jobs[job, at.CONFIG])
        if config < 0:
            continue
        now = board.clock[at.NOW]
        ready, each_s, left = max(now, jobs[job, at.READY_S]), seconds_per_epoch(board, job), expected_left(board, job)
        found[i, END_S] = ready + each_s * left
        rate = charge(board, job, config)
        if board.has_network and draws_cpu_power(board.facts):
            part, cpu_part, busy = help_now(board)
            rate += cpu_machines_rate(board, job, part, cpu_part, busy)
        found[i, ENERGY] = rate * (found[i, END_S] - now)
        found[i, TARDINESS] = jobs[job, at.WEIGHT] * late_s(board, job, ready, each_s)
    return found
