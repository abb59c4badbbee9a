"""The present state of a run, and durations, as text."""

from __future__ import annotations

from collections import defaultdict
from itertools import pairwise

from gpusched_env.simulator import State
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.placement.held_nodes import gpus_on, next_node, nodes_held

UNITS = ((86_400.0, "d"), (3_600.0, "h"), (60.0, "min"), (1.0, "s"))


def duration_text(seconds: float) -> str:
    """Write a duration with its two largest units: `2 d 3 h`, `5 h 10 min`, `42 s`."""
    whole = round(seconds)
    for (length, unit), (next_length, next_unit) in pairwise(UNITS):
        if whole >= length:
            many, rest = divmod(whole, int(length))
            few = rest // int(next_length)
            return f"{many} {unit} {few} {next_unit}" if few else f"{many} {unit}"
    return f"{whole} s"


def axis_unit(span_s: float) -> tuple[float, str]:
    """Choose the unit of a time axis of `span_s` seconds: its length [s] and its name."""
    if span_s > 4 * 86_400.0:
        return 86_400.0, "days"
    if span_s > 2 * 3_600.0:
        return 3_600.0, "hours"
    return (60.0, "minutes") if span_s > 120.0 else (1.0, "seconds")


MOST_WAITING = 20


def render_text(state: State) -> str:
    """Return the GPUs that jobs hold now, the waiting jobs and the costs so far: a line per node and per waiting job.

    Jobs are shown by index with the GPUs they hold on the node, or their share of one; those on one GPU are joined
    by `+`. `!` marks a job that is past its due date.

    Args:
        state: The state of the run.

    Returns:
        Lines of plain text, without a newline at the end; at most 20 waiting jobs are listed.
    """
    energy, tardiness = state.board.clock[at.BILL], state.board.clock[at.TARDINESS_COST]
    count, jobs = state.board.count, len(state.view.jobs)
    summary = [
        f"time {duration_text(state.view.now_s)} ({state.view.now_s:.0f} s), round {count[at.ROUND]}",
        f"cost {energy + tardiness:.2f} € = energy {energy:.2f} € + tardiness {tardiness:.2f} €",
        f"jobs {count[at.DONE]} done, {count[at.ACTIVE]} active, {jobs - count[at.SUBMITTED]} to come, of {jobs}",
    ]
    return "\n".join([*summary, "", *_nodes(state), "", *_waiting(state)])


def _nodes(state: State) -> list[str]:
    view = state.view
    holders = _holders(state)
    lines = []
    digits = len(str(len(view.nodes) - 1))
    width = max(len(node.gpu_type) for node in state.instance.nodes)
    for index, node in enumerate(state.instance.nodes):
        busy = int(view.nodes[index, at.USABLE] - view.nodes[index, at.FREE])
        bar = "#" * busy + "." * (node.gpus - busy)
        who = ", ".join(" + ".join(jobs) for jobs in holders[index].values()) or "off"
        lines.append(f"node {index:>{digits}}  {node.gpu_type:<{width}}  [{bar}]  {who}")
    return lines


def _holders(state: State) -> list[dict[tuple[int, int], list[str]]]:
    """Return for each node the jobs on it: one entry for each job with whole GPUs, and one for each shared GPU."""
    view = state.view
    holders: list[dict[tuple[int, int], list[str]]] = [defaultdict(list) for _ in view.nodes]
    for job in sorted(view.active.tolist()):
        row = view.jobs[job]
        if row[at.CONFIG] < 0:
            continue
        config, slot = int(row[at.CONFIG]), int(row[at.SLOT])
        configuration = view.configurations[config]
        several = f" on {nodes_held(state.board, job, config)} nodes" if configuration.nodes > 1 else ""
        node, key = int(row[at.NODE]), (-1, job) if slot < 0 else (slot, -1)
        while node >= 0:
            on_node = int(gpus_on(state.board, job, config, node, False))
            size = f"x{configuration.share:g}" if slot >= 0 else f"x{on_node}"
            for gpu in range(on_node if slot >= 0 else 1):
                holders[node][key[0] + gpu, key[1]].append(f"job {job}{_late_mark(state, job)} {size}{several}")
            node = int(next_node(state.board, job, config, node, False))
    return holders


def _waiting(state: State) -> list[str]:
    view = state.view
    waiting = sorted(view.waiting, key=lambda job: (view.jobs[job, at.DUE], job))
    lines = [f"waiting: {len(waiting) or 'none'}"]
    for job in waiting[:MOST_WAITING]:
        due = view.jobs[job, at.DUE]
        left = due - view.now_s
        when = f"due in {duration_text(left)}" if left >= 0 else f"late by {duration_text(-left)}"
        done = view.jobs[job, at.EPOCHS] / view.jobs[job, at.MAX_EPOCHS]
        lines.append(f"  job {job}{_late_mark(state, job)}  due at {due:.0f} s, {when}, {done:.0%} of its epochs done")
    if len(waiting) > MOST_WAITING:
        lines.append(f"  and {len(waiting) - MOST_WAITING} more")
    return lines


def _late_mark(state: State, job: int) -> str:
    return "!" if state.view.now_s > state.view.jobs[job, at.DUE] else ""
