"""The answer to a request: of every job what it gets, and what is expected of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gpusched_env.simulator import Board, State
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.placement.held_nodes import places_of
from gpusched_operations.service.deferral import ENERGY as DEFERRED_ENERGY
from gpusched_operations.service.deferral import SAVES, UNTIL_S
from gpusched_operations.service.deferral import TARDINESS as DEFERRED_TARDINESS
from gpusched_operations.service.present import END_S, ENERGY, TARDINESS, expected_costs

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gpusched_env.arrays import Floats
    from gpusched_operations.service.cluster import ClusterNames
    from gpusched_operations.service.fields import DecideRequest

WAITS = ("id", "ask_again_at_s", "action", "configuration", "why")
WHY = "no node that is there can hold what it may use"


def answer(
    request: DecideRequest, jobs: Iterable[dict[str, Any]], timer_s: float, costs_eur: tuple[float, float], rate: float
) -> dict[str, Any]:
    """Return the answer.

    Args:
        jobs: What jobs get that fit something now; all others wait.
        timer_s: The first time at which one asked to be looked at again [s]; inf: none.
        costs_eur: Expected cost of energy, and of tardiness [€].
        rate: Cost of energy now [€/s].
    """
    given = {job["id"]: job for job in jobs}
    told = [
        given.get(job.id) or dict.fromkeys(WAITS) | {"id": job.id, "action": "wait", "why": WHY} for job in request.jobs
    ]
    running = sum(job["configuration"] is not None for job in told)
    again = timer_s if np.isfinite(timer_s) else None
    return {
        "jobs": told,
        "running": running,
        "waiting": len(told) - running,
        "ask_again_in_s": None if again is None else again - request.now_s,
        "ask_again_at_s": again,
        "expected_cost_eur": sum(costs_eur),
        "expected_energy_eur": costs_eur[0],
        "expected_tardiness_eur": costs_eur[1],
        "energy_eur_per_h": 3600.0 * rate,
    }


def decided(
    state: State, request: DecideRequest, names: ClusterNames, order: list[int], deferred: Floats | None = None
) -> dict[str, Any]:
    """Return the answer after the round: of the jobs at these places in the request what they got.

    Args:
        deferred: As `settle_deferrals` returned it; None: no job is deferred.
    """
    board = state.board
    active, expected = board.active[: len(order)], expected_costs(board)
    timers = board.jobs[active, at.TIMER_S]
    jobs = [
        _job(board, job, each, request, names, index)
        for job, index, each in zip(active.tolist(), order, expected.tolist(), strict=True)
    ]
    if deferred is not None:
        waits = np.flatnonzero(np.isfinite(deferred[:, DEFERRED_ENERGY]))
        expected[waits, ENERGY], expected[waits, TARDINESS] = (
            deferred[waits, DEFERRED_ENERGY],
            deferred[waits, DEFERRED_TARDINESS],
        )
        for place in waits.tolist():
            jobs[place] |= _wait(deferred[place].tolist(), request.now_s)
    energy, tardiness = (float(np.nansum(expected[:, column])) for column in (ENERGY, TARDINESS))
    timer_s = float(np.min(timers, initial=np.inf, where=timers > request.now_s))
    return answer(request, jobs, timer_s, (energy, tardiness), float(board.clock[at.BILL_RATE]))


def _wait(row: list[float], now_s: float) -> dict[str, Any]:
    """Return what an answer says of a job that waits while GPUs are idle."""
    costs = {"expected_energy_eur": row[DEFERRED_ENERGY], "expected_tardiness_eur": row[DEFERRED_TARDINESS]}
    if not np.isfinite(row[UNTIL_S]):
        return costs
    hours = (row[UNTIL_S] - now_s) / 3600.0
    why = f"waits until {row[UNTIL_S]:.0f} s, in {hours:.1f} h, to save {row[SAVES]:.2f} EUR"
    return costs | {"waits_until_s": row[UNTIL_S], "saves_eur": row[SAVES], "why": why}


def _job(
    board: Board, job: int, expected: list[float], request: DecideRequest, names: ClusterNames, index: int
) -> dict[str, Any]:
    """Return what a job gets: `start`, `keep`, `change`, `stop` or `wait`."""
    row, given = board.jobs[job], request.jobs[index]
    config, timer = int(row[at.CONFIG]), float(row[at.TIMER_S])
    base = {"id": given.id, "ask_again_at_s": timer if np.isfinite(timer) and timer > request.now_s else None}
    if config < 0:
        return base | {"action": "wait" if given.running is None else "stop", "configuration": None}
    configuration = names.configurations[config]
    nodes = [request.cluster.nodes[node].name for node in places_of(board, job, old=False)]
    slot = int(row[at.SLOT])
    held = given.running
    now = config, sorted(nodes), None if slot < 0 else slot
    same = held is not None and (names.index_of(held.configuration), sorted(held.nodes), held.gpu) == now
    return base | {
        "action": "keep" if same else "start" if held is None else "change",
        "configuration": configuration.name,
        "gpu_type": configuration.gpu_type,
        "nodes": nodes,
        "gpus_per_node": configuration.gpus_per_node,
        "share": configuration.share,
        "gpu": now[2],
        "ready_s": float(row[at.READY_S]),
        "expected_end_s": expected[END_S],
        "expected_energy_eur": expected[ENERGY],
        "expected_tardiness_eur": expected[TARDINESS],
    }
