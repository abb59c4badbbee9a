"""The environment: it connects instance, simulator, observation and reward; the kernels compute."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, Unpack

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from gpusched_env.envs.kernels import LOOK, act_and_look, part_places, write_groups
from gpusched_env.envs.source import (
    MAX_IDLE_REVIEWS,
    NEVER,
    OBJECTIVES,
    VECTOR,
    CostReward,
    Reward,
    action_index,
    check_reward,
    check_shape,
    draw_seed,
    finite_reward,
    limit_of,
    reward_space,
    shape_of,
    source_of,
    takes_parameters_of,
)
from gpusched_env.errors import InputError
from gpusched_env.model import Instance, checks
from gpusched_env.observation import (
    Notes,
    SharedFeatures,
    checked_groups,
    feature_names,
    flat_space,
    observation_space,
    option_count,
    part_slices,
    parts_of,
)
from gpusched_env.observation.features import MECHANISM_OF
from gpusched_env.observation.observe import write_mask
from gpusched_env.simulator import Asking, State
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.builds import with_mechanisms
from gpusched_env.simulator.policy import AskingSettings, environment_columns
from gpusched_env.simulator.rounds import commit_round, run_to_round
from gpusched_env.workload import Scenario, reward_scale_of, step_limit_of

if TYPE_CHECKING:
    from gpusched_env.envs.factored import FactoredActions
    from gpusched_env.envs.seeds import SeedRound, Seeds
    from gpusched_env.envs.source import AnyScenario, Source
    from gpusched_env.model import Configuration
    from gpusched_env.rendering import GanttFrames
    from gpusched_env.simulator import Result, View

Observation: TypeAlias = "dict[str, NDArray[np.float32]] | NDArray[np.float32]"
Seen: TypeAlias = tuple[int, float, float, float, float, float, float]
"""What `kernels.look` returns."""
ALLOWED_OPTIONS = ("instance",)
RENDER_MODES = ("ansi", "rgb_array")


def check_render_mode(mode: Any) -> None:
    if mode is not None and mode not in RENDER_MODES:
        allowed = f"None, {' or '.join(RENDER_MODES)}; human: by gymnasium.make, with the extra human (pygame)"
        raise InputError("render_mode", mode, allowed)


def _seed_round(seeds: Seeds, scenario: AnyScenario, source: Source) -> SeedRound | None:
    from gpusched_env.envs.seeds import seed_round  # noqa: PLC0415 - few need it

    return seed_round(seeds, scenario, source)


def _factored(configurations: Sequence[Configuration]) -> FactoredActions:
    from gpusched_env.envs.factored import FactoredActions  # noqa: PLC0415 - few need it

    return FactoredActions(configurations)


class GpuClusterEnv(gymnasium.Env[Any, Any]):
    """Schedule training jobs on a GPU cluster, one decision per job and round (`docs/design.md`).

    Action: `Discrete(1 + C)`; with 0 the current job waits, with a it gets configuration a - 1
    (`env.unwrapped.configurations`). An action that cannot be placed means wait; `info["invalid_actions"]` counts it.
    With `factored` it is `MultiDiscrete([1 + P, L])`: P kinds of GPUs, L power limits.

    Observation: a `Dict` of float32 boxes in [-1, 1], `job`, `options`, `cluster`, `queue` and, with `job_features`,
    `jobs`, or with `flat` one box that has them end to end; `feature_names` lists its numbers. `prices`, `cap` and
    `limits` come behind them if they are asked for.

    Reward: minus the cost that accrued since the previous step [€] / `reward_scale`.

    Episode: terminated when all jobs are done; truncated when every job has waited too long (`max_idle_reviews`), or
    after as many steps as `step_limit`.

    Args:
        scenario: Name of a built-in scenario, path of a scenario file, or a `Scenario`.
        settings: New values of the scenario's settings by dotted name, such as `{"cluster.nodes": 20}`; see
            `Scenario.replace`.
        instance: An instance, with any GPU types and configurations, that every episode replays, whatever its seed.
            `scenario` and `settings` are then left alone.
        seeds: The workloads that episodes without a seed go round: `training`, `validation` or `test`, those of the
            track or of scenarios, or their seeds; None: each episode draws its own. See `reset`.
        reward_scale: Cost that counts as a reward of -1 [€], > 0; None: that of the track, if `scenario` names one or
            is its file (an episode of EDF then returns about -10), else 1.
        step_limit: Steps after which an episode is truncated, ≥ 1; None: never; `track`: those of the track of
            `scenario`, if it has any. `max_episode_steps` of `gymnasium.make` is another limit; the smaller one holds.
        reward: A reward of your own, in place of the cost; then `reward_scale` must be left alone. With `vector`
            rewards are vectors for MO-Gymnasium, float64 (3,): minus energy cost [€], tardiness cost [€] and CO2 [kg].
        render_mode: None, `ansi` or `rgb_array`.
        max_idle_reviews: Rounds in a row after which an episode is truncated if before each of them nothing ran and
            nothing was still to be submitted, ≥ 1; None: never. Timers and other events count, however far apart.
        shared_features: Whether every configuration has the further features for shared clusters too: its speed if it
            were placed now, its priority, the cost of a switch, whether the job is opportunistic
            (`CO_RUNNER_FEATURES`). With `memory` also what memory it would have and how many other jobs on its GPU
            (`MEMORY_FEATURES`).
        job_features: Number K of the other active jobs with the most pressure whose features are observed, each in a
            row (`JOBS_FEATURES`), ≥ 0.
        price_features: Whether the prices of energy now and in the hours to come, as far as they are published, are
            observed (`features_of("prices")`), with carbon and the demand charge.
        cap_features: Whether the cap on the site's power is observed (`features_of("cap")`).
        limit_features: Whether what power limits save is observed, for every configuration (`features_of("limits")`).
        features: Mechanisms of other packages whose features are observed, each in a part by the last part of its
            name (`docs/add-a-mechanism.md`).
        flat: Whether observations are one vector, (F,).
        factored: Whether an action is two numbers, the GPUs and their power limit (`FactoredActions`).
        discount_rate: Rate ρ of `info["discount"]` [1/s], ≥ 0: a step that moves the clock by Δt seconds has
            exp(-ρ Δt), and one within a round has 1.
        asking: How rounds ask jobs: the settings of `gpusched_env.simulator.Asking` by name, `preemption` and others.

    Attributes:
        reward_scale: Cost that counts as a reward of -1 [€].
        reward_space: The space of vector rewards, which only they have; so has `reward_dim`, their number.

    Raises:
        InputError: A parameter is out of its range.
    """

    metadata = {  # noqa: RUF012 - gymnasium declares it as an instance variable
        "render_modes": list(RENDER_MODES),
        "render_fps": 8,
    }

    @takes_parameters_of(Asking)
    def __init__(
        self,
        scenario: str | Path | Scenario = "default",
        *,
        settings: Mapping[str, object] | None = None,
        instance: Instance | None = None,
        seeds: Seeds = None,
        reward_scale: float | None = None,
        step_limit: int | Literal["track"] | None = "track",
        reward: Reward | Literal["vector"] | None = None,
        render_mode: str | None = None,
        max_idle_reviews: int | None = MAX_IDLE_REVIEWS,
        shared_features: SharedFeatures = False,
        job_features: int = 0,
        price_features: bool = False,
        cap_features: bool = False,
        limit_features: bool = False,
        features: Sequence[str] = (),
        flat: bool = False,
        factored: bool = False,
        discount_rate: float = 0.0,
        **asking: Unpack[AskingSettings],
    ) -> None:
        check_render_mode(render_mode)
        check_reward(reward, reward_scale)
        if not isinstance(shared_features, bool) and shared_features != "memory":
            raise InputError("shared_features", shared_features, "True, False or memory")
        groups = {"prices": price_features, "cap": cap_features, "limits": limit_features}
        flags = {"flat": flat, "factored": factored, "price_features": price_features, "cap_features": cap_features}
        for name, flag in (flags | {"limit_features": limit_features}).items():
            if not isinstance(flag, bool):
                raise InputError(name, flag, "True or False")
        self.features = checked_groups(features)
        self.job_features = checks.whole("job_features", job_features, 0)
        self.max_idle_reviews = max_idle_reviews
        self.asking = Asking(**asking)
        self.render_mode = render_mode
        self.source = source_of(scenario, settings, instance)
        self.seeds = None if seeds is None else _seed_round(seeds, scenario, self.source)
        if reward_scale is None:
            reward_scale = reward_scale_of(scenario) if instance is None and reward is None else 1.0
        self._reward: Reward = CostReward(reward_scale) if reward is None or isinstance(reward, str) else reward
        self.has_objectives = reward == VECTOR
        if self.has_objectives:
            self.reward_space, self.reward_dim = reward_space(), len(OBJECTIVES)
        most = step_limit_of(scenario) if step_limit == "track" else step_limit
        self._step_limit = limit_of("step_limit", most)
        self.reward_scale, self.discount_rate = reward_scale, checks.not_negative("discount_rate", discount_rate)
        self.scenario: Scenario | None = self.source.scenario
        # Only builds with a mechanism write its features.
        own = tuple(name for name, wanted in groups.items() if wanted)
        self.groups = (*own, *self.features)
        self._build = with_mechanisms(
            ["shares"] * bool(shared_features) + [MECHANISM_OF[name] for name in own] + [*self.features]
        )
        self._begin(self.source.make(0))
        self.configurations = self._state.instance.configurations
        types = self._state.instance.gpu_types
        sizes = len(self.configurations), len(types)
        shown: dict[str, Any] = {"shared_features": shared_features, "job_features": job_features}
        space = observation_space(*sizes, **shown, groups=self.groups)
        flat_box = flat_space(space)
        self.observation_space: spaces.Space[Any] = flat_box if flat else space
        self.flat, self.option_features, self._shared_features = flat, option_count(shared_features), shared_features
        self.parts, self._features = tuple(zip(parts_of(space), part_slices(space), strict=True)), flat_box.shape
        self.space_of_parts, self._places = space, part_places(space, self.option_features, others=self.features)
        self._actions = 1 + len(self.configurations)
        self.action_space: spaces.Space[Any] = spaces.Discrete(self._actions)
        self.factored = _factored(self.configurations) if factored else None
        if self.factored is not None:
            self.action_space = self.factored.space
        self._shape = shape_of(self._state.instance)
        self._running = self._stalled = self._truncated = False
        self._invalid = self._steps = 0
        self._frames: GanttFrames | None = None

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Begin an episode.

        Args:
            seed: The episode runs the scenario's instance of this seed, ≥ 0 and < 2^63, as `gpusched compare --seeds`
                does; without a seed, the instance's seed is drawn from the environment's generator,
                `FIRST_SAMPLED_SEED` or above. An environment of one instance runs that. One with `seeds` runs only
                these, one after the other: a seed here chooses where it goes on, at this seed if it is one of them,
                else at place `seed` modulo their number.
            options: `{"instance": instance}` replays a given instance, with the GPU types and configurations of
                the scenario, or of the environment's own instance.

        Returns:
            The first observation, and info (see `step`).

        Raises:
            InputError: The seed is out of its range, an option is unknown, or the instance has other GPU types or
                configurations.
        """
        seed = None if seed is None else checks.seed(seed)
        super().reset(seed=seed)
        unknown = [key for key in options or {} if key not in ALLOWED_OPTIONS]
        if unknown:
            raise InputError("options", unknown[0], f"one of {', '.join(ALLOWED_OPTIONS)}")
        instance = (options or {}).get("instance")
        if self.seeds is not None and seed is not None:
            self.seeds.go_to(seed)
        if instance is None:
            instance = self.source.make(self._next_seed(seed))
        check_shape(instance, self._shape)
        self._begin(instance)
        self._first_round()
        self._running, self._stalled, self._truncated = self._jobs_to_ask(), False, False
        self._invalid = self._steps = 0
        observation, mask, seen = self._observe()
        return observation, self._info(mask, 0.0, seen)

    def step(self, action: np.int64 | int) -> tuple[Observation, Any, bool, bool, dict[str, Any]]:
        """Decide for the current job; after the last job of the round, time runs to the next one.

        Args:
            action: 0 = wait, a = configuration a - 1; with `factored` two numbers.

        Returns:
            Observation, reward, terminated, truncated, and info: `action_mask` (int8, as `action_masks`), `job` (index
            of the current job, -1 when terminated), `time_s`, `energy_eur` and `tardiness_eur` (accrued in this step),
            `total_energy_eur`, `total_tardiness_eur` and `invalid_actions` (of the episode), `stalled` (whether this
            step truncated it by `max_idle_reviews`), `discount` (see `discount_rate`).

        Raises:
            InputError: The action is not in the action space, or a reward of your own returns no finite number.
            gymnasium.error.ResetNeeded: The episode is over, or none has begun.
        """
        if not self._running or self._truncated:
            raise gymnasium.error.ResetNeeded("no episode is running: call reset()")
        numbers, mask = np.empty(self._features, np.float32), np.empty(self._actions, np.int8)
        placed, over, seen = self._look(self._chosen(action), numbers, mask)
        self._invalid += not placed
        self._steps += 1
        passed_s, before_s = 0.0, seen[1]
        if over:
            self._next_round()
            seen = self._look(LOOK, numbers, mask)[2]
            passed_s = seen[1] - before_s
            self._running = seen[0] >= 0
            self._stalled = bool(self._state.board.count[at.IDLE] >= self._idle_limit)
        self._truncated = self._stalled or self._steps >= self._step_limit
        if self.has_objectives:
            reward: Any = -np.array(seen[4:])
        else:
            reward = self._reward(seen[4], seen[5])
            reward = reward if type(reward) is float and isfinite(reward) else finite_reward(reward)
        return self._shown(numbers), reward, not self._running, self._truncated, self._info(mask, passed_s, seen)

    def action_masks(self) -> NDArray[np.bool_]:
        """Return which actions are possible now, (1 + C,), as `MaskablePPO` needs it; waiting is always allowed.

        With `factored` it is (1 + P + L,): the masks of both numbers end to end.
        """
        mask = self._mask().view(np.bool_)
        return mask if self.factored is None else self.factored.masks(mask)

    def render(self) -> Any:
        """Draw the run so far: a text (`ansi`), or a Gantt chart, uint8 (H, W, 3), one for each round (`rgb_array`)."""
        from gpusched_env import rendering  # noqa: PLC0415 - few need it

        if self.render_mode == "ansi":
            return rendering.render_text(self._state)
        if self.render_mode is None:
            gymnasium.logger.warn(
                "You are calling render method without specifying any render mode. You can specify the render_mode at "
                'initialization, e.g. gymnasium.make(..., render_mode="rgb_array")'
            )
            return None
        if self._frames is None:
            self._frames = rendering.GanttFrames()
        return self._frames.frame(self._state)

    def __str__(self) -> str:
        name, instance = super().__str__()[1:-1], self._state.instance  # type: ignore[no-untyped-call]
        return (
            f"<{name}: {self.source.name}, {len(instance.jobs)} jobs, {len(instance.nodes)} nodes, "
            f"{len(self.configurations)} configurations, {len(self.feature_names)} features>"
        )

    __repr__ = __str__

    @property
    def max_idle_reviews(self) -> int | None:
        """Idle reviews in a row after which an episode is truncated; None: never. It may be set at any time."""
        return None if self._idle_limit == NEVER else self._idle_limit

    @max_idle_reviews.setter
    def max_idle_reviews(self, value: int | None) -> None:
        self._idle_limit = limit_of("max_idle_reviews", value)

    @property
    def step_limit(self) -> int | None:
        """Steps after which an episode is truncated; None: never. It may be set at any time."""
        return None if self._step_limit == NEVER else self._step_limit

    @step_limit.setter
    def step_limit(self, value: int | None) -> None:
        self._step_limit = limit_of("step_limit", value)

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Names of the numbers of a flat observation, F of them, in the order of its parts."""
        configurations = (configuration.name for configuration in self.configurations)
        types = (gpu_type.name for gpu_type in self._state.instance.gpu_types)
        shared, rows = self._shared_features, self.job_features
        return feature_names(configurations, types, shared_features=shared, job_features=rows, groups=self.groups)

    @property
    def view(self) -> View:
        """The present state that policies may see."""
        self._is_viewed = True
        return self._state.view

    @property
    def job(self) -> int:
        """Index of the current job, -1 if the episode was terminated."""
        state = self._state
        return int(state.board.order[state.board.count[at.ASKED]]) if self._running else -1

    @property
    def instance(self) -> Instance:
        """The instance of this episode."""
        return self._state.instance

    def set_timer(self, job: int, time_s: float) -> None:
        """Ask for a round at `time_s` [s] on behalf of `job`.

        Raises:
            InputError: The job is not active, or the time is NaN.
        """
        self.view.set_timer(job, time_s)

    def result(self, policy: str = "agent", seed: int = 0) -> Result:
        """Return the result of a finished episode.

        Raises:
            gymnasium.error.ResetNeeded: The episode is not over, was truncated, or none has begun.
        """
        if self._running or self._state.board.count[at.DONE] == 0:
            raise gymnasium.error.ResetNeeded("the episode is not over: step() until terminated")
        from gpusched_env.simulator.result import Result  # noqa: PLC0415 - few need it

        return Result.of(self._state, policy, seed, float("nan"))

    def _next_seed(self, seed: int | None) -> int:
        if self.seeds is not None:
            return self.seeds.take()
        return draw_seed(self.np_random) if seed is None else seed

    def _begin(self, instance: Instance) -> None:
        columns = environment_columns(instance)
        self._state = State(instance, self.asking, memory_columns=columns, build=self._build)
        self._notes, self._is_viewed = Notes.of(self._state.board, job_features=self.job_features), False

    def _first_round(self) -> None:
        run_to_round(self._state.board, self._state.hidden)

    def _next_round(self) -> None:
        """Close the round, run to the next one, and open it: `rounds.decide` compiled would have all this in it."""
        state = self._state
        state.grow_arrays()
        commit_round(state.board, state.hidden)
        run_to_round(state.board, state.hidden)

    def _mask(self) -> NDArray[np.int8]:
        mask = np.zeros(self._actions, np.int8)
        mask[0] = 1
        if self._running:
            write_mask(self._state.board, self.job, mask)
        return mask

    def _chosen(self, action: Any) -> int:
        if self.factored is None:
            return action_index(action, self._actions)
        try:
            return int(self.factored.indices([action], self._mask()[None], np.ones(1, np.bool_))[0])
        except InputError as error:
            allowed = error.allowed.removesuffix(", one for each environment").replace("1 pairs", "a pair")
            raise InputError("action", action, allowed) from None

    def _jobs_to_ask(self) -> bool:
        count = self._state.board.count
        return bool(count[at.ASKED] < count[at.TO_ASK])

    def _observe(self) -> tuple[Observation, NDArray[np.int8], Seen]:
        numbers, mask = np.empty(self._features, np.float32), np.empty(self._actions, np.int8)
        _, _, seen = self._look(LOOK, numbers, mask, pays=False)
        return self._shown(numbers), mask, seen

    def _look(
        self, action: int, numbers: NDArray[np.float32], mask: NDArray[np.int8], *, pays: bool = True
    ) -> tuple[bool, bool, Seen]:
        board, notes = self._state.board, self._notes
        if self._is_viewed:
            notes.forget()  # the owner of the view may have placed jobs
        looked = act_and_look(board, notes, action, pays, numbers, self._places, mask)
        if self.groups and not looked[1]:
            write_groups(board, numbers, self._places, 0)
        return looked

    def _shown(self, numbers: NDArray[np.float32]) -> Observation:
        return numbers if self.flat else {name: numbers[where] for name, where in self.parts}

    def _info(self, mask: NDArray[np.int8], passed_s: float, seen: Seen) -> dict[str, Any]:
        job, time_s, total_energy_eur, total_tardiness_eur, energy_eur, tardiness_eur, _ = seen
        return {
            "action_mask": mask if self.factored is None else self.factored.masks(mask),
            "job": job,
            "time_s": time_s,
            "energy_eur": energy_eur,
            "tardiness_eur": tardiness_eur,
            "total_energy_eur": total_energy_eur,
            "total_tardiness_eur": total_tardiness_eur,
            "invalid_actions": self._invalid,
            "stalled": self._stalled,
            # numpy's exponential, as in the vector environment: the standard library's may differ in the last bit
            "discount": float(np.exp(-self.discount_rate * passed_s)) if passed_s * self.discount_rate > 0.0 else 1.0,
        }
