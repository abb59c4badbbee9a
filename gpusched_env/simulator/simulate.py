"""Run a policy on an instance."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import numpy as np

from gpusched_env.simulator import layout as at
from gpusched_env.simulator.result import Result
from gpusched_env.simulator.state import State

if TYPE_CHECKING:
    from collections.abc import Callable

    from gpusched_env.model import Instance
    from gpusched_env.simulator.policy import Policy

MOST_IDLE_S = 10_000 * 3600.0  # over a year


class StalledError(RuntimeError):
    """A policy leaves every job waiting, for ever."""


def simulate(
    instance: Instance,
    policy: Policy,
    *,
    seed: int = 0,
    record: bool = True,
    review_s: float | None = None,
    on_round: Callable[[State], None] | None = None,
) -> Result:
    """Run `policy` on `instance` until every job is done: a pure function of (instance, policy, seed).

    Args:
        instance: The cluster and its jobs.
        policy: The policy.
        seed: Seed of the policy's randomness, ≥ 0.
        record: Whether to keep the intervals.
        review_s: Interval of fixed reviews [s], > 0; none by default.
        on_round: Called after every round, for progress bars and observers.

    Raises:
        StalledError: For more than a year (10,000 h) nothing has run and nothing was still to come, and jobs wait.
    """
    state = State(instance, review_s=review_s, record=record)
    rng = np.random.default_rng(seed)
    seconds = 0.0
    while state.advance():
        if state.count[at.ACTIVE] == 0:
            continue
        state.begin_round(policy.preemption)
        begin = time.perf_counter()
        policy.decide(state.view, rng)
        seconds += time.perf_counter() - begin
        state.commit_round()
        if state.clock[at.NOW] - state.clock[at.LAST_BUSY] > MOST_IDLE_S:
            waiting = state.count[at.ACTIVE]
            raise StalledError(f"policy {policy.name} leaves {waiting} jobs waiting while nothing runs")
        if on_round is not None:
            on_round(state)
    return Result.of(state, policy.name, seed, seconds)
