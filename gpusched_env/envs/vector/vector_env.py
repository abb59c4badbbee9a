"""The vector environment: it connects episodes, runs and infos; the kernels compute."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from gpusched_env.envs.env import GpuClusterEnv, Observation
from gpusched_env.envs.kernels import LOOK
from gpusched_env.envs.source import CostReward, Reward, finite_reward, takes_parameters_of
from gpusched_env.envs.vector.checkpoint import pack, unpack
from gpusched_env.envs.vector.episodes import Episodes
from gpusched_env.envs.vector.kernels import CO2, ENERGY, TARDINESS, Seen
from gpusched_env.envs.vector.runs import EpisodeRuns, final_infos_of, infos_of
from gpusched_env.envs.vector.vector_input import (
    EpisodeLimits,
    action_indices,
    check_options,
    reset_instances,
    reset_mask,
    reset_seeds,
)
from gpusched_env.errors import InputError
from gpusched_env.model import checks

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import TypeAlias

    from numpy.random import Generator
    from numpy.typing import NDArray

    from gpusched_env.envs.source import AnyScenario
    from gpusched_env.model import Configuration, Instance
    from gpusched_env.simulator import State, View

    Stepped: TypeAlias = tuple[Observation, NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_], dict[str, Any]]


class GpuClusterVectorEnv(VectorEnv[Any, Any, Any]):
    """N environments `GpuClusterEnv`, stepped together by one compiled call.

    Observations, rewards and infos are those of `gymnasium.vector.SyncVectorEnv` over N single environments, bit for
    bit: the same kernels run behind both. What a call returns is never written again. One call at a time: it is not for
    several Python threads at once.

    Args:
        num_envs: Number of environments N, ≥ 1.
        scenario: As for `GpuClusterEnv`, or a sequence: environment i runs scenario i mod its length. All must have
            the same GPU types and configurations; numbers of nodes and jobs may differ.
        settings: As for `GpuClusterEnv`; they go to each scenario.
        instance: As for `GpuClusterEnv`, or a sequence: environment i replays instance i mod its length. All must have
            the same GPU types and configurations.
        autoreset_mode: What happens when an episode ends: `NEXT_STEP` (the next step begins a new one, whatever the
            action), `SAME_STEP` (the same step does; the last observation and info are `final_obs` and `final_info`
            of the infos) or `DISABLED` (`reset(options={"reset_mask": mask})` does).
        max_episode_steps: Steps after which an episode is truncated, as by gymnasium's `TimeLimit`, ≥ 1; None: those of
            `step_limit` alone; else the smaller one holds.
        keywords: Other parameters of `GpuClusterEnv`, but no `render_mode`. Observations are (N, F) with `flat`,
            actions (N, 2) with `factored`, rewards (N, 3) if they are vectors; a function of rewards is called for each
            environment. Of `seeds`, environment i begins with the i-th and steps by N; the environments of one scenario
            of several share its seeds so.

    Raises:
        InputError: A parameter is out of its range.
    """

    metadata = {"render_modes": [], "autoreset_mode": AutoresetMode.NEXT_STEP}  # noqa: RUF012 - as gymnasium declares it

    @takes_parameters_of(GpuClusterEnv, without=("render_mode",))
    def __init__(
        self,
        num_envs: int = 1,
        scenario: AnyScenario | Sequence[AnyScenario] = "default",
        *,
        settings: Mapping[str, object] | None = None,
        instance: Instance | Sequence[Instance] | None = None,
        autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
        max_episode_steps: int | None = None,
        **keywords: Any,
    ) -> None:
        self.num_envs = checks.whole("num_envs", num_envs)
        self.autoreset_mode = _mode(autoreset_mode)
        self.metadata = type(self).metadata | {"autoreset_mode": self.autoreset_mode}
        self._episodes = Episodes(self.num_envs, keywords, scenario, settings, instance)
        single, reward = self._episodes.singles[0], keywords.get("reward")
        own = [one.step_limit for one in self._episodes.singles]
        self._limits = EpisodeLimits(self.num_envs, single.max_idle_reviews, max_episode_steps, own)
        self.asking = single.asking
        self.configurations: tuple[Configuration, ...] = single.configurations
        self.single_observation_space, self.single_action_space = single.observation_space, single.action_space
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self.action_space = batch_space(self.single_action_space, self.num_envs)
        self._choices, self._factored = 1 + len(self.configurations), single.factored
        self._reward: Reward = CostReward() if reward is None or isinstance(reward, str) else reward
        if single.has_objectives:
            self.reward_space, self.reward_dim = single.reward_space, single.reward_dim
        self._scales = np.resize([float(one.reward_scale) for one in self._episodes.singles], self.num_envs)
        self.feature_names = single.feature_names
        self._runs: EpisodeRuns | None = None
        self._ended = np.zeros(self.num_envs, dtype=np.bool_)

    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Begin an episode in every environment.

        Args:
            seed: Environment i runs the instance of seed `seed` + i, or that of the i-th seed of a sequence; without
                a seed, the instance's seed is drawn from the environment's own generator. With `seeds` see
                `GpuClusterEnv.reset`.
            options: `{"instance": instance}` replays one instance in all environments, `{"instance": instances}` one in
                each; `{"reset_mask": mask}` resets only the environments where the mask, bool (N,), is True.

        Returns:
            The first observations, and infos (see `step`).

        Raises:
            InputError: A seed or an option is not allowed.
            gymnasium.error.ResetNeeded: Some are to be reset before all have been once.
        """
        self._check_open()
        given = options or {}
        check_options(given)
        seeds, some = reset_seeds(seed, self.num_envs), reset_mask(given, self.num_envs)
        instances = reset_instances(given, self.num_envs, self._episodes.shape)
        if self._runs is None and not some.all():
            raise gymnasium.error.ResetNeeded("no episodes are running yet: reset all environments first")
        chosen = np.flatnonzero(some).tolist()
        runs = self._begin({i: self._episodes.begin(i, seeds[i], instances[i]) for i in chosen})
        self._ended[some] = False
        self._limits.steps[some] = 0
        seen = runs.look()
        return runs.observations(seen), infos_of(runs, seen, self._limits.stalled(seen.idle), some)

    def step(self, actions: Any) -> Stepped:
        """Decide for the current job in every environment.

        Args:
            actions: N whole numbers: 0 = wait, a = configuration a - 1; with `factored` N pairs. With `NEXT_STEP`, that
                of an environment whose episode ended in the previous step is not used.

        Returns:
            Observations, rewards, float64 (N,), terminations, bool (N,), truncations, bool (N,), and infos: for
            each key of a single environment's info an array of N, and also `_key`, bool (N,): whose it is.

        Raises:
            InputError: An action is not in the action space; or a reward of your own returns no finite number: then, as
                after an interrupt, all environments have to be reset.
            gymnasium.error.ResetNeeded: No episodes are running or, with `DISABLED`, one is over.
        """
        self._check_open()
        runs, again = self._present, self._ended
        any_again = np.count_nonzero(again) > 0  # faster than `any`, also below
        if any_again and self.autoreset_mode is AutoresetMode.DISABLED:
            raise gymnasium.error.ResetNeeded(f"episodes {np.flatnonzero(again).tolist()} are over: reset them")
        if self._factored is None:
            chosen = action_indices(actions, self._choices, ~again)
        else:
            chosen = self._factored.indices(actions, runs.masks_and_jobs()[0], ~again)
        try:
            return self._advance(runs, chosen, again if any_again else None)
        except BaseException:
            self._runs = None  # it is not known which environments have been stepped
            raise

    def _advance(self, runs: EpisodeRuns, chosen: NDArray[np.int64], again: NDArray[np.bool_] | None) -> Stepped:
        """Step all environments, but begin the episodes of `again` again."""
        if again is not None:
            self._begin_next(again)
            chosen[again] = LOOK
        seen = runs.step(chosen)
        over, stalled = seen.current_job < 0, self._limits.stalled(seen.idle)
        truncated = self._limits.stepped(stalled, again)
        ended = over | truncated
        rewards = self._rewards(seen, chosen)
        if again is not None:
            rewards[again] = 0.0
        infos: dict[str, Any] = {}
        if np.count_nonzero(ended) and self.autoreset_mode is AutoresetMode.SAME_STEP:
            infos = final_infos_of(runs, seen, stalled, ended)
            self._begin_next(ended)
            runs.look_again(seen, np.flatnonzero(ended))
            stalled, self._ended = self._limits.stalled(seen.idle), np.zeros_like(ended)
            self._limits.steps[ended] = 0
        else:
            self._ended = ended
        infos.update(infos_of(runs, seen, stalled))
        return runs.observations(seen), rewards, over, truncated, infos

    def action_masks(self) -> NDArray[np.bool_]:
        """Return what can be placed now, bool (N, 1 + C); waiting is always allowed; see the single environment.

        Raises:
            gymnasium.error.ResetNeeded: No episodes have begun, as for what follows.
        """
        masks, _ = self._present.masks_and_jobs()
        return masks if self._factored is None else self._factored.masks(masks)

    def observations(self) -> Observation:
        """Return the present observations again, as after `set_state`."""
        return self._present.observations(self._present.look())

    @property
    def jobs(self) -> NDArray[np.int64]:
        """Index of the current job in every environment, (N,); -1 where the episode is over."""
        return self._present.masks_and_jobs()[1]

    @property
    def views(self) -> tuple[View, ...]:
        """The present state of every environment as policies may see it; a new `View` in each episode."""
        return self._present.views()

    @property
    def instances(self) -> tuple[Instance, ...]:
        """The instances of the present episodes."""
        return tuple(state.instance for state in self._present.states)

    @property  # type: ignore[misc]  # as in SyncVectorEnv, also below
    def np_random(self) -> tuple[Generator, ...]:  # type: ignore[override]
        """The generator of every environment."""
        return tuple(self._episodes.generator(i) for i in range(self.num_envs))

    @property
    def np_random_seed(self) -> tuple[int, ...]:  # type: ignore[override]
        """The seed of every environment's generator; -1 for one from `set_state`."""
        return tuple(self._episodes.generator_seed(i) for i in range(self.num_envs))

    def get_state(self) -> dict[str, NDArray[Any]]:
        """Return everything that the next steps depend on, as plain arrays by name.

        An environment made with the same arguments continues from it with the same steps, bit for bit, in any process.
        Instances are not in it: they are those given as `instance`, or are made again from the scenario and their
        seeds. `digest` is the SHA-256 over the other arrays.

        Raises:
            InputError: An environment replays an instance that `reset` was given, or has a mechanism with state of its
                own.
            gymnasium.error.ResetNeeded: No episodes have begun.
        """
        return pack(self._present, self._episodes, self._limits, self._ended)

    def set_state(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Continue from what `get_state` returned; `observations()` and `action_masks()` then belong to that state.

        Raises:
            InputError: It is no such state, or an array was changed since, or it is one of an environment with other
                arguments, or with another number of environments, or its instances come out differently here; then
                nothing has changed.
        """
        self._check_open()
        self._runs, self._ended = unpack(state, self._episodes, self._limits)

    @property
    def _present(self) -> EpisodeRuns:
        self._check_open()
        if self._runs is None:
            raise gymnasium.error.ResetNeeded("no episodes are running: call reset()")
        return self._runs

    def _check_open(self) -> None:
        if self.closed:
            raise gymnasium.error.ClosedEnvironmentError("the vector environment is closed")

    def _begin(self, states: Mapping[int, State]) -> EpisodeRuns:
        if self._runs is None:
            first = [states[i] for i in range(self.num_envs)]
            self._runs = EpisodeRuns(first, self._episodes.common, self._episodes.singles[0])
        self._runs.begin(states)
        return self._runs

    def _begin_next(self, some: NDArray[np.bool_]) -> None:
        self._begin({i: self._episodes.begin(i) for i in np.flatnonzero(some).tolist()})

    def _rewards(self, seen: Seen, actions: NDArray[np.int64]) -> NDArray[np.float64]:
        energy, tardiness = seen.money[ENERGY], seen.money[TARDINESS]
        if hasattr(self, "reward_space"):
            return -seen.money[[ENERGY, TARDINESS, CO2]].T
        if type(self._reward) is CostReward:
            return self._reward(energy, tardiness) / self._scales  # the formula holds for arrays
        rewards = np.zeros(self.num_envs)
        for i in np.flatnonzero(actions != LOOK).tolist():
            rewards[i] = finite_reward(self._reward(float(energy[i]), float(tardiness[i])))
        return rewards


def _mode(mode: Any) -> AutoresetMode:
    try:
        return AutoresetMode(mode)
    except ValueError:
        names = ", ".join(m.value for m in AutoresetMode)
        raise InputError("autoreset_mode", mode, f"an AutoresetMode: {names}") from None
