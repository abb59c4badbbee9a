"""An exact checkpoint of a vector environment, as plain arrays."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

import numpy as np

from gpusched_env.arrays import generator_of
from gpusched_env.envs.vector.episodes import REPLAYED, Episodes
from gpusched_env.envs.vector.runs import EpisodeRuns
from gpusched_env.errors import InputError
from gpusched_env.model.own_state import check_no_state
from gpusched_env.simulator import State

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.random import Generator
    from numpy.typing import NDArray

    from gpusched_env.envs.vector.vector_input import EpisodeLimits

LOW = 2**64 - 1
OF_BOARD = ("jobs", "nodes", "clock", "count", "active", "order", "memory", "cells")
NAMES = (*OF_BOARD, "outcome", "invalid", "steps", "ended", "instance_seed", "generator", "arguments", "digest")
"""The arrays of a checkpoint."""


def pack(
    runs: EpisodeRuns, episodes: Episodes, limits: EpisodeLimits, ended: NDArray[np.bool_]
) -> dict[str, NDArray[Any]]:
    """Return everything that the next steps depend on, by name: the arrays of the runs end to end, and the rest.

    Raises:
        InputError: An environment replays an instance that `reset` was given: it cannot be made again. Or a mechanism
            keeps state of its own.
    """
    check_no_state((name for state in runs.states for name in state.board.mechanisms), "a checkpoint")
    for i, seed in enumerate(episodes.seeds):
        if seed == REPLAYED:
            name = runs.states[i].instance.name
            raise InputError(f"instances[{i}]", name, "for a checkpoint: one made from the scenario and a seed")
    generators = [_words_of(episodes.generator(i)) for i in range(len(ended))]
    arrays = [changing(state) for state in runs.states]
    packed = {
        **{name: np.concatenate([each[name].ravel() for each in arrays]) for name in arrays[0]},
        "invalid": runs.invalid.copy(),
        "steps": limits.steps.copy(),
        "ended": ended.copy(),
        "instance_seed": np.array(episodes.seeds, dtype=np.int64),
        "generator": np.array(generators, dtype=np.uint64),
        "arguments": np.frombuffer(_arguments(episodes, limits), dtype=np.uint8).copy(),
    }
    return {**packed, "digest": digest(packed)}


def unpack(
    state: Mapping[str, NDArray[Any]], episodes: Episodes, limits: EpisodeLimits
) -> tuple[EpisodeRuns, NDArray[np.bool_]]:
    """Make the runs of which `pack` returned `state`, and return whose episode ended in the step before.

    Args:
        episodes: Makes the instances again; receives the seeds and generators.
        limits: When episodes are truncated; receives their steps.

    Raises:
        InputError: It is no such state, or was changed since, or has other arguments, or its instances
            come out differently here; then nothing has changed.
    """
    given: dict[str, Any] = {name: state.get(name) if hasattr(state, "get") else None for name in NAMES}
    for name, array in given.items():
        if not isinstance(array, np.ndarray):
            raise InputError(f"state[{name!r}]", array, "an array, as get_state returned it")
    if not np.array_equal(given["digest"], digest(given)):
        raise InputError("state", "arrays that do not belong to its digest", "what get_state returned, unchanged")
    if given["arguments"].tobytes() != _arguments(episodes, limits):
        raise InputError("state", "a state with other arguments", "one of an environment made with the same arguments")
    seeds = given["instance_seed"].tolist()
    generators = [_generator_of(words) for words in given["generator"].tolist()]
    fresh = [episodes.state(episodes.instance(i, seed)) for i, seed in enumerate(seeds)]
    for name in changing(fresh[0]):
        parts = [changing(run)[name] for run in fresh]
        ends = np.cumsum([part.size for part in parts])
        if ends[-1] != given[name].size:
            raise InputError(f"state[{name!r}]", f"{given[name].size} numbers", f"{ends[-1]}, as its instances need")
        for part, values in zip(parts, np.split(given[name], ends[:-1]), strict=True):
            part[...] = values.reshape(part.shape)
    for run in fresh:
        run.restore()
    runs = EpisodeRuns(fresh, episodes.common, episodes.singles[0])
    runs.invalid[:] = given["invalid"]
    episodes.resume(seeds, generators)
    limits.steps[:] = given["steps"]
    return runs, given["ended"].copy()


def changing(state: State) -> dict[str, NDArray[Any]]:
    """Return the arrays of a run that change in it, by name, but for what follows from them and the instance.

    An array that its build does not have is empty, as it is in a larger build for an instance without the mechanism.
    """
    empty = np.empty(0, dtype=np.int64)
    return {name: getattr(state.board, name, empty) for name in OF_BOARD} | {"outcome": state.hidden.outcome}


def digest(arrays: Mapping[str, NDArray[Any]]) -> NDArray[np.uint8]:
    """Return the SHA-256 over the names, types, shapes and bytes of all arrays but the digest itself, (32,)."""
    hashed = hashlib.sha256()
    for name in sorted(arrays.keys() - {"digest"}):
        hashed.update(f"{name}{arrays[name].dtype.str}{arrays[name].shape}".encode())
        hashed.update(arrays[name].tobytes())
    return np.frombuffer(hashed.digest(), dtype=np.uint8).copy()


def _arguments(episodes: Episodes, limits: EpisodeLimits) -> bytes:
    return hashlib.sha256(episodes.fingerprint + repr((limits.idle, limits.most.tolist())).encode()).digest()


def _words_of(generator: Generator) -> list[int]:
    whole: Any = generator.bit_generator.state
    state, increment = whole["state"]["state"], whole["state"]["inc"]
    return [state >> 64, state & LOW, increment >> 64, increment & LOW, whole["has_uint32"], whole["uinteger"]]


def _generator_of(words: Sequence[int]) -> Generator:
    numbers = {"state": words[0] << 64 | words[1], "inc": words[2] << 64 | words[3]}
    return generator_of({"bit_generator": "PCG64", "state": numbers, "has_uint32": words[4], "uinteger": words[5]})
