"""All that the commands compile, in steps, so that it can be compiled ahead."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from gpusched_agents.any_policy import known_policies, make_any_policy
from gpusched_env import GpuClusterEnv, GpuClusterVectorEnv
from gpusched_env.simulator import simulate
from gpusched_env.simulator.policy import can_decide
from gpusched_experiments.report.measure import bound_of
from gpusched_experiments.report.warm_up import tiny_instance

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

STEPS = 3
"""Decisions taken in the environments."""


def warm_up_steps(policies: Sequence[str] | None = None) -> Iterator[tuple[str, Callable[[], None]]]:
    """Give what to do, each with its name: the bounds, the environments that train agents, every policy and agent.

    Args:
        policies: Names of policies and agents; None for all there are.

    Raises:
        InputError: There is no such policy.
    """
    yield "bounds", partial(_bounds)
    yield "environment", _environment
    yield "environments at once", _environments
    for name in known_policies() if policies is None else policies:
        yield name, partial(_policy, name)


def _bounds() -> None:
    bound_of(tiny_instance())


def _policy(name: str) -> None:
    """Run it as comparisons do, and as a run that is drawn or kept is."""
    policy, instance = make_any_policy(name), tiny_instance()
    if can_decide(policy, instance):
        for record in (False, True):
            simulate(instance, policy, record=record)


def _environment() -> None:
    env = GpuClusterEnv("tiny")
    env.reset(seed=0)
    for _ in range(STEPS):
        env.step(int(np.flatnonzero(env.action_masks())[-1]))
    env.close()


def _environments() -> None:
    env = GpuClusterVectorEnv(2, "tiny")
    env.reset(seed=0)
    for _ in range(STEPS):
        env.step(np.array([np.flatnonzero(mask)[-1] for mask in env.action_masks()]))
    env.close()
