"""Packing by compatibility, as Lucid does: two jobs on a GPU if their applications slow each other little."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gpusched_baselines.planning.cheapest import worth
from gpusched_baselines.shared_gpus.gpus import (
    Gpus,
    cheapest_guaranteed,
    look_at_gpus,
    opportunistic_shares,
    place_whole,
    put_share,
)
from gpusched_env.errors import InputError
from gpusched_env.model import checks
from gpusched_env.simulator import kernels as sim
from gpusched_env.simulator.kernels import Board, Ints, Mask, PlannedPolicy, View, at, kernel, lean_kernel


@kernel
def plan_pack(board: Board, light: float, medium: float, most: int) -> None:
    """Plan the round, in which running jobs keep what they have; write the plan to `memory`; nothing else changes."""
    jobs, active = board.jobs, board.active[: board.count[at.ACTIVE]]
    opportunistic, label = opportunistic_shares(board), labels(board, light, medium)
    held, kept = sim.begin_plan(board, False)
    gpus, closed = look_at_gpus(board, opportunistic), np.zeros(board.nodes.shape[0], dtype=np.int8)
    for i in _shortest_first(board):
        job, full = active[i], np.zeros(opportunistic.shape[0], dtype=np.int8)
        while jobs[job, at.CONFIG] < 0.0:
            config = _cheapest_whole(board, full, job)
            if config < 0:
                break
            full[config] = 1
            share = _half(board, opportunistic, config, job)
            if share < 0:
                place_whole(board, gpus, closed, job, config, False)
                continue
            node, gpu = _gpu_to_share(board, gpus, label, most, share, job)
            if node >= 0:
                put_share(board, opportunistic, gpus, job, share, node, gpu)
        if not full.any():  # it may use no whole GPUs
            _place_share(board, opportunistic, gpus, label, most, job)
    sim.write_plan(board)
    sim.end_plan(board, held, kept)


@kernel
def _place_share(board: Board, opportunistic: Mask, gpus: Gpus, label: Ints, most: int, job: int) -> None:
    nothing = np.zeros_like(opportunistic)
    share = cheapest_guaranteed(board, nothing, nothing, job)
    if share < 0:
        return
    node, gpu = _gpu_to_share(board, gpus, label, most, share, job)
    if node >= 0:
        put_share(board, opportunistic, gpus, job, share, node, gpu)


@kernel
def labels(board: Board, light: float, medium: float) -> Ints:
    """Return the label of every application on every GPU type, (V, A): by the mean speed of its pairs with all others.

    Where slowdowns of co-runners are not known, all have the label 0.
    """
    if not board.has_shares:
        return np.zeros((board.capacity.shape[0], board.facts.planned.shape[0]), dtype=np.int64)
    facts = board.facts
    types, total = max(facts.utilisation.shape[0], facts.slowdown.shape[0]), facts.planned.shape[0]
    label = np.zeros((max(types, board.capacity.shape[0]), total), dtype=np.int64)
    for v in range(types):
        for one in range(total):
            speed = 0.0
            for other in range(total):
                speed += _speed(board, v, one, other) / total
            label[v, one] = 0 if speed >= light else 1 if speed >= medium else 2
    return label


@lean_kernel
def _speed(board: Board, v: int, one: int, other: int) -> float:
    """Return the mean speed of two applications on one GPU, 1 as alone."""
    facts = board.facts
    if facts.utilisation.shape[0] > 0:
        return 1.0 / max(1.0, facts.utilisation[v, one] + facts.utilisation[v, other])
    return 0.5 / facts.slowdown[v, one, other] + 0.5 / facts.slowdown[v, other, one]


@kernel
def _shortest_first(board: Board) -> Ints:
    """Return the places in `active` of the jobs that wait, by the GPU-seconds that they are expected to need."""
    jobs, active, total = board.jobs, board.active, board.count[at.ACTIVE]
    key, waiting, members = np.empty(total), 0, np.empty(total, dtype=np.int64)
    nothing = np.zeros(board.tau.shape[1], dtype=np.int8)
    for i in range(total):
        if jobs[active[i], at.CONFIG] < 0.0:
            c = _cheapest_whole(board, nothing, active[i])
            c = c if c >= 0 else cheapest_guaranteed(board, nothing, nothing, active[i])
            gpus = board.facts.configs[c, at.CONFIG_SIZE] / at.UNITS
            key[waiting] = sim.expected_left(board, active[i]) * board.tau[active[i], c] * gpus if c >= 0 else np.inf
            members[waiting] = i
            waiting += 1
    return members[sim.ranked(key, waiting)[:waiting]]


@kernel
def _cheapest_whole(board: Board, full: Mask, job: int) -> int:
    """Choose among whole GPUs not known to be full: the cheapest that meets the due date, else the fastest."""
    jobs, tau, configs = board.jobs, board.tau, board.facts.configs
    left, time_left = jobs[job, at.MAX_EPOCHS] - jobs[job, at.EPOCHS], jobs[job, at.DUE] - board.clock[at.NOW]
    best, least, own = -1, (True, np.inf, np.inf), int(jobs[job, at.APPLICATION])
    for c in range(tau.shape[1]):
        there = board.least_rate[own, c] < np.inf and configs[c, at.CONFIG_UNITS] == 0
        if not there or full[c] != 0 or tau[job, c] == np.inf:
            continue
        value = worth(left * tau[job, c], time_left, board.planning_rate[own, c])
        if best < 0 or value < least:
            best, least = c, value
    return best


@kernel
def _half(board: Board, opportunistic: Mask, config: int, job: int) -> int:
    """Find the share to take in place of one whole GPU: the largest of which two fit; -1: the job may use none."""
    configs = board.facts.configs
    best, most = -1, 0
    if configs[config, at.CONFIG_GPUS] > 1 or configs[config, at.CONFIG_NODES] > 1:
        return best
    for c in range(configs.shape[0]):
        units = configs[c, at.CONFIG_UNITS]
        right = opportunistic[c] != 0 and configs[c, at.CONFIG_TYPE] == configs[config, at.CONFIG_TYPE]
        if right and board.tau[job, c] < np.inf and most < units <= at.UNITS // 2:
            best, most = c, units
    return best


@kernel
def _gpu_to_share(board: Board, gpus: Gpus, label: Ints, most: int, share: int, job: int) -> tuple[int, int]:
    """Choose an idle GPU, on the node with fewest free; else the one with one co-runner on which it is fastest.

    The labels of two jobs on a GPU, `label`, (V, A), sum to `most` at most.
    """
    nodes, jobs, per_node, v = board.nodes, board.jobs, sim.slots(board), board.facts.configs[share, at.CONFIG_TYPE]
    on = sim.residents(board)
    best, best_gpu, best_key = -1, -1, (-np.inf, -np.inf)
    own = label[v, int(jobs[job, at.APPLICATION])]
    for index in range(on.last.shape[0]):
        n, gpu = index // per_node, index % per_node
        if nodes[n, at.NODE_TYPE] != v or not sim.has_room(board, share, n, gpu, False):
            continue
        key = (2.0, -float(nodes[n, at.FREE]))
        if gpus.jobs[index] > 0.0:
            other = int(jobs[board.active[on.holder[on.last[index]]], at.APPLICATION])
            if gpus.jobs[index] > 1.0 or own + label[v, other] > most:
                continue
            speed = sim.speed_in_place(board, job, share, n, gpu, on)
            key = (speed if speed > 0.0 else 1.0, 0.0)
        if key > best_key:
            best, best_gpu, best_key = n, gpu, key
    return best, best_gpu


@dataclass(frozen=True, slots=True)
class Pack(PlannedPolicy):
    """Packing by labels. Running jobs keep what they have; shortest expected GPU-seconds first.

    An application has the label 0, 1 or 2 by its mean speed with all applications as co-runners, averaged over both
    jobs of a pair: 0 from `light`, 1 from `medium`, else 2. Speeds are those of the instance's utilisations or pairs. A
    job takes the cheapest whole GPUs that meet its due date. In place of a single one it takes the largest share of
    which two fit, on an idle GPU, else with one co-runner where it is fastest, if the labels of both sum to `most` at
    most. A job that may use no whole GPUs takes the cheapest share that meets its due date, on such a GPU.

    Args:
        light: Least speed for the label 0, from `medium` to 1.
        medium: Least speed for the label 1, ≥ 0.
        most: Greatest sum of two labels on a GPU, ≥ 0.

    Raises:
        InputError: One of them is out of its range.
    """

    light: float = 0.95
    medium: float = 0.85
    most: int = 2
    name: str = "pack"
    job_order: str = "submission"
    preemption: bool = False

    def __post_init__(self) -> None:
        if not checks.not_negative("medium", self.medium) <= checks.not_negative("light", self.light) <= 1.0:
            raise InputError("light", self.light, f"a number from medium ({self.medium}) to 1")
        checks.whole("most", self.most, 0)

    def _plan(self, view: View) -> None:
        plan_pack(view.board, float(self.light), float(self.medium), int(self.most))
