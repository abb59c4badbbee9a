"""The infos of a vector environment, as `gymnasium.vector.SyncVectorEnv` puts them together."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gpusched_env.envs.vector.kernels import ENERGY, PASSED, TARDINESS, TIME, TOTAL_ENERGY, TOTAL_TARDINESS
from gpusched_env.observation import PARTS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from gpusched_env.envs.vector.kernels import Seen
    from gpusched_env.envs.vector.runs import Runs

KEYS = (
    "action_mask",
    "job",
    "time_s",
    "energy_eur",
    "tardiness_eur",
    "total_energy_eur",
    "total_tardiness_eur",
    "invalid_actions",
    "stalled",
    "discount",
)
THERE = tuple(f"_{key}" for key in KEYS)


def observations_of(runs: Runs, seen: Seen) -> dict[str, NDArray[np.float32]] | NDArray[np.float32]:
    """Give the batched observations: a row per environment."""
    size = len(seen.job)
    parts = seen.job, seen.options.reshape(size, -1), seen.cluster.reshape(size, -1), seen.queue
    return np.concatenate(parts, axis=1) if runs.single.flat else dict(zip(PARTS, parts, strict=True))


def infos_of(runs: Runs, seen: Seen, stalled: NDArray[np.bool_]) -> dict[str, Any]:
    """Give an array for each key of a single environment's info, and beside it `_key`: True for each environment."""
    there = np.empty((len(THERE), len(seen.at_hand)), dtype=np.bool_)
    there.fill(True)  # faster than `ones`
    infos = _values(runs, seen, stalled)
    infos.update(zip(THERE, there, strict=True))
    return infos


def infos_of_some(runs: Runs, seen: Seen, stalled: NDArray[np.bool_], some: NDArray[np.bool_]) -> dict[str, Any]:
    """Give copies of the infos of some environments; zeros, and False beside them, for the others."""
    infos = {}
    for key, value in _values(runs, seen, stalled).items():
        infos[key] = np.zeros_like(value)
        infos[key][some] = value[some]
    return infos | {key: some.copy() for key in THERE}


def final_infos_of(runs: Runs, seen: Seen, stalled: NDArray[np.bool_], ended: NDArray[np.bool_]) -> dict[str, Any]:
    """Give copies of the last observations and infos of the episodes that ended in this step."""
    last = np.full(len(ended), None, dtype=np.object_)
    observations = observations_of(runs, seen)
    for i in np.flatnonzero(ended):
        if isinstance(observations, dict):
            last[i] = {key: rows[i].copy() for key, rows in observations.items()}
        else:
            last[i] = observations[i].copy()
    return {
        "final_obs": last,
        "_final_obs": ended.copy(),
        "final_info": infos_of_some(runs, seen, stalled, ended),
        "_final_info": ended.copy(),
    }


def _values(runs: Runs, seen: Seen, stalled: NDArray[np.bool_]) -> dict[str, Any]:
    money, rate = seen.money, runs.single.discount_rate
    values = (
        seen.mask,
        seen.at_hand,
        money[TIME],
        money[ENERGY],
        money[TARDINESS],
        money[TOTAL_ENERGY],
        money[TOTAL_TARDINESS],
        runs.invalid.copy(),
        stalled.copy(),
        np.exp(-rate * money[PASSED]) if rate > 0.0 else np.ones(len(stalled)),
    )
    return dict(zip(KEYS, values, strict=True))
