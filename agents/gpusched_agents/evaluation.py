"""Evaluation of an agent on held-out seeds: runs and their costs."""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Protocol

import gymnasium
import numpy as np

from gpusched_baselines import edf
from gpusched_env import GpuClusterEnv, InputError, Result
from gpusched_env.envs.rollout import unlimited_waiting
from gpusched_env.simulator import layout as at


class Model(Protocol):
    """A model that predicts actions, such as any algorithm of Stable-Baselines3 and sb3-contrib."""

    @property
    def predict(self) -> Any:
        """Return the method `predict(observation, state, episode_start, deterministic)`, which returns (action, state).

        If it also has a parameter `action_masks`, it gets the actions that can be placed now, bool (1 + C,).
        """


def takes_masks(model: Model) -> bool:
    """Return whether `model` chooses only among allowed actions, as `MaskablePPO` does."""
    return "action_masks" in inspect.signature(model.predict).parameters


@dataclass(frozen=True, slots=True, eq=False)
class Evaluation:
    """One finished episode of an agent.

    Attributes:
        result: Costs, completion times and intervals of the run; `result.seed` is the seed of the instance.
        steps: Steps of the episode, one per decision.
        invalid_actions: Actions of the agent that could not be placed, so that the job waited.
        forced: Decisions that a dispatch rule took in place of the agent, since every job waited (see `evaluate`). If
            this is not 0, the costs are not the agent's alone: report it with them.
    """

    result: Result
    steps: int
    invalid_actions: int
    forced: int


def evaluate(
    model: Model,
    env: gymnasium.Env[Any, Any],
    seeds: Iterable[int],
    *,
    name: str = "agent",
    deterministic: bool = True,
    patience: int = 24,
) -> list[Evaluation]:
    """Run one episode per seed with `model` choosing the actions.

    The instance of a seed is `make_instance(scenario, seed)`, as for every other policy.

    A model may let every job wait for ever. When no job runs, none is still to be submitted, and `patience` idle
    reviews in a row (of `idle_review_s` each) have changed nothing, the dispatch rule of the reference policies decides
    the round (the cheapest configuration that meets the due date, else the fastest that fits). So every episode ends,
    the costs include the wait, and `Evaluation.forced` counts these decisions. The environment's own
    `max_idle_reviews` is not used.

    Args:
        model: A trained model (PPO, MaskablePPO, RecurrentPPO, DQN, ...); action masks go to those that take them.
        env: A `GpuClusterEnv`, wrapped as for training, but not in a `TimeLimit` that ends episodes early.
        seeds: Seeds of the instances, ≥ 0.
        name: Name of the agent, as tables show it.
        deterministic: Whether the model takes its most probable action; else it samples.
        patience: Idle reviews in a row before the dispatch rule decides, ≥ 1.

    Returns:
        One evaluation per seed, in their order.

    Raises:
        InputError: The environment is another one or truncates, the model was made for other spaces, or `patience`
            is out of its range.
    """
    inner = _checked(model, env)
    if isinstance(patience, bool) or not isinstance(patience, int) or patience < 1:
        raise InputError("patience", patience, "a whole number >= 1")
    with unlimited_waiting(inner):
        return [_episode(model, env, inner, int(seed), name, deterministic, patience) for seed in seeds]


def _episode(
    model: Model,
    env: gymnasium.Env[Any, Any],
    inner: GpuClusterEnv,
    seed: int,
    name: str,
    deterministic: bool,
    patience: int,
) -> Evaluation:
    masked, rule = takes_masks(model), edf()
    observation, info = env.reset(seed=seed)
    state, first = None, np.ones(1, dtype=np.bool_)
    steps = forced = 0
    done = False
    while not done:
        masks = {"action_masks": info["action_mask"].astype(np.bool_)} if masked else {}
        action, state = model.predict(observation, state, first, deterministic, **masks)
        first = np.zeros(1, dtype=np.bool_)
        if inner.view.count[at.IDLE] >= patience:
            action = rule.choose(inner.view, inner.job).config + 1
            forced += 1
        observation, _, done, truncated, info = env.step(action)
        steps += 1
        if truncated and not done:
            raise InputError("env", f"truncates after {steps} steps", "one that runs until every job is done")
    return Evaluation(inner.result(name, seed), steps, info["invalid_actions"], forced)


def _checked(model: Model, env: gymnasium.Env[Any, Any]) -> GpuClusterEnv:
    inner = env.unwrapped
    if not isinstance(inner, GpuClusterEnv):
        raise InputError("env", type(inner).__name__, "a GpuClusterEnv")
    for space in ("observation_space", "action_space"):
        made_for = getattr(model, space, None)
        if made_for is not None and made_for != getattr(env, space):
            raise InputError(f"model.{space}", made_for, f"the environment's: {getattr(env, space)}")
    return inner
