"""The present runs of N environments, the compiled calls that move them, and their infos."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from gpusched_env.envs.vector.kernels import (
    ENERGY,
    LOOK,
    MONEY_ROWS,
    PASSED,
    SKIP,
    TARDINESS,
    TIME,
    TOTAL_ENERGY,
    TOTAL_TARDINESS,
    Handles,
    Seen,
    mask_all,
    write_all_current,
    write_left,
)
from gpusched_env.named_arrays import aligned, new_handles
from gpusched_env.observation import (
    CAP_FEATURES,
    CLUSTER_FEATURES,
    JOB_FEATURES,
    JOBS_FEATURES,
    LIMIT_FEATURES,
    PRICE_FEATURES,
    QUEUE_FEATURES,
    Notes,
)
from gpusched_env.simulator.builds import common_build
from gpusched_env.simulator.rounds import run_to_round

if TYPE_CHECKING:
    from numpy.typing import NDArray

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from numpy.typing import NDArray

    from gpusched_env.envs.env import GpuClusterEnv
    from gpusched_env.envs.vector.threads import ThreadPool
    from gpusched_env.simulator import State, View
    from gpusched_env.simulator.state import Common

    Part: TypeAlias = NDArray[np.float32]
    Parts: TypeAlias = tuple[Part, Part, Part, Part, Part, Part, Part, Part]


class EpisodeRuns:
    """N runs side by side, none of which keeps its intervals.

    Args:
        states: New runs, one for each environment.
        pool: The threads that share the work.
        common: What the runs have in common.
        single: A single environment with the same arguments.

    Attributes:
        states: The runs.
        invalid: Actions of each episode that could not be placed, (N,).
        single: That environment.
    """

    def __init__(self, states: Sequence[State], pool: ThreadPool, common: Common, single: GpuClusterEnv) -> None:
        self.states = list(states)
        self.invalid = np.zeros(len(states), dtype=np.int64)
        self.single, self._pool, self._common, self._views_in_use = single, pool, common, False
        self._shape = len(states[0].instance.configurations), len(states[0].instance.gpu_types)
        # Of flat observations callers get the parts end to end, so that the parts can be written again.
        self._kept = self._new_parts() if single.flat else None
        self._use_one_build()
        self._notes = [Notes.of(state.board, common, single.job_features) for state in self.states]
        self._handles = Handles(*(new_handles(len(states)) for _ in Handles._fields))
        own = zip(self.states, self._notes, strict=True)
        self._memory = aligned(len(states), max(state.words + notes.words for state, notes in own))
        self._move(range(len(states)))

    def begin(self, states: Mapping[int, State]) -> None:
        for i, state in states.items():
            self.states[i] = state
        changed = self._use_one_build()
        for i, state in states.items():
            self._notes[i] = Notes.of(state.board, self._common, self.single.job_features)
        self._move(range(len(self.states)) if changed else states)
        self.open(states)

    def open(self, environments: Iterable[int]) -> None:
        for i in environments:
            self.invalid[i] = 0
            run_to_round(self.states[i].board, self.states[i].hidden)

    def step(self, actions: NDArray[np.int64], meanwhile: Callable[[], None] | None = None) -> Seen:
        """Apply an action to each run, unless it is `LOOK`, and observe all. What it returns is not written again.

        `meanwhile` is other work for the calling thread, which may be done then, or not (`ThreadPool.step`).
        """
        size, parts = len(actions), self._kept or self._new_parts()
        seen = Seen(
            *parts[:5],
            mask=np.empty((size, 1 + self._shape[0]), np.int8),
            money=np.empty((MONEY_ROWS, size)),
            current_job=np.empty(size, np.int64),
            idle=np.empty(size, np.int64),
            prices=parts[5],
            cap=parts[6],
            limits=parts[7],
        )
        self._step(actions, seen, meanwhile)
        return seen

    def look(self) -> Seen:
        self.share_left()  # else compiled when a step first has time for it, which may be long after
        return self.step(np.full(len(self.invalid), LOOK))

    def look_again(self, seen: Seen, some: NDArray[np.int64]) -> None:
        actions = np.full(len(seen.current_job), SKIP)
        actions[some] = LOOK
        self._step(actions, seen)

    def views(self) -> tuple[View, ...]:
        """Return the views of all runs: observations are then recounted, since a view may change the state."""
        self._views_in_use = True
        return tuple(state.view for state in self.states)

    def masks(self) -> NDArray[np.bool_]:
        masks = np.empty((len(self.invalid), 1 + self._shape[0]), np.int8)
        mask_all(self._handles.boards, masks, self.states[0].board)
        return masks.view(np.bool_)

    def current_jobs(self) -> NDArray[np.int64]:
        current_job = np.empty(len(self.invalid), np.int64)
        write_all_current(self._handles.boards, current_job, self.states[0].board)
        return current_job

    def share_left(self) -> NDArray[np.float64]:
        left = np.empty(len(self.invalid))
        write_left(self._handles.boards, left, self.states[0].board)
        return left

    def __getstate__(self) -> dict[str, Any]:
        """Return what a copy is made from: its handles are those of its own runs."""
        return {
            name: getattr(self, name) for name in ("states", "invalid", "single", "_pool", "_common", "_views_in_use")
        }

    def __setstate__(self, values: Mapping[str, Any]) -> None:
        self.__init__(values["states"], values["_pool"], values["_common"], values["single"])  # type: ignore[misc]
        self.invalid[:], self._views_in_use = values["invalid"], values["_views_in_use"]

    def _new_parts(self) -> Parts:
        """Make the arrays of `Seen` for the parts of observations."""
        size, (configurations, types), groups = len(self.states), self._shape, self.single.groups
        return (
            np.empty((size, len(JOB_FEATURES)), np.float32),
            np.empty((size, configurations, self.single.option_features), np.float32),
            np.empty((size, types, len(CLUSTER_FEATURES)), np.float32),
            np.empty((size, len(QUEUE_FEATURES)), np.float32),
            np.empty((size, self.single.job_features, len(JOBS_FEATURES)), np.float32),
            np.empty((size, len(PRICE_FEATURES) if "prices" in groups else 0), np.float32),
            np.empty((size, len(CAP_FEATURES) if "cap" in groups else 0), np.float32),
            np.empty((size, configurations if "limits" in groups else 0, len(LIMIT_FEATURES)), np.float32),
        )

    def _step(self, actions: NDArray[np.int64], seen: Seen, meanwhile: Callable[[], None] | None = None) -> None:
        for notes in self._notes if self._views_in_use else ():
            notes.forget()
        self._pool.step(actions, seen, self._stable, meanwhile)

    def _use_one_build(self) -> bool:
        """Let all runs use one build of the compiled code, the smallest for all; return whether a board has changed."""
        builds = [type(state.board) for state in self.states]
        build = common_build(set(builds))
        for state in self.states:
            state.use_build(build)
        return set(builds) != {build}

    def _move(self, some: Iterable[int]) -> None:
        """Place some runs in the common memory, larger ones elsewhere, and write their handles."""
        for i in some:
            state, own, notes = self.states[i], self.states[i].words, self._notes[i]
            memory = self._memory[i]
            if own + notes.words > len(memory):
                memory = aligned(1, own + notes.words)[0]
            state.move(memory[:own])
            self._notes[i] = notes.placed(memory[own:])
            for handles, value in zip(self._handles, (state.board, state.hidden, self._notes[i]), strict=True):
                handles[i] = value.handle
        self._stable = tuple(self._handles), self.invalid, self.states[0].board


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


def observations_of(runs: EpisodeRuns, seen: Seen) -> dict[str, NDArray[np.float32]] | NDArray[np.float32]:
    """Return the batched observations: a row per environment."""
    size = len(seen.job)
    parts = {
        "job": seen.job,
        "options": seen.options.reshape(size, -1),
        "cluster": seen.cluster.reshape(size, -1),
        "queue": seen.queue,
    }
    if runs.single.job_features:
        parts["jobs"] = seen.jobs.reshape(size, -1)
    for name in runs.single.groups:
        parts[name] = getattr(seen, name).reshape(size, -1)
    return np.concatenate(list(parts.values()), axis=1) if runs.single.flat else parts


def infos_of(runs: EpisodeRuns, seen: Seen, stalled: NDArray[np.bool_]) -> dict[str, Any]:
    """Return an array for each key of a single environment's info, and beside it `_key`: True for each environment."""
    there = np.empty((len(THERE), len(seen.current_job)), dtype=np.bool_)
    there.fill(True)  # faster than `ones`
    infos = _values(runs, seen, stalled)
    infos.update(zip(THERE, there, strict=True))
    return infos


def infos_of_some(runs: EpisodeRuns, seen: Seen, stalled: NDArray[np.bool_], some: NDArray[np.bool_]) -> dict[str, Any]:
    infos = {}
    for key, value in _values(runs, seen, stalled).items():
        infos[key] = np.zeros_like(value)
        infos[key][some] = value[some]
    return infos | {key: some.copy() for key in THERE}


def final_infos_of(
    runs: EpisodeRuns, seen: Seen, stalled: NDArray[np.bool_], ended: NDArray[np.bool_]
) -> dict[str, Any]:
    """Return copies of the last observations and infos of the episodes that ended in this step."""
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


def _values(runs: EpisodeRuns, seen: Seen, stalled: NDArray[np.bool_]) -> dict[str, Any]:
    money, rate, factored = seen.money, runs.single.discount_rate, runs.single.factored
    values = (
        seen.mask if factored is None else factored.masks(seen.mask),
        seen.current_job,
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
