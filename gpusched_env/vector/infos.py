"""The infos of a vector environment, as `gymnasium.vector.SyncVectorEnv` puts them together."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gpusched_env.vector.kernels import ENERGY, TARDINESS, TIME, TOTAL_ENERGY, TOTAL_TARDINESS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from gpusched_env.vector.kernels import Seen


def observations_of(seen: Seen) -> dict[str, NDArray[np.float32]]:
    """Give the batched observations: a row per environment."""
    size = len(seen.job)
    return {
        "job": seen.job,
        "options": seen.options.reshape(size, -1),
        "cluster": seen.cluster.reshape(size, -1),
        "queue": seen.queue,
    }


def infos_of(seen: Seen, invalid: NDArray[np.int64]) -> dict[str, Any]:
    """Give an array for each key of a single environment's info, and beside it `_key`: True for each environment."""
    values = _values(seen, invalid)
    there = np.ones((len(values), len(seen.at_hand)), dtype=np.bool_)
    return values | {f"_{key}": row for key, row in zip(values, there, strict=True)}


def infos_of_some(seen: Seen, invalid: NDArray[np.int64], some: NDArray[np.bool_]) -> dict[str, Any]:
    """Give copies of the infos of some environments; zeros, and False beside them, for the others."""
    values = {}
    for key, value in _values(seen, invalid).items():
        values[key] = np.zeros_like(value)
        values[key][some] = value[some]
    return values | {f"_{key}": some.copy() for key in values}


def final_infos_of(seen: Seen, invalid: NDArray[np.int64], ended: NDArray[np.bool_]) -> dict[str, Any]:
    """Give copies of the last observations and infos of the episodes that ended in this step."""
    last = np.full(len(ended), None, dtype=np.object_)
    observations = observations_of(seen)
    for i in np.flatnonzero(ended):
        last[i] = {key: rows[i].copy() for key, rows in observations.items()}
    return {
        "final_obs": last,
        "_final_obs": ended.copy(),
        "final_info": infos_of_some(seen, invalid, ended),
        "_final_info": ended.copy(),
    }


def _values(seen: Seen, invalid: NDArray[np.int64]) -> dict[str, Any]:
    return {
        "action_mask": seen.mask,
        "job": seen.at_hand,
        "time_s": seen.money[TIME],
        "energy_eur": seen.money[ENERGY],
        "tardiness_eur": seen.money[TARDINESS],
        "total_energy_eur": seen.money[TOTAL_ENERGY],
        "total_tardiness_eur": seen.money[TOTAL_TARDINESS],
        "invalid_actions": invalid.copy(),
    }
