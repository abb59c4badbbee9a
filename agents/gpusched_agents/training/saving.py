"""The reward of agents that decide job by job: what they save against STS-X alone on the same workload."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gpusched_baselines.adaptation_env.run import BaseRun, full_cluster_eur_per_h, waste_until_now
from gpusched_env.simulator import layout as at

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from gpusched_env.simulator import State


class SavingMeter:
    """A meter of the saving in many environments at once: the waste of STS-X less that of the agent.

    It is the reward `saving` of `GpuAdaptationEnv`, for steps of one decision: over an episode it sums to the cost of
    STS-X less that of the agent, and a step within a round has 0. Every new workload is first run by STS-X.

    Args:
        states: The present states of the environments.

    Attributes:
        passed_s: How far the last step moved the time of every environment [s], (N,).
    """

    def __init__(self, states: Sequence[State]) -> None:
        size = len(states)
        self.passed_s = np.zeros(size)
        self._now_s, self._saved_eur, self._scale_eur = np.zeros(size), np.zeros(size), np.ones(size)
        self._bases = [self._begin(i, state) for i, state in enumerate(states)]

    def rewards(
        self, states: Sequence[State], ended: NDArray[np.bool_], infos: Sequence[Mapping[str, Any]]
    ) -> NDArray[np.float32]:
        """Return the rewards of a step, over the cost of the full cluster in an hour, (N,).

        Args:
            states: The states after the step; where an episode ended, at the beginning of the next one.
            ended: Where an episode ended, (N,).
            infos: The infos of a `SchedulerVecEnv`; where an episode ended, `info["episode"]["r"]` becomes its sum.
        """
        rewards = np.zeros(len(states), np.float32)
        self.passed_s = np.zeros(len(states))
        for i, state in enumerate(states):
            now_s = infos[i]["time_s"] if ended[i] else state.board.clock[at.NOW]
            if now_s > self._now_s[i] or ended[i]:
                saved = self._saved_at_end(i, infos[i]) if ended[i] else self._saved(i, state)
                rewards[i] = (saved - self._saved_eur[i]) / self._scale_eur[i]
                self.passed_s[i] = now_s - self._now_s[i]
                self._now_s[i], self._saved_eur[i] = now_s, saved
            if ended[i]:
                infos[i]["episode"]["r"] = round(float(self._saved_eur[i] / self._scale_eur[i]), 6)
                self._bases[i] = self._begin(i, state)
        return rewards

    def _begin(self, i: int, state: State) -> BaseRun:
        """Begin to measure an episode: return the run of STS-X on its workload."""
        base = BaseRun.of(state.instance)
        self._now_s[i] = state.board.clock[at.NOW]
        self._scale_eur[i] = full_cluster_eur_per_h(state.board)
        self._saved_eur[i] = base.waste_at(self._now_s[i]) - waste_until_now(state.board, state.hidden)
        return base

    def _saved(self, i: int, state: State) -> float:
        """Return what has been saved until now [€]."""
        return self._bases[i].waste_at(state.board.clock[at.NOW]) - float(waste_until_now(state.board, state.hidden))

    def _saved_at_end(self, i: int, info: Mapping[str, Any]) -> float:
        """Return what an episode saved [€]; of one in which all jobs waited too long, until then.

        Then the last step did no work: the waste grew by its costs. What it made certain of later tardiness is left
        out; the critic's value of the rest has that.
        """
        base = self._bases[i]
        if not info["stalled"]:
            return base.total_eur - float(info["total_energy_eur"] + info["total_tardiness_eur"])
        grew = base.waste_at(info["time_s"]) - base.waste_at(self._now_s[i])
        return float(self._saved_eur[i]) + grew - float(info["energy_eur"] + info["tardiness_eur"])
