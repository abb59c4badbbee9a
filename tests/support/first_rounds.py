"""Runs that have begun: their first round is open for decisions."""

from gpusched_env import Instance
from gpusched_env.simulator import State


def begin_run(instance: Instance, *, preemption: bool = True, **settings: object) -> State:
    state = State(instance, **settings)
    state.advance()
    state.begin_round(preemption)
    return state
