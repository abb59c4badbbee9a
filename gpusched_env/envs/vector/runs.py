"""The present runs of N environments: batched state, and the compiled calls that move it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gpusched_env.envs.vector.arrays import arrays_of
from gpusched_env.envs.vector.batch import SITE, Batch
from gpusched_env.envs.vector.kernels import LOOK, MONEY_ROWS, SKIP, Seen, mask_all
from gpusched_env.observation import CLUSTER_FEATURES, JOB_FEATURES, OPTION_FEATURES, QUEUE_FEATURES
from gpusched_env.observation.spare import SPARE_COLUMNS
from gpusched_env.observation.tallies import ROUND, SUM_COLUMNS, TALLY_COLUMNS
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.decisions import run_to_round

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from numpy.typing import NDArray

    from gpusched_env.envs.vector.batch import Shapes
    from gpusched_env.envs.vector.threads import Crew
    from gpusched_env.simulator import State


class Runs:
    """N runs side by side, none of which keeps its intervals.

    Args:
        states: New runs, one for each environment.
        preemption: Whether a round begins from an empty cluster.
        kind: Order in which a round asks (`gpusched_env.simulator.rounds`).
        crew: The threads that share the work.
        shapes: Least shapes of the batch's arrays.

    Attributes:
        batch: The states, in batched arrays.
        invalid: Actions of each episode that could not be placed, (N,).
    """

    def __init__(
        self, states: Sequence[State], *, preemption: bool, kind: int, crew: Crew, shapes: Shapes | None = None
    ) -> None:
        self.batch = Batch(states, shapes)
        self.invalid = np.zeros(len(states), dtype=np.int64)
        self._preemption, self._kind, self._crew = preemption, kind, crew
        self._log = np.empty((0, at.LOG_COLUMNS))
        self._gpu_types = len(states[0].instance.gpu_types)
        self._configurations = len(states[0].instance.configurations)
        self._tallies = np.zeros((len(states), TALLY_COLUMNS + self._gpu_types), dtype=np.int64)
        self._sums = np.zeros((len(states), SUM_COLUMNS))
        self._present: tuple[Any, ...] = (None, None, None)
        self._work: tuple[Any, ...] = ()
        self.forget()

    def begin(self, states: Mapping[int, State]) -> None:
        """Replace runs by new ones, and run those to their first round."""
        self.batch.put(states)
        self.open(states)

    def open(self, environments: Iterable[int]) -> None:
        """Run new runs to their first round."""
        for i in environments:
            self.invalid[i] = 0
            self._tallies[i, ROUND] = -1
            state = self.batch.states[i]
            own, view = arrays_of(state), state.view
            run_to_round(
                own.jobs,
                own.hidden,
                own.nodes,
                view.configs,
                own.room,
                own.tau,
                view.node_rate,
                own.slowdown,
                own.planned,
                own.clock,
                own.counts,
                own.active,
                self._log,
                own.keys,
                own.order,
                self._preemption,
                self._kind,
            )

    def step(self, actions: NDArray[np.int64]) -> Seen:
        """Apply an action to each run, unless it is `LOOK`, and observe all. What it returns is not written again."""
        size, configurations, types = len(actions), self._configurations, self._gpu_types
        seen = Seen(
            job=np.empty((size, len(JOB_FEATURES)), np.float32),
            options=np.empty((size, configurations, len(OPTION_FEATURES)), np.float32),
            cluster=np.empty((size, types, len(CLUSTER_FEATURES)), np.float32),
            queue=np.empty((size, len(QUEUE_FEATURES)), np.float32),
            mask=np.empty((size, 1 + configurations), np.int8),
            money=np.empty((MONEY_ROWS, size)),
            at_hand=np.empty(size, np.int64),
        )
        self._crew.step(actions, seen, self._stable())
        return seen

    def look(self) -> Seen:
        """Observe all runs."""
        return self.step(np.full(len(self.invalid), LOOK))

    def look_again(self, seen: Seen, some: NDArray[np.int64]) -> None:
        """Observe some runs, by index, and overwrite their rows in `seen`."""
        actions = np.full(len(seen.at_hand), SKIP)
        actions[some] = LOOK
        self._crew.step(actions, seen, self._stable())

    def forget(self) -> None:
        """Let the next observations count anew, as they must when a round was changed from outside."""
        self._tallies[:, ROUND] = -1

    def masks(self) -> NDArray[np.bool_]:
        """Give what can be placed now, (N, 1 + C)."""
        masks = np.empty((len(self.invalid), 1 + self._configurations), np.int8)
        batch, sites = self.batch.arrays, self.batch.sites
        rows = self.batch.sizes[:, SITE].copy()
        mask_all(rows, sites.arrays.configs, batch.room, batch.tau, batch.counts, batch.order, masks)
        return masks.view(np.bool_)

    def jobs_at_hand(self) -> NDArray[np.int64]:
        """Give the job at hand in every run, (N,); -1 where it is over."""
        arrays = self.batch.arrays
        asked, to_ask = arrays.counts[:, at.ASKED], arrays.counts[:, at.TO_ASK]
        last = arrays.order.shape[1] - 1
        jobs = arrays.order[np.arange(len(asked)), np.minimum(asked, last)]
        return np.where(asked < to_ask, jobs, -1)

    def _stable(self) -> tuple[Any, ...]:
        """Give what `work` takes beside actions and observations: the same tuple as long as arrays are the same."""
        batch, sites = self.batch, self.batch.sites.arrays
        present = (batch.arrays, sites, batch.bins.arrays)
        if any(a is not b for a, b in zip(present, self._present, strict=True)):
            self._present = present
            spare = np.empty((len(self.invalid), self._gpu_types, SPARE_COLUMNS + sites.node_rate.shape[2]), np.int64)
            self._work = (
                batch.sizes,
                *(tuple(arrays) for arrays in present),
                (self._tallies, self._sums, spare),
                self._log,
                self._preemption,
                self._kind,
                self.invalid,
            )
        return self._work
