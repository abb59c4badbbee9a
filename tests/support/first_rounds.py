"""Runs that have begun: their first round is open for decisions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpusched_env.simulator import State

if TYPE_CHECKING:
    from gpusched_env import Instance


def begin_run(instance: Instance, *, preemption: bool = True, **settings: object) -> State:
    """Begin a run, and open its first round."""
    state = State(instance, **settings)
    state.advance()
    state.begin_round(preemption)
    return state
