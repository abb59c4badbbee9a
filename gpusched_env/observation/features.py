"""The observation space, made of the features that the writers of each group declare."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from typing import Any, Literal
from zlib import crc32

import numpy as np
from gymnasium import spaces

from gpusched_env.errors import InputError
from gpusched_env.observation.cluster import CLUSTER_FEATURES
from gpusched_env.observation.job import JOB_FEATURES
from gpusched_env.observation.jobs import JOBS_FEATURES
from gpusched_env.observation.observe import OPTION_FEATURES, QUEUE_FEATURES
from gpusched_env.observation.ratios import Names
from gpusched_env.parts import part_of, short_name

__all__ = [
    "CLUSTER_FEATURES",
    "CO_RUNNER_FEATURES",
    "GROUPS",
    "JOBS_FEATURES",
    "JOB_FEATURES",
    "MEMORY_FEATURES",
    "OPTION_FEATURES",
    "PARTS",
    "QUEUE_FEATURES",
    "SharedFeatures",
    "feature_names",
    "flat_space",
    "observation_space",
    "option_count",
    "part_slices",
]

MECHANISM_OF: dict[str, str] = import_module("gpusched_env.mechanisms").GROUPS
"""The mechanism that writes each group, by the name of its part of an observation (`hooks.write_group`)."""

GROUPS = tuple(MECHANISM_OF)
"""Groups of features that are not in observations unless they are asked for: mechanisms write them."""

PARTS = ("job", "options", "cluster", "queue", "jobs")
"""The parts of an observation, in the order in which a flat one has them; `jobs` only with `job_features`.

