"""Checks of a checkpoint: kernels follow the indices in it without looking, so they must point into the arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gpusched_env.envs.vector.batch import JOBS, NODES, SITE
from gpusched_env.errors import InputError
from gpusched_env.simulator import layout as at

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from gpusched_env.simulator import State

GENERATOR_WORDS = 6

KINDS: dict[str, tuple[type, int, int | None]] = {
    "jobs": (np.float64, 3, at.JOB_COLUMNS),
    "hidden": (np.float64, 3, None),
    "tau": (np.float64, 3, None),
    "memory": (np.float64, 3, None),
    "active": (np.int64, 2, None),
    "keys": (np.float64, 2, None),
    "order": (np.int64, 2, None),
    "nodes": (np.int64, 3, None),
    "clock": (np.float64, 2, at.CLOCK_COLUMNS),
    "counts": (np.int64, 2, at.COUNT_COLUMNS),
    "sizes": (np.int64, 2, SITE),
    "invalid": (np.int64, 1, None),
    "ended": (np.bool_, 1, None),
    "instance_seed": (np.int64, 1, None),
    "generator": (np.uint64, 2, GENERATOR_WORDS),
    "arguments": (np.uint8, 1, None),
}
"""The arrays of a checkpoint, by name: type, number of axes, and the length of the last one if it is fixed."""

FIXED_JOB = (at.DISTRIBUTION, at.APPLICATION, at.CHEAPEST)
FIXED_NODE = (at.NODE_TYPE, at.NODE_GPUS)
"""Columns that never change in a run, and that point somewhere."""


def checked_arrays(state: Mapping[str, NDArray[Any]], environments: int) -> dict[str, NDArray[Any]]:
    """Give the arrays by name, once their types and numbers of axes are checked; a file of them is read once.

    Raises:
        InputError: It is no checkpoint of so many environments.
    """
    arrays: dict[str, Any] = {name: state.get(name) if hasattr(state, "get") else None for name in KINDS}
    for name, (kind, axes, columns) in KINDS.items():
        array = arrays[name]
        if not isinstance(array, np.ndarray) or array.dtype != kind or array.ndim != axes:
            raise InputError(f"state[{name!r}]", array, f"an array of {np.dtype(kind)} with {axes} axes")
        if columns is not None and array.shape[-1] != columns:
            raise InputError(f"state[{name!r}]", f"{array.shape[-1]} columns", f"{columns}")
        if name != "arguments" and len(array) != environments:
            raise InputError(f"state[{name!r}]", f"{len(array)} environments", f"{environments}")
    words = arrays["generator"]
    if np.any((words[:, 3] % 2 == 0) | (words[:, 4] > 1) | (words[:, 5] >= 2**32)):
        raise InputError("state['generator']", "words of no generator", "what get_state gave")
    if np.any(arrays["instance_seed"] < 0):
        raise InputError("state['instance_seed']", int(arrays["instance_seed"].min()), "whole numbers >= 0")
    return arrays


def check_run(state: Mapping[str, NDArray[Any]], i: int, fresh: State) -> None:
    """Check that the checkpoint's run of environment i is one of the instance that `fresh` has just begun.

    Raises:
        InputError: Its instance is another one, or it says something impossible.
    """
    jobs, nodes = len(fresh.view.jobs), len(fresh.view.nodes)
    hidden = state["hidden"][i, :jobs]
    same = state["sizes"][i, JOBS] == jobs and state["sizes"][i, NODES] == nodes
    same = same and np.array_equal(hidden[:, at.NEEDED], fresh.hidden[:, at.NEEDED])
    if not same or not np.array_equal(hidden[:, at.FUTURE :], fresh.hidden[:, at.FUTURE :], equal_nan=True):
        allowed = "a state whose instances this version makes again from scenario and seeds"
        raise InputError(f"state of environment {i}", "another instance", allowed)
    if not (_counts_hold(state, i, jobs) and _jobs_hold(state, i, fresh) and _nodes_hold(state["nodes"][i], fresh)):
        raise InputError(f"state of environment {i}", "an impossible run", "what get_state gave")


def _counts_hold(state: Mapping[str, NDArray[Any]], i: int, jobs: int) -> bool:
    count = state["counts"][i]
    submitted, active, done, to_ask, asked = count[[at.SUBMITTED, at.ACTIVE, at.DONE, at.TO_ASK, at.ASKED]].tolist()
    if not (0 <= asked <= to_ask <= active <= submitted <= jobs and done == submitted - active):
        return False
    if count[at.LOGGING] != 0 or (asked == to_ask) != (done == jobs):
        return False
    return _within(state["active"][i, :active], 0, submitted) and _within(state["order"][i, :to_ask], 0, submitted)


def _jobs_hold(state: Mapping[str, NDArray[Any]], i: int, fresh: State) -> bool:
    submitted, view = int(state["counts"][i, at.SUBMITTED]), fresh.view
    jobs, first = state["jobs"][i, :submitted], fresh.hidden[:submitted, at.FUTURE : at.FUTURE_TAU]
    most = max(node.gpus for node in fresh.instance.nodes)
    return (
        np.array_equal(jobs[:, FIXED_JOB], first[:, FIXED_JOB])
        and _within(jobs[:, [at.CONFIG, at.OLD_CONFIG]], -1, len(view.configs))
        and _within(jobs[:, [at.NODE, at.OLD_NODE, at.HOME]], -1, len(view.nodes))
        and _within(jobs[:, [at.SLOT, at.OLD_SLOT, at.HOME_SLOT]], -1, most)
    )


def _nodes_hold(nodes: NDArray[np.int64], fresh: State) -> bool:
    mine = fresh.view.nodes
    nodes = nodes[: len(mine)]
    return (
        np.array_equal(nodes[:, FIXED_NODE], mine[:, FIXED_NODE])
        and bool(np.all(nodes[:, [at.FREE, at.OLD_FREE]] <= nodes[:, [at.NODE_GPUS]]))
        and bool(np.all(nodes[:, [at.FREE, at.OLD_FREE]] >= 0))
        and _within(nodes[:, [at.NEXT, at.OLD_NEXT]], -1, len(mine))
    )


def _within(values: NDArray[Any], lowest: int, end: int) -> bool:
    """Say whether all values are at least `lowest` and below `end`."""
    return bool(np.all((values >= lowest) & (values < end)))
