"""The present runs of N environments, the compiled calls that move them, and their infos."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gpusched_env.envs.kernels import LOOK, part_places
from gpusched_env.envs.vector.kernels import (
    ENERGY,
    MONEY_ROWS,
    PASSED,
    SKIP,
    TARDINESS,
    TIME,
    TOTAL_ENERGY,
    TOTAL_TARDINESS,
    Seen,
    mask_all,
    work,
)
from gpusched_env.named_arrays import aligned, new_handles
from gpusched_env.observation import Notes
from gpusched_env.simulator.builds import common_build
from gpusched_env.simulator.rounds import run_to_round

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from numpy.typing import NDArray

    from gpusched_env.envs.env import GpuClusterEnv, Observation
    from gpusched_env.simulator import State, View
    from gpusched_env.simulator.state import Common


class EpisodeRuns:
    """N runs side by side, none of which keeps its intervals.

    Args:
        states: New runs, one for each environment.
        common: What the runs have in common.
        single: A single environment with the same arguments.

    Attributes:
        states: The runs.
        invalid: Actions of each episode that could not be placed, (N,).
        single: That environment.
    """

    def __init__(self, states: Sequence[State], common: Common, single: GpuClusterEnv) -> None:
        size, space = len(states), single.space_of_parts
        self.states, self.invalid = list(states), np.zeros(size, dtype=np.int64)
        self.single, self._common, self._views_in_use = single, common, False
        self._places = part_places(space, single.option_features, size, flat=single.flat, others=single.features)
        self._features, self._choices = single.parts[-1][1].stop, 1 + len(single.configurations)
        self._handles = tuple(new_handles(size) for _ in range(3))  # of boards, hidden parts and notes
        self._use_one_build()
        self._notes = [Notes.of(state.board, common, single.job_features) for state in self.states]
        words = (state.words + notes.words for state, notes in zip(self.states, self._notes, strict=True))
        self._memory = aligned(size, max(words))
        self._move(range(size))

    def begin(self, states: Mapping[int, State]) -> None:
        """Replace some runs by new ones, and run these to their first rounds."""
        for i, state in states.items():
            self.states[i] = state
        changed = self._use_one_build()
        for i, state in states.items():
            self._notes[i] = Notes.of(state.board, self._common, self.single.job_features)
        self._move(range(len(self.states)) if changed else states)
        for i in states:
            self.invalid[i] = 0
            run_to_round(self.states[i].board, self.states[i].hidden)

    def step(self, actions: NDArray[np.int64]) -> Seen:
        """Apply an action to each run, unless it is `LOOK`, and observe all. What it returns is not written again."""
        size = len(actions)
        seen = Seen(
            numbers=np.empty(size * self._features, np.float32),
            mask=np.empty((size, self._choices), np.int8),
            money=np.empty((MONEY_ROWS, size)),
            current_job=np.empty(size, np.int64),
            idle=np.empty(size, np.int64),
        )
        self._step(actions, seen)
        return seen

    def look(self) -> Seen:
        return self.step(np.full(len(self.invalid), LOOK))

    def look_again(self, seen: Seen, some: NDArray[np.int64]) -> None:
        actions = np.full(len(seen.current_job), SKIP)
        actions[some] = LOOK
        self._step(actions, seen)

    def views(self) -> tuple[View, ...]:
        """Return the views of all runs: observations are then recounted, since a view may change the state."""
        self._views_in_use = True
        return tuple(state.view for state in self.states)

    def masks_and_jobs(self) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
        """Return what can be placed now in each run, (N, 1 + C), and its current job, -1 at the end, (N,)."""
        masks = np.empty((len(self.invalid), self._choices), np.int8)
        current_job = np.empty(len(masks), np.int64)
        mask_all(self._handles[0], masks, current_job, self.states[0].board)
        return masks.view(np.bool_), current_job

    def observations(self, seen: Seen) -> Observation:
        """Return the batched observations: a row per environment."""
        size, numbers = len(seen.current_job), seen.numbers
        if self.single.flat:
            return numbers.reshape(size, -1)
        return {
            name: numbers[size * where.start : size * where.stop].reshape(size, -1) for name, where in self.single.parts
        }

    def __getstate__(self) -> dict[str, Any]:
        """Return what a copy is made from: its handles are those of its own runs."""
        return {name: getattr(self, name) for name in ("states", "_common", "single", "invalid", "_views_in_use")}

    def __setstate__(self, values: Mapping[str, Any]) -> None:
        self.__init__(values["states"], values["_common"], values["single"])  # type: ignore[misc]
        self.invalid[:], self._views_in_use = values["invalid"], values["_views_in_use"]

    def _step(self, actions: NDArray[np.int64], seen: Seen) -> None:
        for notes in self._notes if self._views_in_use else ():
            notes.forget()
        work(actions, tuple(seen), *self._stable)

    def _use_one_build(self) -> bool:
        """Let all runs use one build of the compiled code, the smallest for all; return whether a board has changed."""
        builds = {type(state.board) for state in self.states}
        if len(builds) == 1:
            return False
        build = common_build(builds)
        for state in self.states:
            state.use_build(build)
        return True

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
        self._stable = self._places, self._handles, self.invalid, self.states[0].board, self.states[0].hidden


def infos_of(
    runs: EpisodeRuns, seen: Seen, stalled: NDArray[np.bool_], some: NDArray[np.bool_] | None = None
) -> dict[str, Any]:
    """Return the infos of all environments, or of `some`, (N,).

    Returns:
        An array for each key of a single environment's info, 0 where it is of none of `some`; and `_key`, bool (N,):
        whose it is.
    """
    money, rate, factored = seen.money, runs.single.discount_rate, runs.single.factored
    infos: dict[str, Any] = {
        "action_mask": seen.mask if factored is None else factored.masks(seen.mask),
        "job": seen.current_job,
        "time_s": money[TIME],
        "energy_eur": money[ENERGY],
        "tardiness_eur": money[TARDINESS],
        "total_energy_eur": money[TOTAL_ENERGY],
        "total_tardiness_eur": money[TOTAL_TARDINESS],
        "invalid_actions": runs.invalid.copy(),
        "stalled": stalled.copy(),
        "discount": np.exp(-rate * money[PASSED]) if rate > 0.0 else np.ones(len(stalled)),
    }
    if some is not None:
        for key, value in infos.items():
            infos[key] = np.zeros_like(value)
            infos[key][some] = value[some]
    there = np.empty((len(infos), len(stalled)), dtype=np.bool_)
    there[:] = True if some is None else some
    return infos | {f"_{key}": row for key, row in zip(infos, there, strict=True)}


def final_infos_of(
    runs: EpisodeRuns, seen: Seen, stalled: NDArray[np.bool_], ended: NDArray[np.bool_]
) -> dict[str, Any]:
    """Return copies of the last observations and infos of the episodes that ended in this step."""
    last, observations = np.full(len(ended), None, dtype=np.object_), runs.observations(seen)
    parts = observations if isinstance(observations, dict) else {"": observations}
    for i in np.flatnonzero(ended):
        own = {key: rows[i].copy() for key, rows in parts.items()}
        last[i] = own.get("", own)
    infos = infos_of(runs, seen, stalled, ended)
    return {"final_obs": last, "_final_obs": ended.copy(), "final_info": infos, "_final_info": ended.copy()}
