"""The hooks of the simulator, in the order in which a run meets them.

Functions of mechanisms have the same arguments. A value that is not known yet is NaN, or -1 for a whole number
(-2 of `next_held`): a mechanism to which the question belongs answers it, and the core does where none did.
"""
# mypy: disable-error-code="empty-body"

from __future__ import annotations

from gpusched_env.arrays import Floats, Ints, Mask, Singles
from gpusched_env.hooks import hook
from gpusched_env.simulator.run import Board, Hidden

# A round.


@hook
def open_round(board: Board) -> None:
    """Store what the next round needs to know of the nodes as they are now."""


@hook
def remember(board: Board, job: int) -> None:
    """Store what a job holds when a round begins; its preferred node is set already and may be changed."""


@hook
def clear_nodes(board: Board) -> None:
    """Empty the nodes, whose free GPUs are set already."""


@hook
def recount(board: Board) -> None:
    """Count again what active jobs hold, before free capacity is counted: its columns are 0."""


@hook
def keeps_place(board: Board, job: int, same: bool) -> bool:
    """Whether a job holds the same as when the round began; the core knows that its nodes and GPUs are the same."""


@hook
def close_round(board: Board) -> None:
    """Change what jobs hold, for the last time in the round."""


@hook
def slow_down(board: Board, slowdowns: Floats) -> None:
    """Multiply the true seconds per epoch over the planned ones of every active job, (A,)."""


@hook
def lose_time(board: Board, slowdowns: Floats, same: Mask, lost: Floats) -> None:
    """Add the seconds for which active jobs stand because of the round, (A,); `same` is 0 for those that change."""


@hook
def ready_at(board: Board, job: int, now: float, ready: float) -> float:
    """Return from when on a job makes progress with what it holds now, which differs from before [s]."""


@hook
def end_interval(board: Board, job: int, now: float) -> None:
    """Store what is left of an interval in which a job held one configuration in one place."""


@hook
def begin_interval(board: Board, job: int) -> None:
    """Begin an interval: the job holds something else than before."""


@hook
def commit(board: Board) -> None:
    """End the round, after all intervals of it have begun."""


# Events.


@hook
def next_event(board: Board, hidden: Hidden, time: float) -> float:
    """Return the time of the next event [s], at most `time`."""


@hook
def next_decision(board: Board, hidden: Hidden, from_s: float, decision: float) -> float:
    """Return the time of the next decision from `from_s` on [s], at most `decision`."""


@hook
def at_event(board: Board, hidden: Hidden) -> None:
    """Apply the events of the present time, before jobs are complete and submitted."""


@hook
def after_event(board: Board, hidden: Hidden) -> None:
    """Apply the events of the present time, after jobs were complete and submitted."""


@hook
def disclose(board: Board, hidden: Hidden, job: int) -> None:
    """Disclose what a mechanism hides of a job that is submitted; its times are disclosed already."""


@hook
def restore(board: Board, hidden: Hidden) -> None:
    """Recompute what follows from the arrays of a checkpoint."""


@hook
def write_interval(board: Board, job: int, config: int, node: int, old: bool, row: Floats) -> None:
    """Write further columns of a row of the log."""


# Costs.


@hook
def node_charge(board: Board, node: int, gpus: int, rate: float) -> float:
    """Return the part of so many GPUs of a node, or of a chain of nodes, in its cost rate [€/s]; NaN: by busy GPUs."""


@hook
def nodes_rate(board: Board, rate: float) -> float:
    """Return the cost rate of all nodes [€/s]; NaN: the sum over the nodes, by busy GPUs."""


@hook
def held_charge(board: Board, job: int, config: int, rate: float) -> float:
    """Return a job's part of the cost rate of its nodes [€/s], if its configuration is of a kind of its own."""


@hook
def own_charge(board: Board, job: int, config: int, rate: float) -> float:
    """Change a job's part of the cost rate of its nodes [€/s] by what its own work draws."""


@hook
def planned_rate(board: Board, application: int, config: int, rate: float) -> float:
    """Change the planned cost rate of an application on busy whole GPUs [€/s] by what its own work draws."""


@hook
def total_rate(board: Board, rate: float) -> float:
    """Change the cost rate of all nodes [€/s] by what the work of jobs draws."""


@hook
def penalty_rate(board: Board, rate: float) -> float:
    """Add penalties that the bill has beside energy [€/s]; jobs pay them by what they are charged."""


@hook
def rent_rate(board: Board, rate: float) -> float:
    """Add what is paid for what jobs hold, whatever energy costs [€/s]; it is in the cost rate of nodes."""


@hook
def rent_of(board: Board, job: int, config: int, rate: float) -> float:
    """Add a job's own part of that [€/s]."""


@hook
def billed_s(board: Board, hidden: Hidden, before: float, rate: float, length: float) -> float:
    """Return the length of the time since `before` at the reference price [s]; energy costs `rate` at that [€/s].

    What is published by the present time is disclosed.
    """


