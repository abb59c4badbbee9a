"""What an answer says: who runs where on what, when to ask again, and what that is expected to cost."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gpusched_env.simulator import layout as at
from gpusched_experiments.service import fits as costs

if TYPE_CHECKING:
    from gpusched_env.simulator import Board, State
    from gpusched_experiments.service.cluster import ClusterNames
    from gpusched_experiments.service.fields import DecideRequest, JobFields, RunningFields


WHY = "no node that is there can hold what it may use"


def nothing(request: DecideRequest) -> dict[str, Any]:
    """Answer a request in which nothing is to be decided: without jobs, or with none that fits anything now."""
    return {
        "jobs": [_left_out(job) for job in request.jobs],
        "running": 0,
        "waiting": len(request.jobs),
        "ask_again_in_s": None,
        "ask_again_at_s": None,
        "expected_cost_eur": 0.0,
        "expected_energy_eur": 0.0,
        "expected_tardiness_eur": 0.0,
        "energy_eur_per_h": 0.0,
        "memory": request.memory,
    }


def answer(state: State, request: DecideRequest, names: ClusterNames, order: list[int]) -> dict[str, Any]:
    """Give the answer after the round, its jobs as in the request.

    Those whose place there is not in `order` fit nothing now and wait.
    """
    board, now = state.board, request.now_s
    active = board.active[: len(order)].tolist()
    there = board.jobs[active]
    expected = costs.expected_costs(board)
    jobs: list[Any] = [_left_out(job) for job in request.jobs]
    for job, index, each in zip(active, order, expected.tolist(), strict=True):
        jobs[index] = _job(board, job, each, request, names, index)
    wakes = there[:, at.WAKE_S]
    wake = float(np.min(wakes, initial=np.inf, where=wakes > now))
    again = wake if np.isfinite(wake) else None
    energy, tardiness = (float(np.nansum(expected[:, column])) for column in (costs.ENERGY, costs.TARDINESS))
    running = int(np.sum(there[:, at.CONFIG] >= 0.0))
    return {
        "jobs": jobs,
        "running": running,
        "waiting": len(jobs) - running,
        "ask_again_in_s": None if again is None else again - now,
        "ask_again_at_s": again,
        "expected_cost_eur": energy + tardiness,
        "expected_energy_eur": energy,
        "expected_tardiness_eur": tardiness,
        "energy_eur_per_h": 3600.0 * float(board.clock[at.BILL_RATE]),
    }


def _left_out(job: JobFields) -> dict[str, Any]:
    return {"id": job.id, "ask_again_at_s": None, "action": "wait", "configuration": None, "why": WHY}


def _job(
    board: Board, job: int, expected: list[float], request: DecideRequest, names: ClusterNames, index: int
) -> dict[str, Any]:
    """Say what a job gets: `start`, `keep`, `change`, `stop` or `wait`."""
    row, given = board.jobs[job], request.jobs[index]
    config, wake = int(row[at.CONFIG]), float(row[at.WAKE_S])
    base = {"id": given.id, "ask_again_at_s": wake if np.isfinite(wake) and wake > request.now_s else None}
    if config < 0:
        return base | {"action": "wait" if given.running is None else "stop", "configuration": None}
    configuration = names.configurations[config]
    nodes, node = [], int(row[at.NODE])
    while node >= 0:
        nodes.append(request.cluster.nodes[node].name)
        node = int(board.nodes[node, at.NEXT]) if configuration.nodes > 1 else -1
    slot = int(row[at.SLOT])
    held = given.running
    same = held is not None and _same(held, configuration.name, nodes, slot)
    return base | {
        "action": "keep" if same else "start" if held is None else "change",
        "configuration": configuration.name,
        "gpu_type": configuration.gpu_type,
        "nodes": nodes,
        "gpus_per_node": configuration.gpus_per_node,
        "share": configuration.share,
        "gpu": None if slot < 0 else slot,
        "ready_s": float(row[at.READY_S]),
        "expected_end_s": expected[costs.END_S],
        "expected_energy_eur": expected[costs.ENERGY],
        "expected_tardiness_eur": expected[costs.TARDINESS],
    }


def _same(held: RunningFields, configuration: str, nodes: list[str], slot: int) -> bool:
    place = held.configuration == configuration and set(held.nodes) == set(nodes)
    return place and slot == (-1 if held.gpu is None else held.gpu)
