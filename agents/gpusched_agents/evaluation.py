"""Evaluation of an agent on held-out seeds: runs and their costs."""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from importlib import import_module
from typing import Any, Protocol

import gymnasium
import numpy as np

from gpusched_agents.policy import JobModelPolicy
from gpusched_baselines import edf
from gpusched_env import GpuClusterEnv, InputError, Result, simulate
from gpusched_env.envs.rollout import without_limits
from gpusched_env.envs.source import NEVER
from gpusched_env.observation import OPTION_FEATURES
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

    A model may let every job wait for ever. When no job runs, none is still to be submitted, and `patience` events in a
    row (timers, or idle reviews of `idle_review_s` each) have changed nothing, the dispatch rule of the reference
    policies decides the round (the cheapest configuration that meets the due date, else the fastest that fits). So
    every episode ends, the costs include the wait, and `Evaluation.forced` counts these decisions. The environment's
    own `max_idle_reviews` and `step_limit` are not used.

    A perceptron of Stable-Baselines3 that takes its most probable action in an environment without wrappers of your own
    runs as `sb3:FILE` does, which is many times as fast as single steps of the environment.

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
    if deterministic and (policy := _as_policy(model, env, inner, name)) is not None:
        policy = replace(policy, patience=patience)
        return [_run(policy, env, inner, int(seed)) for seed in seeds]
    with without_limits(inner):
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
    observation, info = env.reset(seed=seed, options={"instance": inner.source.make(seed)})
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
            raise _truncated(steps)
    return Evaluation(inner.result(name, seed), steps, info["invalid_actions"], forced)


_PASSIVE = ("Monitor", "OrderEnforcing", "PassiveEnvChecker", "TimeLimit")
_LIBRARIES = ("stable_baselines3.", "sb3_contrib.")


def _as_policy(model: Model, env: gymnasium.Env[Any, Any], inner: GpuClusterEnv, name: str) -> JobModelPolicy | None:
    """Return the model as a policy that decides as it does in `env`; None where it is no such model."""
    layer: Any = env
    while layer is not inner:
        if type(layer).__name__ not in _PASSIVE:
            return None
        layer = layer.env
    plain = type(inner) is GpuClusterEnv and inner.factored is None and not inner.groups
    if not plain or inner.option_features != len(OPTION_FEATURES):
        return None
    parts = (model, getattr(model, "policy", None))
    if not all(type(part).__module__.startswith(_LIBRARIES) for part in parts):
        return None
    of_model: Any = import_module("gpusched_agents.sb3_models").policy_of_model
    asking = {field.name: getattr(inner.asking, field.name) for field in fields(inner.asking)}
    try:
        policy: JobModelPolicy = of_model(model, name, asking)
    except InputError:  # it is no perceptron
        return None
    return policy


def _run(policy: JobModelPolicy, env: gymnasium.Env[Any, Any], inner: GpuClusterEnv, seed: int) -> Evaluation:
    counts: Counter[str] = Counter()
    result, limit = simulate(inner.source.make(seed), replace(policy, counts=counts), seed=seed), _limit_of(env)
    if counts["steps"] > limit:
        raise _truncated(limit)
    return Evaluation(result, **{key: counts[key] for key in ("steps", "invalid_actions", "forced")})


def _limit_of(env: gymnasium.Env[Any, Any]) -> int:
    return NEVER if env.spec is None or env.spec.max_episode_steps is None else env.spec.max_episode_steps


def _truncated(steps: int) -> InputError:
    return InputError("env", f"truncates after {steps} steps", "one that runs until every job is done")


def _checked(model: Model, env: gymnasium.Env[Any, Any]) -> GpuClusterEnv:
    inner = env.unwrapped
    if not isinstance(inner, GpuClusterEnv):
        raise InputError("env", type(inner).__name__, "a GpuClusterEnv")
    for space in ("observation_space", "action_space"):
        made_for = getattr(model, space, None)
        if made_for is not None and made_for != getattr(env, space):
            raise InputError(f"model.{space}", made_for, f"the environment's: {getattr(env, space)}")
    return inner
