"""Max-min fairness among entities and in them: water filling."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np

from gpusched_baselines.gavel.program import raised

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from gpusched_baselines.gavel.program import GavelDemand

Within = Literal["fairness", "fifo"]
"""How an entity's level is divided among its jobs: by their weights, or all to the first job that can get more."""

STUCK = 1e-7  # a job whose dual value is larger, relative to the largest, cannot get more


def slopes(
    demand: GavelDemand, entity_weight: NDArray[np.float64], within: Within, live: NDArray[np.bool_]
) -> NDArray[np.float64]:
    """Return the rise of every job's share as the level rises by 1, (A,): its part of its entity's weight; 0 if stuck.

    Args:
        entity_weight: Weights of the entities, > 0, (E,).
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


def water_filling(demand: GavelDemand, entity_weight: NDArray[np.float64], within: Within) -> NDArray[np.float64]:
    """Raise s_j · thr_j(x) / thr_j(x_prop) of all jobs by their slopes until some are stuck; then go on with the rest.

    A job is stuck if its row of the program has a dual value: it cannot get more unless another one gets less. At least
    one job becomes stuck in every step, so there are at most A steps.

    Args:
        entity_weight: Weights of the entities, > 0, (E,).

    Returns:
        Shares of time, (A, K).
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


def quantile_entities(weight: NDArray[np.float64], entities: int) -> NDArray[np.int64]:
    """Divide jobs into entities by the quantiles of their weights, the lightest in entity 0, (A,)."""
    edges = np.quantile(weight, np.arange(1, entities) / entities) if entities > 1 else np.empty(0)
    return np.searchsorted(edges, weight, side="left")
