"""Max-min fairness in full, among entities and in them: all rise until some are stuck, then the others do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np

from gpusched_baselines.gavel.program import raised

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from gpusched_baselines.gavel.demand import Demand

Within = Literal["fairness", "fifo"]
"""How an entity's level is divided among its jobs: by their weights, or all to the first that can still get more."""

STUCK = 1e-7  # a job whose dual value is larger, relative to the largest, cannot get more


def slopes(
    demand: Demand, entity_weight: NDArray[np.float64], within: Within, live: NDArray[np.bool_]
) -> NDArray[np.float64]:
    """Give what every job gets as the level rises by 1, (A,): its part of its entity's weight; 0 if it is stuck.

    Args:
        demand: The jobs, in the order of their submission.
        entity_weight: Weights of the entities, > 0, (E,).
        within: How an entity divides its weight.
        live: The jobs that are not stuck, (A,).
    """
    entity = demand.entity
    found = np.zeros(len(entity))
    for e in np.unique(entity[live]):
        mine = np.flatnonzero((entity == e) & live)
        if within == "fifo":
            found[mine[0]] = entity_weight[e]
        else:
            found[mine] = entity_weight[e] * demand.weight[mine] / demand.weight[mine].sum()
    return found


def water_filling(demand: Demand, entity_weight: NDArray[np.float64], within: Within) -> NDArray[np.float64]:
    """Raise s_j · thr_j(x) / thr_j(x_prop) of all jobs by their slopes until some are stuck; then go on with the rest.

    A job is stuck if its row of the program has a dual value: it cannot get more without another one that gets less.
    One at least is in every step, so that there are at most A steps.

    Args:
        demand: The jobs, in the order of their submission.
        entity_weight: Weights of the entities, > 0, (E,).
        within: How an entity divides what it gets.

    Returns:
        Shares of time, (A, K).

    Raises:
        ProgramError: The solver gave up.
    """
    worth = demand.size[:, None] * demand.speed / demand.proportional[:, None]
    live, level = np.any(demand.speed > 0.0, axis=1), np.zeros(len(worth))
    x = np.zeros(worth.shape)
    while live.any():
        slope = slopes(demand, entity_weight, within, live)
        found = raised(demand, worth, slope, level * (1.0 - 1e-9))
        x, rise = found.x, float(found.extra[0])
        level = level + slope * rise
        stuck = live & (slope > 0.0) & (found.duals > STUCK * found.duals.max())
        if not stuck.any():
            break
        live = live & ~stuck
    return x
