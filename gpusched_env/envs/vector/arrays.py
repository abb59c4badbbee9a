"""The arrays of a run by name, of one environment or of a batch of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from gpusched_env.arrays import Floats, Ints
    from gpusched_env.simulator import State


class Arrays(NamedTuple):
    """The arrays of one run or, with one more axis in front, of a batch of them.

    They are all that a `State` and its `View` have, but the log and what many share. Their shapes and columns are those
    of `View` and `gpusched_env.simulator.layout`.
    """

    jobs: Floats
    hidden: Floats
    tau: Floats
    memory: Floats
    active: Ints
    keys: Floats
    order: Ints
    nodes: Ints
    room: Ints
    clock: Floats
    counts: Ints
    slowdown: Floats
    planned: Floats
    survival: Floats
    tail: Floats


CHANGING = ("jobs", "hidden", "tau", "memory", "active", "keys", "order", "nodes", "clock", "counts")
"""The arrays that change in a run. `room` does too, but follows from `nodes`; the others follow from the instance."""


def arrays_of(state: State) -> Arrays:
    """Give the arrays of a state."""
    view = state.view
    return Arrays(
        jobs=view.jobs,
        hidden=state.hidden,
        tau=view.tau,
        memory=view.memory,
        active=view.active_buffer,
        keys=view.keys_buffer,
        order=view.order_buffer,
        nodes=view.nodes,
        room=view.room,
        clock=state.clock,
        counts=state.count,
        slowdown=view.slowdown,
        planned=state.planned_slowdown,
        survival=view.distributions.survival,
        tail=view.distributions.tail,
    )


def point_to(state: State, arrays: Arrays) -> None:
    """Let a state live in `arrays`, which hold the same; what never changes stays where it is."""
    view = state.view
    view.jobs, state.hidden, view.tau, view.memory = arrays.jobs, arrays.hidden, arrays.tau, arrays.memory
    view.active_buffer, view.keys_buffer, view.order_buffer = arrays.active, arrays.keys, arrays.order
    view.nodes, view.room = arrays.nodes, arrays.room
    state.clock = view.clock = arrays.clock
    state.count = view.count = arrays.counts
