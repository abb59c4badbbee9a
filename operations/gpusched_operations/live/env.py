"""The environment on a Slurm cluster that runs: an agent that was trained in the simulator decides there."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import gymnasium
import numpy as np

from gpusched_env.envs.env import GpuClusterEnv
from gpusched_env.errors import InputError
from gpusched_env.mechanisms.cap.model import PowerCap
from gpusched_env.model import checks
from gpusched_env.observation import Notes
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.builds import common_build
from gpusched_operations.live.rounds import LiveRounds, RunningCluster
from gpusched_operations.live.slurm_cluster import SlurmCluster

if TYPE_CHECKING:
    from gpusched_env.model import Instance
    from gpusched_env.simulator import Result, State
    from gpusched_env.workload import Scenario
    from gpusched_operations.live.emulated import EmulatedCluster

WORKLOADS = ("scenario", "own")


class LiveSlurmEnv(GpuClusterEnv):
    """Schedule training jobs on a Slurm cluster that runs, with the spaces of `GpuClusterEnv`. It is slow: it waits.

    A step decides for one job, as there. After the last job of a round Slurm is told what was decided; the next round
    begins when a job was submitted or has ended, or at a timer. An episode ends when all jobs have ended.

    Rewards are minus what the model says that the jobs, as they really ran, cost since the previous step.

    Args:
        scenario: Whose GPU types, configurations and prices hold, and whose reward scale, as for `GpuClusterEnv`. The
            cluster may have other numbers of nodes.
        conf: The cluster: path of its slurm.conf, or an `EmulatedCluster`, which is started if it does not run, and
            then runs until `close`; or any other `RunningCluster`.
        workload: `scenario`: every episode submits the jobs of the scenario's instance of its seed, with made-up
            training; other jobs are left alone. `own`: the jobs of the partition that opt in, as rules and comments
            describe them; nothing is submitted, and the seed is not used.
        partition: The partition.
        rules: A file of rules that describe jobs (jobs.toml), with `workload="own"`.
        speed: With `workload="scenario"`, seconds of the model in a second of the cluster, > 0.
        every_s: Longest time between two rounds [s of the model], > 0; None: rounds are at events only.
        poll_s: Time between two looks at the cluster [s], > 0.
        step_limit: As for `GpuClusterEnv`, but None by default.
        settings: All other arguments of `GpuClusterEnv`, such as `settings`, `instance` and `flat`.

    Raises:
        InputError: An argument is out of its range, or Slurm is not installed.
    """

    def __init__(
        self,
        scenario: str | Path | Scenario = "default",
        *,
        conf: str | Path | EmulatedCluster | RunningCluster,
        workload: str = "scenario",
        partition: str = "gpu",
        rules: str | Path | None = None,
        speed: float = 600.0,
        every_s: float | None = None,
        poll_s: float = 0.5,
        step_limit: int | Literal["track"] | None = None,
        **settings: Any,
    ) -> None:
        if workload not in WORKLOADS:
            raise InputError("workload", workload, f"one of {', '.join(WORKLOADS)}")
        if rules is not None and workload != "own":
            raise InputError("rules", str(rules), "None: the scenario describes the jobs")
        super().__init__(scenario, step_limit=step_limit, **settings)
        instance = self._state.instance
        if instance.of(PowerCap) is not None:
            raise InputError("scenario", self.source.name, "one without a cap on the power of the site")
        if instance.find("prices") is not None and workload == "own":
            raise InputError("scenario", self.source.name, "one with a price that does not change: its days are others")
        self._every_s = np.inf if every_s is None else checks.duration("every_s", every_s)
        checks.duration("speed", speed), checks.duration("poll_s", poll_s)
        self.cluster: RunningCluster
        if isinstance(conf, RunningCluster):
            self.cluster = conf
        else:
            path = None if rules is None else Path(rules)
            self.cluster = SlurmCluster(conf, workload == "scenario", partition, path, speed, poll_s)
        self._rounds: LiveRounds | None = None

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Begin an episode, as `GpuClusterEnv` does; the cluster is started if need be.

        Returns:
            The first observation, and info (see `step`), with `events`.

        Raises:
            InputError: As there; or the cluster has other GPU types than the scenario.
        """
        observation, info = super().reset(seed=seed, options=options)
        return observation, info | {"events": self.cluster.events()}

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Decide for the current job, as `GpuClusterEnv` does; after the last job of a round wait for the next one.

        Returns:
            As there; info also has `events`: what happened on the cluster since the previous step, in the form of a
            journal's lines, such as a job that failed, or an action that Slurm refused.

        Raises:
            InputError: As there.
        """
        observation, reward, terminated, truncated, info = super().step(action)
        return observation, reward, terminated, truncated, info | {"events": self.cluster.events()}

    def result(self, policy: str = "agent", seed: int = 0) -> Result:
        """Return the result of a finished episode, as the jobs really ran; epochs in its log are the model's.

        Raises:
            gymnasium.error.ResetNeeded: The episode is not over, was truncated, or none has begun.
        """
        if self._running or self._rounds is None:
            raise gymnasium.error.ResetNeeded("the episode is not over: step() until terminated")
        return self._rounds.result(policy, seed)

    def write_run(self, out: str | Path) -> list[str]:
        """Write the run of a finished episode as a folder, which `gpusched audit` and `report` read.

        Returns:
            Lines for the user: what was written, and which jobs are not in it.
        """
        if not isinstance(self.cluster, SlurmCluster):
            raise InputError("cluster", type(self.cluster).__name__, "a Slurm cluster")
        return self.cluster.write_run(Path(out))

    def close(self) -> None:
        """Leave the cluster as it would be without the environment: no job is held; an emulated cluster is stopped."""
        self.cluster.close()
        super().close()

    def _first_round(self) -> None:
        instance: Instance = self._state.instance
        self.cluster.begin(instance)
        self._rounds = LiveRounds(self.cluster, instance, self.asking, self._every_s)
        self._show(self._rounds.first())

    def _next_round(self) -> None:
        if self._rounds is not None:
            self._show(self._rounds.next())

    def _show(self, state: State) -> None:
        paid = [at.PAID_EUR, at.PAID_TARDINESS, at.PAID_KG]
        state.board.clock[paid] = self._state.board.clock[paid]  # each round has a state of its own
        state.use_build(common_build({type(state.board), self._build}))
        self._state = state
        self._notes = Notes.of(state.board, job_features=self.job_features)
