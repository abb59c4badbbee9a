"""The adaptation environment: a step sets the controls of STS-X for some rounds."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from gpusched_baselines.adaptation_env.controls import ROUNDS, action_array, control_count, control_names
from gpusched_baselines.adaptation_env.observation import feature_names
from gpusched_baselines.adaptation_env.run import BASE_RUNS, AdaptedRun, BaseRun, full_cluster_eur_per_h
from gpusched_env import rendering
from gpusched_env.envs.env import RENDER_MODES, check_render_mode
from gpusched_env.envs.seeds import Seeds, seed_round
from gpusched_env.envs.source import check_types, draw_seed, source_of, takes_parameters_of, types_of
from gpusched_env.errors import InputError
from gpusched_env.model import Instance, checks
from gpusched_env.simulator.kernels import at
from gpusched_env.workload import Scenario

FIRST_WORKLOAD = 100_000
"""The first of the seeds from which episodes are drawn, as for the training seeds of tracks."""
WORKLOADS = 60
REWARDS = ("saving", "waste", "cost")
OPTIONS = ("workload", "instance")
SHOWN = 3
"""Controls that pictures name."""


class GpuAdaptationEnv(gymnasium.Env[Any, Any]):
    """Set parameters of STS-X, the controls, in every step while STS-X schedules a cluster.

    A step sets the controls, and STS-X decides `rounds` rounds with them. There is a round at every event: a
    submission, the end of a job, or the end of a wait.

    Action: `Box(-1, 1, (2 V + 8,))` for V GPU types (with `controls="jobs"` 35 more, with `energy` 5);
    `env.unwrapped.controls` names its numbers. Each is the logarithm of a factor over its largest value, so 0 changes
    nothing: an action of 0 in every step is STS-X, to the last bit. Numbers outside [-1, 1] are clipped.

    Observation: `Box(-1, 1, (26 + 6 V + 17 K,))`, float32, with K `job_features` (with `controls="energy"` 23 more);
    `env.unwrapped.features` names its numbers. All 0 at the end.

    Reward, over the cost of the full cluster in an hour (`reward_scale_eur`):

    - `saving`: the waste of STS-X alone on the same workload until the same time, less that of the agent, since the
      last step. Over an episode it sums to the cost of STS-X less that of the agent.
    - `waste`: minus the waste of the agent. Over an episode it sums to a constant of the instance minus the cost.
    - `cost`: minus energy cost and tardiness cost since the last step.

    Waste is the cost beyond the unavoidable cost: see `gpusched_baselines.adaptation_env.run.waste_until_now`. It is
    computed with the epochs that jobs *need*, which no policy knows and no observation shows. Rewards of a training may
    use them, since over an episode they change only a constant.

    Episode: one workload; terminated when all jobs are done, never truncated.

    Args:
        scenario: Name of a built-in scenario, path of a scenario file, or a `Scenario`.
        settings: New values of the scenario's settings by dotted name, such as `{"cluster.nodes": 20}`.
        instance: An instance that every episode replays. `scenario` and `settings` are then not used.
        rounds: Rounds of a step, ≥ 1.
        reward: `saving`, `waste` or `cost`.
        controls: `round`: the same for all jobs; `jobs`: also coefficients of seven features of a job; `energy`: those
            of `round` and five for prices that change and a cap, whose features are then observed too.
        job_features: Number K of the jobs with the least slack whose features are observed, each in a row, ≥ 0.
        seeds: The workloads that episodes without a seed go round, as for `GpuClusterEnv`; None: see `workloads`.
        workloads: Without a seed an episode is one of this number of workloads, drawn at random: those with the seeds
            from `FIRST_WORKLOAD` on, ≥ 1. So STS-X's own run of each is made once. None: any seed from
            `FIRST_SAMPLED_SEED` on.
        render_mode: None, `ansi` or `rgb_array`.

    Attributes:
        controls: Names of the numbers of an action.
        features: Names of the numbers of an observation.
        reward_scale_eur: The cost of a reward of 1 [€]: that of the full cluster in an hour; 1 where energy is free.

    Raises:
        InputError: A parameter is out of its range.
    """

    metadata = {"render_modes": list(RENDER_MODES), "render_fps": 8}  # noqa: RUF012 - as gymnasium declares it

    @takes_parameters_of()
    def __init__(
        self,
        scenario: str | Path | Scenario = "default",
        *,
        settings: Mapping[str, object] | None = None,
        instance: Instance | None = None,
        seeds: Seeds = None,
        rounds: int = ROUNDS,
        reward: str = "saving",
        controls: str = "round",
        job_features: int = 0,
        workloads: int | None = WORKLOADS,
        render_mode: str | None = None,
    ) -> None:
        check_render_mode(render_mode)
        if reward not in REWARDS:
            raise InputError("reward", reward, f"one of {', '.join(REWARDS)}")
        self.rounds, self.reward, self.render_mode = checks.whole("rounds", rounds), reward, render_mode
        self.workloads = None if workloads is None else checks.whole("workloads", workloads)
        self.source = source_of(scenario, settings, instance, types_of)
        self.seeds = seed_round(seeds, scenario, self.source)
        if seeds is not None and workloads != WORKLOADS:
            raise InputError("workloads", workloads, f"{WORKLOADS}, not given together with seeds")
        self._source_key = self.source.identity()
        self._instance = self.source.make(0)
        types = self._types = types_of(self._instance)
        control_count(len(types), controls)
        checks.whole("job_features", job_features, 0)
        self.controls, self._set = control_names(types, controls), controls
        self.features = feature_names(types, job_features, controls)
        self.action_space = spaces.Box(-1.0, 1.0, (len(self.controls),), np.float32)
        self.observation_space = spaces.Box(-1.0, 1.0, (len(self.features),), np.float32)
        self.reward_scale_eur = 1.0
        self._run: AdaptedRun | None = None
        self._base: BaseRun | None = None
        self._frames: rendering.GanttFrames | None = None
        self._actions: list[NDArray[np.float64]] = []  # of this episode
        self._workload = -1
        self._key: tuple[str, int] | None = None  # identifies the workload; None: given to `reset`
        self._worth = 0.0  # sum of the rewards until now [€], up to a constant
        self._paid = 0.0, 0.0  # energy and tardiness cost in the steps until now [€]

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.float32], dict[str, Any]]:
        """Begin an episode.

        Args:
            seed: The episode runs the workload of this seed, ≥ 0, as `gpusched compare --seeds` does; without one, see
                `workloads`. With `seeds` it chooses where among these the environment goes on, as in `GpuClusterEnv`.
            options: `{"workload": seed}` runs the workload of a seed, and changes neither the environment's generator
                nor which of `seeds` comes next;
                `{"instance": instance}` replays an instance with the GPU types of the scenario.

        Returns:
            The first observation, and info (see `step`).

        Raises:
            InputError: A seed or an option is not allowed.
        """
        seed = None if seed is None else checks.seed(seed)
        super().reset(seed=seed)
        given = options or {}
        for name in given:
            if name not in OPTIONS or len(given) > 1:
                raise InputError("options", name, f"one of {', '.join(OPTIONS)}")
        if self.seeds is not None and seed is not None:
            self.seeds.go_to(seed)
        self._begin(given, seed)
        return self._observe(), self._info(0.0, 0.0, 0)

    def step(self, action: Any) -> tuple[NDArray[np.float32], float, bool, bool, dict[str, Any]]:
        """Set the controls; STS-X then decides `rounds` rounds.

        Args:
            action: The controls, (2 V + 8,), with other `controls` more: as many as `controls` has names.

        Returns:
            Observation, reward, terminated, False, and info: `time_s`; `energy_eur` and `tardiness_eur` of this step;
            `total_energy_eur`, `total_tardiness_eur` and `total_eur` of the episode; `rounds` of this step; `workload`,
            its seed, -1 for an instance; and at the end `base_total_eur`, the cost of STS-X alone on it.

        Raises:
            InputError: The action is not as many finite numbers as there are controls.
            StalledError: Every job waits for ever.
            gymnasium.error.ResetNeeded: The episode is over, or none has begun.
        """
        run = self._run
        if run is None or run.over:
            raise gymnasium.error.ResetNeeded("no episode is running: call reset()")
        chosen = action_array(action, len(self.controls))
        (energy, tardiness), before = self._paid, self._worth
        rounds = run.decide(chosen, self.rounds)
        self._actions.append(chosen)
        self._worth, self._paid = self._measure(), run.costs()
        info = self._info(self._paid[0] - energy, self._paid[1] - tardiness, rounds)
        return self._observe(), (self._worth - before) / self.reward_scale_eur, run.over, False, info

    def render(self) -> Any:
        """Draw the run so far with the largest of the last controls: a text, or a Gantt chart, uint8 (H, W, 3)."""
        if self._run is None or self.render_mode is None:
            return None
        if self.render_mode == "ansi":
            return f"{rendering.render_text(self._run.state)}\n{self._controls_text()}"
        self._frames = self._frames or rendering.GanttFrames("STS-X with controls")
        self._frames.note = self._controls_text()
        return self._frames.frame(self._run.state)

    def _controls_text(self) -> str:
        """Name the largest of the last action's numbers, as they are clipped."""
        last = np.clip(self._actions[-1], -1.0, 1.0) if self._actions else np.zeros(len(self.controls))
        order = [k for k in np.argsort(-np.abs(last), kind="stable").tolist() if abs(last[k]) >= 0.005]
        if not order:
            return f"controls: all {len(last)} are 0"
        named = "; ".join(f"{self.controls[k]} {last[k]:+.2f}" for k in order[:SHOWN])
        return f"controls: {named}" + (f"; {len(order) - SHOWN} smaller" if len(order) > SHOWN else "")

    @property
    def instance(self) -> Instance:
        """Return the instance of this episode."""
        return self._instance

    def base_run(self) -> BaseRun:
        """Return the run of STS-X alone on the workload of this episode; it is made at the first call."""
        if self._base is None:
            known = self._key is not None
            self._base = BASE_RUNS.get(self._key, self._instance) if known else BaseRun.of(self._instance)
        return self._base

    def get_state(self) -> dict[str, NDArray[Any]]:
        """Return the state for the next steps, as plain arrays: workload, place in `seeds`, actions and generator.

        Raises:
            InputError: The episode replays an instance that `reset` was given.
            gymnasium.error.ResetNeeded: No episode has begun.
        """
        if self._run is None:
            raise gymnasium.error.ResetNeeded("no episode is running: call reset()")
        if self._key is None:
            raise InputError("workload", self._workload, "a workload of a seed: an instance given to reset is not kept")
        generator = json.dumps(self.np_random.bit_generator.state).encode()
        return {
            "workload": np.array([self._workload]),
            "place": np.array([0 if self.seeds is None else self.seeds.place]),
            "actions": np.array(self._actions, dtype=np.float64).reshape(-1, len(self.controls)),
            "generator": np.frombuffer(generator, np.uint8),
        }

    def set_state(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Continue exactly from a state of `get_state`: the actions of the episode are executed again.

        Raises:
            InputError: It is not such a state, or that of an environment with other arguments.
        """
        try:
            workload, place = (int(np.asarray(state[name]).item()) for name in ("workload", "place"))
            actions = np.asarray(state["actions"], dtype=np.float64)
            self.np_random.bit_generator.state = json.loads(bytes(state["generator"]))
        except (KeyError, TypeError, ValueError) as error:
            raise InputError("state", sorted(state), "what get_state returned") from error
        if actions.shape[1:] != (len(self.controls),):
            raise InputError("state['actions']", actions.shape, f"actions of {len(self.controls)} controls")
        self._begin({} if workload < 0 else {"workload": workload}, max(0, workload))
        if self.seeds is not None:
            self.seeds.place = place % len(self.seeds.seeds)
        run: Any = self._run
        for action in actions:
            if run.over:
                raise InputError("state['actions']", len(actions), "no more actions than the episode has steps")
            run.decide(action, self.rounds)
            self._worth, self._paid = self._measure(), run.costs()
        self._actions = list(actions)

    def _begin(self, given: Mapping[str, Any], seed: int | None) -> None:
        instance = given.get("instance")
        if instance is None:
            chosen = checks.seed(given["workload"], "options['workload']") if given else self._chosen(seed)
            self._workload = -1 if self.source.scenario is None else chosen
            self._key = self._source_key, self._workload
            self._instance = self.source.make(chosen)
        else:
            check_types(instance, self._types)
            self._workload, self._instance, self._key = -1, instance, None
        self._run, self._base = AdaptedRun(self._instance, record=self.render_mode is not None), None
        self._actions = []
        self.reward_scale_eur = full_cluster_eur_per_h(self._run.state.board)
        self._worth, self._paid = 0.0 if self.reward == "cost" else self._measure(), (0.0, 0.0)

    def _chosen(self, seed: int | None) -> int:
        if self.seeds is not None:
            return self.seeds.take()
        if seed is not None:
            return seed
        if self.workloads is None:
            return draw_seed(self.np_random)
        return FIRST_WORKLOAD + int(self.np_random.integers(self.workloads))

    def _measure(self) -> float:
        run: Any = self._run
        if self.reward == "cost":
            return -sum(run.costs())
        if self.reward == "waste":
            return -run.waste()
        base = self.base_run()
        return (base.waste_eur[-1] if run.over else base.waste_at(run.state.board.clock[at.NOW])) - run.waste()

    def _observe(self) -> NDArray[np.float32]:
        run: Any = self._run
        seen = np.zeros(len(self.features))
        run.observe(seen, self._set)
        return seen.astype(np.float32)

    def _info(self, energy_eur: float, tardiness_eur: float, rounds: int) -> dict[str, Any]:
        run: Any = self._run
        clock = run.state.board.clock
        info = {
            "time_s": float(clock[at.NOW]),
            "energy_eur": energy_eur,
            "tardiness_eur": tardiness_eur,
            "total_energy_eur": float(clock[at.BILL]),
            "total_tardiness_eur": float(clock[at.TARDINESS_COST]),
            "total_eur": float(clock[at.BILL] + clock[at.TARDINESS_COST]),
            "rounds": rounds,
            "workload": self._workload,
        }
        return info | {"base_total_eur": self.base_run().total_eur} if run.over else info