@hook
def account(board: Board, seconds: float, length: float) -> None:
    """Account for the time up to now, which is as long at the reference price."""


# Placement: whether configurations fit, and what jobs hold.


@hook
def may_place(board: Board, job: int, config: int, allowed: bool) -> bool:
    """Whether a job, which holds nothing, may get a configuration that fits."""


@hook
def may_resize(board: Board, job: int, config: int, allowed: bool) -> bool:
    """Whether a job may get a configuration in place of the one that it holds, on the same nodes."""


@hook
def count_in(board: Board, job: int, config: int, times: int) -> None:
    """Count what a job gets (`times` 1) or returns (-1)."""


@hook
def count_busy(board: Board, node: int, before: int, after: int) -> None:
    """Count that a node had so many free GPUs, and has so many now."""


@hook
def use_node(board: Board, node: int) -> None:
    """Prepare a node of which a job gets something."""


@hook
def fits_kind(board: Board, config: int, fits: int) -> int:
    """Whether a configuration fits somewhere, 0 or 1, if it is of a kind of its own."""


@hook
def put(board: Board, job: int, config: int, placed: bool) -> bool:
    """Place a job that holds nothing with a configuration that fits, if it is of a kind of its own."""


@hook
def take_kind(board: Board, config: int, node: int, slot: int, taken: bool) -> bool:
    """Take the GPUs of a configuration on a node, from `slot` on, if it is of a kind of its own."""


@hook
def put_back(board: Board, job: int, config: int, node: int, chain: Ints, placed: bool) -> bool:
    """Restore what a job held before its release, if it is of a kind of its own."""


@hook
def let_kind_go(board: Board, job: int, config: int, released: bool) -> bool:
    """Release the GPUs of a configuration, if it is of a kind of its own."""


@hook
def chain(board: Board, job: int, config: int, nodes: Ints) -> Ints:
    """Return what `put_back` needs of a job that is released; it is empty for what is on one node."""


@hook
def next_held(board: Board, job: int, config: int, node: int, old: bool, following: int) -> int:
    """Return the node that follows on `node` among those that a job holds, or held (`old`); -1 after the last."""


@hook
def gpus_held(board: Board, job: int, config: int, node: int, old: bool, gpus: int) -> int:
    """Return the GPUs that a job holds, or held (`old`), on one of its nodes."""


@hook
def exchange_held(board: Board, job: int, other: int) -> None:
    """Exchange what two jobs hold, beside configuration, node and slot."""


@hook
def holding_error(board: Board, job: int, config: int, node: int, slot: int, chain: Ints, wrong: int) -> int:
    """Return why a job can not hold a configuration in a place (`holdings`), if that is not known yet; 0: it can."""


@hook
def empty_nodes(board: Board) -> None:
    """Count again what nodes do, which were emptied by a copy of empty ones."""


@hook
def empty_jobs(board: Board) -> None:
    """Count again what jobs hold, after that."""


@hook
def opens_node(board: Board, job: int, config: int, opens: int) -> int:
    """Whether placing a job would switch a node on, 0 or 1, if the configuration is of a kind of its own."""


@hook
def pause_s(board: Board, job: int, seconds: float) -> float:
    """Return the least seconds that a pause now would cost a job later, which has been ready before."""


@hook
def switch_s(board: Board, job: int, config: int, seconds: float) -> float:
    """Return the seconds without progress that other GPUs would cost a job now, which has been ready before."""


@hook
def speed_if_placed(board: Board, job: int, config: int, speed: float) -> float:
    """Return the speed that a job would have with a configuration now, 1 as alone; 0 if it does not fit."""


@hook
def group_for(board: Board, gpu_type: int, wanted: int, group: int) -> int:
    """Return the group of nodes from which so many empty ones are taken first; -1: none."""


@hook
def in_group(board: Board, node: int, group: int, inside: bool) -> bool:
    """Whether a node is in a group of `group_for`."""


# What policies may ask.


@hook
def known_until_s(board: Board, until: float) -> float:
    """Return the time until which prices are known now [s]; inf: they are all known, or do not change."""


@hook
def mean_price(board: Board, begin: float, end: float, price: float) -> float:
    """Return the mean price of a kWh of the nodes between two times, PUE included [€/kWh]; `price` is constant."""


@hook
def copy_arrays(board: Board, source: Board) -> None:
    """Write the arrays that a mechanism changes during a run; `source` is another board of the same run."""


# Observation.


@hook
def takes_from_others(board: Board, takes: bool) -> bool:
    """Whether a job that is placed may take GPUs from jobs that were asked before it in the round."""


@hook
def write_features(board: Board, job: int, mask: Mask, options: Singles) -> None:
    """Write further features of every configuration; one that is not allowed has only zeros."""


@hook
def write_group(board: Board, group: int, rows: Singles) -> None:
    """Write a group of features of the current job, by its number (`observation.group_number`), one row or several."""
