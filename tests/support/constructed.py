"""Rounds that Random Greedy constructed, for tests of what improves them."""

from dataclasses import replace

import numpy as np

from gpusched_baselines.search.constructions import Constructions
from gpusched_baselines.search.proxy_parts import proxy_cost
from gpusched_env.simulator import State, View
from gpusched_env.simulator import layout as at
from instances import random_instance


def constructed(seed: int, kinds: bool, slack: float = 1.0) -> tuple[View, Constructions]:
    """Make a round with many jobs for few GPUs, and one of our own constructions that are not the best.

    Due dates are `slack` times as far away as usual.
    """
    instance = random_instance(seed, jobs=10, nodes=3, span_s=0.0, kinds=kinds)
    state = State(replace(instance, jobs=replace(instance.jobs, due_s=instance.jobs.due_s * slack)))
    state.advance()
    state.begin_round(preemption=True)
    found = Constructions.of(state.view, np.random.default_rng(seed), 20, size=5, fill=True)
    found.restore(state.view, int(np.argmax(found.costs)))
    return state.view, found


def proxy(view: View, found: Constructions) -> float:
    return proxy_cost(view.board, found.order)


def may_take(view: View, job: int, config: int, left: float) -> bool:
    """Return whether a job may run on `config`: if it gets no slower, or is in time still."""
    seconds, old = left * view.tau[job, config], int(view.jobs[job, at.CONFIG])
    in_time = view.now_s + seconds <= view.jobs[job, at.DUE] + 1e-6
    return np.isfinite(seconds) and (in_time or old < 0 or seconds <= left * view.tau[job, old])
