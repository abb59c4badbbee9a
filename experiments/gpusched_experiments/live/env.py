"""The environment on a cluster that runs: an agent that was trained in the simulator decides there, step by step."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gpusched_env.envs.env import GpuClusterEnv
from gpusched_env.observation import Notes
from gpusched_experiments.live.rounds import Cluster, LiveRounds

if TYPE_CHECKING:
    from gpusched_env.model import Instance


class LiveEnv(GpuClusterEnv):
    """`GpuClusterEnv` with the same spaces on a cluster that runs."""

    def __init__(self, cluster: Cluster, *args: Any, every_s: float | None = None, **keywords: Any) -> None:
        self.cluster = cluster
        self._every_s = np.inf if every_s is None else every_s
        super().__init__(*args, **keywords)

    def _first_round(self) -> None:
        instance: Instance = self._state.instance
        self.cluster.begin(instance, 0)
        self._rounds = LiveRounds(self.cluster, instance, self.asking, self._every_s)
        self._show(self._rounds.first())

    def _next_round(self) -> None:
        self._show(self._rounds.next())

    def _show(self, state: Any) -> None:
        self._state = state
        self._notes = Notes.of(state.board, job_features=self.job_features)