Behind them stand those of the `GROUPS` that were asked for, in their order.
"""


_beside = Names()
SPEED_NOW = _beside(
    "speed that it would have now, 1 as alone, on several nodes as with the most help; 0 if it cannot be placed"
)
PRIORITY = _beside("priority of its share / 9")
SWITCH = _beside("squash(seconds without progress that it would cost now / T)")
OPPORTUNISTIC = _beside("1 if the job is opportunistic")
CO_RUNNER_FEATURES = tuple(_beside)
"""Features that `shared_features` appends to each row of `OPTION_FEATURES`."""

_memory = Names()
MEMORY_LIMIT = _memory("memory that it would have there now / its need, where it is least; 0 if it cannot be placed")
BESIDE = _memory("squash(jobs beside it on a shared GPU, where they are most)")
MEMORY_FEATURES = tuple(_memory)
"""Features that `shared_features = "memory"` appends to those."""

SharedFeatures = bool | Literal["memory"]
"""Whether configurations have features for shared clusters: none, `CO_RUNNER_FEATURES`, or `MEMORY_FEATURES` too."""


def _added_names(shared_features: SharedFeatures) -> tuple[str, ...]:
    if shared_features == "memory":
        return CO_RUNNER_FEATURES + MEMORY_FEATURES
    return CO_RUNNER_FEATURES if shared_features else ()


def option_count(shared_features: SharedFeatures) -> int:
    """Count the features of a configuration."""
    return len(OPTION_FEATURES) + len(_added_names(shared_features))


def observation_space(
    configurations: int,
    gpu_types: int,
    *,
    shared_features: SharedFeatures = False,
    job_features: int = 0,
    groups: Iterable[str] = (),
) -> spaces.Dict:
    """Make the observation space for a number of configurations C and GPU types V.

    `options`, `cluster` and `jobs` are rows laid end to end, since Stable-Baselines3 wants vectors:
    `options.reshape(C, -1)` has a row of `OPTION_FEATURES` per configuration, with `CO_RUNNER_FEATURES` behind them if
    there are `shared_features`, `cluster.reshape(V, -1)` a row of `CLUSTER_FEATURES` per GPU type, and
    `jobs.reshape(K, -1)` a row of `JOBS_FEATURES` for each of K `job_features`; without any there is no such part.
    `groups` are names of `GROUPS`, or mechanisms of other packages; `limits.reshape(C, -1)` has a row for each
    configuration.
    """

    def box(features: int) -> spaces.Box:
        return spaces.Box(-1.0, 1.0, (features,), np.float32)

    boxes: dict[str, spaces.Space[Any]] = {
        "job": box(len(JOB_FEATURES)),
        "options": box(configurations * option_count(shared_features)),
        "cluster": box(gpu_types * len(CLUSTER_FEATURES)),
        "queue": box(len(QUEUE_FEATURES)),
    }
    boxes |= {"jobs": box(job_features * len(JOBS_FEATURES))} if job_features else {}
    rows = {"limits": configurations}
    boxes |= {short_name(name): box(rows.get(name, 1) * len(features_of(name))) for name in in_order(groups)}
    return spaces.Dict(boxes)


def parts_of(space: spaces.Dict) -> tuple[str, ...]:
    """Return those of the `PARTS` and `GROUPS` that `space` has, and groups of other packages behind them."""
    own = tuple(part for part in (*PARTS, *GROUPS) if part in space.spaces)
    return (*own, *sorted(space.spaces.keys() - set(own)))


def checked_groups(mechanisms: Any) -> tuple[str, ...]:
    """Return mechanisms of other packages in the order in which observations have their groups.

    Raises:
        InputError: It is no list of such mechanisms with features, or two have the same last part, or that of a part.
    """
    if not isinstance(mechanisms, list | tuple) or not all(
        isinstance(name, str) and "." in name for name in mechanisms
    ):
        raise InputError("features", mechanisms, "a list of mechanisms of other packages")
    names = {short_name(name) for name in mechanisms} - {*PARTS, *GROUPS}
    if len(names) < len(mechanisms) or not all(map(features_of, mechanisms)):
        allowed = "mechanisms with features, with different last parts that no other part of the observation has"
        raise InputError("features", list(mechanisms), allowed)
    return in_order(mechanisms)


def in_order(groups: Iterable[str]) -> tuple[str, ...]:
    """Return groups in the order in which observations have them."""
    given = tuple(groups)
    return (*(name for name in GROUPS if name in given), *sorted({*given} - {*GROUPS}, key=short_name))


def flat_space(space: spaces.Dict) -> spaces.Box:
    """Make the space of flat observations, (F,): the parts of `space` end to end."""
    return spaces.Box(-1.0, 1.0, (part_slices(space)[-1].stop,), np.float32)


def part_slices(space: spaces.Dict) -> tuple[slice, ...]:
    """Return where a flat observation has each of the parts of `space`."""
    ends = np.cumsum([spaces.flatdim(space[part]) for part in parts_of(space)]).tolist()
    return tuple(slice(first, last) for first, last in zip([0, *ends], ends, strict=False))


def feature_names(
    configurations: Iterable[str],
    gpu_types: Iterable[str],
    *,
    shared_features: SharedFeatures = False,
    job_features: int = 0,
    groups: Iterable[str] = (),
) -> tuple[str, ...]:
    """List the F names of the numbers of a flat observation, such as `options[V100x1]: 1 if it can be placed now`.

    Args:
        configurations: Names of the configurations, in their order.
        gpu_types: Names of the GPU types, in their order.
        shared_features: Whether configurations have the further features for shared clusters.
        job_features: Number of rows of single other jobs, K.
        groups: The groups that were asked for.
    """
    configurations = tuple(configurations)
    rows = {"limits": [f"limits[{name}]" for name in configurations]}
    options = OPTION_FEATURES + _added_names(shared_features)
    return (
        *(f"job: {feature}" for feature in JOB_FEATURES),
        *(f"options[{name}]: {feature}" for name in configurations for feature in options),
        *(f"cluster[{name}]: {feature}" for name in gpu_types for feature in CLUSTER_FEATURES),
        *(f"queue: {feature}" for feature in QUEUE_FEATURES),
        *(f"jobs[{k}]: {feature}" for k in range(job_features) for feature in JOBS_FEATURES),
        *(
            f"{row}: {text}"
            for name in in_order(groups)
            for row in rows.get(name, [short_name(name)])
            for text in features_of(name)
        ),
    )


def features_of(group: str) -> tuple[str, ...]:
    """Return the names of the features of a group: one of `GROUPS`, or a mechanism of another package.

    `limits` has a row of them for each configuration.
    """
    own = MECHANISM_OF.get(group)
    return tuple((part_of(group, "features") if own is None else part_of(own, "names")).FEATURES)


def group_number(group: str) -> int:
    """Return the number by which `hooks.write_group` names a group: its place in `GROUPS`, or one of its name."""
    return GROUPS.index(group) if group in GROUPS else len(GROUPS) + crc32(group.encode())
