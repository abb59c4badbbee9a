"""Run a policy that decides job by job through the environment."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields, replace
from typing import Any

import gymnasium

from gpusched_env.envs.env import GpuClusterEnv
from gpusched_env.errors import InputError
from gpusched_env.model import Instance
from gpusched_env.simulator import NAMED_ORDERS, Asking, JobPolicy, Policy, Result, check_fit
from gpusched_env.simulator.policy import AS_A_POLICY, AskedAs
from gpusched_env.simulator.policy_run import check_stalled


def rollout(
    env: gymnasium.Env[Any, Any], policy: JobPolicy, *, seed: int | None = None, instance: Instance | None = None
) -> tuple[Result, float]:
    """Run one episode with `policy` choosing every action.

    Args:
        env: A `GpuClusterEnv`, wrapped or not, with the policy's own `job_order` and `preemption` and with
            `milestones=0` and neither `due_date_timers` nor `consolidation`, so that it asks when `simulate` does; a
            policy with a field `asking` needs just that.
        policy: A policy that decides job by job.
        seed: Seed of the instance.
        instance: An instance to replay, in place of the seed's.

    Returns:
        The result of the run, and the sum of its rewards.

    Raises:
        InputError: The environment is another one, or asks in another way than the policy does.
        StalledError: As by `simulate`; `max_idle_reviews` and `step_limit` do not count.
    """
    inner = env.unwrapped
    if not isinstance(inner, GpuClusterEnv):
        raise InputError("env", type(inner).__name__, "a GpuClusterEnv")
    wanted = asking_of(policy)
    for field in fields(Asking):
        own, allowed = getattr(inner.asking, field.name), getattr(wanted, field.name)
        if own != allowed and field.name != "idle_review_s":
            raise InputError(f"env.{field.name}", own, f"{allowed!r}: the setting with which the policy decides")
    options = {} if instance is None else {"instance": instance}
    env.reset(seed=seed, options=options)
    check_fit([policy], inner.instance)
    rewards, done = 0.0, False
    with without_limits(inner):
        while not done:
            choice = policy.choose(inner.view, inner.job)
            inner.view.apply(inner.job, choice)
            _, reward, terminated, truncated, _ = env.step(choice.config + 1)
            rewards += float(reward)
            done = terminated or truncated
            check_stalled(inner.view.board, policy.name)
    return inner.result(policy.name), rewards


def asking_of(policy: Policy) -> Asking:
    """Return how an environment must ask `policy` so that it decides as in `simulate`; `idle_review_s` is free."""
    if not isinstance(policy, JobPolicy):
        raise InputError("policy", getattr(policy, "name", policy), "a policy that decides job by job (has `choose`)")
    if callable(policy.job_order):
        raise InputError(f"{policy.name}: job_order", "a rule", f"for an environment: one of {', '.join(NAMED_ORDERS)}")
    if isinstance(policy, AskedAs):
        return policy.asking
    return replace(AS_A_POLICY, job_order=policy.job_order, preemption=policy.preemption)


@contextmanager
def without_limits(env: GpuClusterEnv) -> Iterator[None]:
    """Switch off, in the body, the truncation of episodes, by idle reviews and by steps."""
    limits = env.max_idle_reviews, env.step_limit
    env.max_idle_reviews = env.step_limit = None
    try:
        yield
    finally:
        env.max_idle_reviews, env.step_limit = limits
