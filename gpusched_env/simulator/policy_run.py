"""Run a policy on an instance."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from gpusched_env.errors import InputError, RunError
from gpusched_env.model import Instance, checks
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.policy import AS_A_POLICY, AskedAs, Policy, Replaying, check_fit, memory_columns
from gpusched_env.simulator.result import Result
from gpusched_env.simulator.run import Board
from gpusched_env.simulator.state import State

MOST_IDLE_S = 10_000 * 3600.0  # over a year
MOST_IDLE_EVENTS = 1_000  # a policy may make all jobs wait for years, but is not asked for ever meanwhile


class StalledError(RunError):
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
        seed: Seed of the policy's randomness, a whole number from 0 to 2^63 - 1.
        record: Whether to keep the intervals.
        review_s: Interval of fixed reviews [s], > 0; none by default.
        on_round: Called after every round, for progress bars and observers.

    Raises:
        InputError: An argument is of the wrong kind or out of its range.
        StalledError: For more than a year (10,000 h) and a thousand events nothing has run, no submission was to come,
            and jobs wait.
    """
    _check(instance, policy)
    rng = np.random.default_rng(checks.seed(seed))
    columns = memory_columns(policy, instance)
    asking = policy.asking if isinstance(policy, AskedAs) else AS_A_POLICY
    state = State(instance, asking, review_s=review_s, record=record, memory_columns=columns)
    if isinstance(policy, Replaying) and policy.replays:
        _tell_what_was_traced(state)
    count = state.board.count
    seconds = 0.0
    while state.advance():
        if count[at.ACTIVE] == 0:
            continue
        state.begin_round(policy.preemption)
        begin = time.perf_counter()
        policy.decide(state.view, rng)
        seconds += time.perf_counter() - begin
        state.commit_round()
        check_stalled(state.board, policy.name)
        if on_round is not None:
            on_round(state)
    return Result.of(state, policy.name, int(seed), seconds)


def _tell_what_was_traced(state: State) -> None:
    """Disclose, at the submission of jobs, their traced starts and configurations, if the trace has them."""
    table, rows = state.instance.jobs, state.hidden.jobs
    if table.traced_start_s is not None and table.traced_config is not None:
        rows[:, at.TRACED_START_S] = table.traced_start_s
        rows[:, at.TRACED_CONFIG] = np.where(table.traced_type_known, -2 - table.traced_config, table.traced_config)


def check_stalled(board: Board, policy: str) -> None:
    """Check that the policy has not left every job waiting for ever (see `simulate`).

    Raises:
        StalledError: It has.
    """
    clock, count = board.clock, board.count
    if clock[at.NOW] - clock[at.LAST_BUSY] > MOST_IDLE_S and count[at.IDLE] > MOST_IDLE_EVENTS:
        raise StalledError(f"policy {policy} leaves {count[at.ACTIVE]} jobs waiting while nothing runs")


def _check(instance: object, policy: object) -> None:
    if not isinstance(instance, Instance):
        raise InputError("instance", instance, "an Instance; make_instance(scenario, seed) makes one")
    # A class has all attributes of its objects, so it would be taken for one of them.
    if isinstance(policy, type) or not isinstance(policy, Policy):
        raise InputError("policy", policy, 'a policy, with name, preemption and decide; make_policy("edf") makes one')
    check_fit([policy], instance)
