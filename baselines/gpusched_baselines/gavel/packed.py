"""Gavel with space sharing, and Gandiva's packing: rounds that place pairs of jobs on one GPU."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np

from gpusched_baselines.gavel.gandiva import random_pairs
from gpusched_baselines.gavel.pairs import packed_las, pairs_of
from gpusched_baselines.gavel.program import rigid
from gpusched_baselines.gavel.round import KNOWN, ByRounds, StepSpeeds, columns, fastest_types, whole_steps_s
from gpusched_env.errors import InputError
from gpusched_env.model import checks
from gpusched_env.simulator import kernels as sim
from gpusched_env.simulator.kernels import Board, Floats, Ints, View, at, kernel

if TYPE_CHECKING:
    from numpy.random import Generator
    from numpy.typing import NDArray

    from gpusched_baselines.gavel.program import GavelDemand
    from gpusched_env.model import Instance

MOST_PAIRED = 224  # jobs that can be in pairs at a time, the first submitted
# Columns after those of `round`: the rank of a job at the last reset, -1 if it was not there or is not among the first
# `MOST_PAIRED`; the job it is paired with by `random_pairs`, itself: alone, -1: neither; then, in the row whose index
# is the rank of the first job of a pair, two for every rank of the second and every GPU type: share, and time got [s].
RANK, PARTNER, TABLE = 0, 1, 2


@kernel
def _list_pairs(board: Board, jobs: Ints, half: Ints, v: int, base: int, keys: Floats, who: Ints, found: int) -> int:
    """Add the pairs with a share of the type `v` of which both jobs wait to `keys` and `who`; return their number."""
    memory, types = board.memory, half.shape[1]
    ranks = np.full(jobs.shape[0], -1)
    for i in range(jobs.shape[0]):
        if half[i, v] >= 0 and board.jobs[jobs[i], at.CONFIG] < 0:
            ranks[i] = int(memory[jobs[i], base + RANK])
    able = np.flatnonzero(ranks >= 0)
    for a in range(able.shape[0]):
        row = memory[ranks[able[a]]]
        for other in able[a + 1 :]:
            column = base + TABLE + 2 * (ranks[other] * types + v)
            if row[column] > 0.0:
                keys[found] = -row[column] / row[column + 1]
                who[0, found], who[1, found] = able[a], other
                found += 1
    return found


@kernel
def place_with_pairs(
    board: Board, jobs: Ints, config: Ints, half: Ints, order: Ints, credit_s: Floats, paired_s: Floats
) -> None:
    """Fill the GPU types one after the other with jobs alone and pairs, those of highest priority that fit first.

    The priority is x / (its time / the time of all on the type), as of `place_by_priority`; of equals jobs alone go
    first, then the earlier ones.

    Args:
        jobs: The active jobs, (A,).
        config: Their configurations alone on every type, (A, V); -1 for none.
        half: Their shares in a pair, (A, V); -1 for none.
        order: The GPU types in the order in which they are filled, (V,).
        credit_s: Time that a round alone counts for on every type [s], (A, V).
        paired_s: Time that a round in a pair counts for, by type and applications [s], (V, P, P).
    """
    memory, types, n = board.memory, half.shape[1], jobs.shape[0]
    own, base = 3 * types, columns(types, types)
    keys, who = np.empty(n + n * (n - 1) // 2), np.full((2, n + n * (n - 1) // 2), -1)
    for v in order:
        found = 0
        for i in range(n):
            row = memory[jobs[i]]
            if row[own + KNOWN] > 0.0 and board.jobs[jobs[i], at.CONFIG] < 0 and config[i, v] >= 0:
                keys[found] = -row[v] / row[types + v]
                who[0, found], who[1, found] = i, -1
                found += 1
        found = _list_pairs(board, jobs, half, v, base, keys, who, found)
        for r in sim.ranked(keys[:found].copy(), found):
            i, j = who[0, r], who[1, r]
            if board.jobs[jobs[i], at.CONFIG] >= 0:
                continue
            if j < 0:
                if sim.place(board, jobs[i], config[i, v]):
                    memory[jobs[i], types + v] += credit_s[i, v]
            elif board.jobs[jobs[j], at.CONFIG] < 0 and _place_pair(board, jobs[i], jobs[j], half[i, v], half[j, v]):
                rank, other = int(memory[jobs[i], base + RANK]), int(memory[jobs[j], base + RANK])
                one, two = int(board.jobs[jobs[i], at.APPLICATION]), int(board.jobs[jobs[j], at.APPLICATION])
                memory[rank, base + TABLE + 2 * (other * types + v) + 1] += paired_s[v, one, two]


@kernel
def _place_pair(board: Board, one: int, other: int, config: int, other_config: int) -> bool:
    """Place two jobs on one GPU; True if there was one."""
    if not sim.place(board, one, config):
        return False
    node, gpu = int(board.jobs[one, at.NODE]), int(board.jobs[one, at.SLOT])
    sim.set_preferred_node(board, other, node, gpu)
    if sim.place(board, other, other_config):
        if board.jobs[other, at.NODE] == node and board.jobs[other, at.SLOT] == gpu:
            return True
        sim.release(board, other)
    sim.release(board, one)
    return False


Rule = Literal["las", "gandiva"]
"""How the shares of time of jobs alone and in pairs are found."""


@dataclass(frozen=True, slots=True)
class GavelPacked(ByRounds):
    """Gavel with space sharing: a program sets the shares of time of jobs alone and of pairs on one GPU.

    Pairs are of jobs of one GPU; both get a share of a half of it, and slow one another down as the interference model
    of the instance says. Rounds are as those of `Gavel`: pairs are options beside the types.

    Args:
        rule: "las", max-min fairness of the time of jobs; "gandiva", the time divided equally among jobs alone and
            pairs that are drawn at random, where the jobs ask for more GPUs than there are.
        round_s: Length of a round [s], > 0.
        reset_s: Least time between two programs [s], ≥ 0.
        type_order: As of `Gavel`.
        steps: As of `Gavel`; a round counts for a pair as the longer of the times of its two jobs.
        name: Name, as tables show it.

    Raises:
        InputError: One of them is out of its range.
    """

    rule: Rule = "las"
    round_s: float = 360.0
    reset_s: float = 1920.0
    type_order: tuple[int, ...] | None = None
    steps: StepSpeeds | None = None
    name: str = "gavel:las-packed"
    preemption: bool = True
    solver: str = "interior point"

    def __post_init__(self) -> None:
        if self.rule not in get_args(Rule):
            raise InputError("rule", self.rule, ", ".join(get_args(Rule)))
        checks.duration("round_s", self.round_s)
        checks.seconds("reset_s", self.reset_s)

    def memory_columns(self, instance: Instance) -> int:
        types = len(instance.gpu_types)
        return columns(types, types) + TABLE + 2 * types * min(MOST_PAIRED, len(instance.jobs))

    def demand(self, view: View) -> GavelDemand:
        return rigid(view, whole=True)

    def order(self, demand: GavelDemand, rng: Generator) -> NDArray[np.int64]:  # noqa: ARG002 - nothing is drawn
        return fastest_types(demand) if self.type_order is None else np.array(self.type_order)

    def solve(self, view: View, demand: GavelDemand, rng: Generator) -> NDArray[np.float64]:
        """Solve for the shares of time alone, (A, V), and write those of pairs to the memory."""
        types = len(view.capacity)
        base, most = columns(types, types), min(MOST_PAIRED, view.memory.shape[0])
        pairs, jobs = pairs_of(view, demand.job), demand.job
        if self.rule == "gandiva":
            partner = view.memory[jobs, base + PARTNER].astype(np.int64)
            known = view.memory[jobs, types * 3] > 0.0
            x, packed, partner = random_pairs(demand, pairs, np.where(known, partner, -1), rng)
            view.memory[jobs, base + PARTNER] = partner
        else:
            x, packed = packed_las(demand, pairs)
        paired = min(most, len(jobs))
        view.memory[jobs, base + RANK] = np.where(np.arange(len(jobs)) < paired, np.arange(len(jobs)), -1)
        table = np.stack([packed[:paired, :paired], np.full((paired, paired, types), 0.5 * self.round_s)], axis=-1)
        view.memory[:paired, base + TABLE : base + TABLE + 2 * types * paired] = table.reshape(paired, -1)
        return x

    def fill(self, view: View, demand: GavelDemand, order: NDArray[np.int64]) -> None:
        types = len(view.capacity)
        half = pairs_of(view, demand.job).config
        new = view.memory[demand.job, 3 * types + KNOWN] == 0.0
        view.memory[demand.job[new], columns(types, types) + RANK] = -1.0
        credit_s, paired_s = self.credit_s(view, demand), self.paired_s(view, demand)
        place_with_pairs(view.board, demand.job, demand.config, half, order, credit_s, paired_s)

    def paired_s(self, view: View, demand: GavelDemand) -> Floats:
        """Return the time that a round counts for in a pair [s], (V, P, P): the longer of that of the two jobs."""
        applications = 1 + int(view.jobs[demand.job, at.APPLICATION].max(initial=0))
        needs = len(view.capacity), applications, applications
        if self.steps is None:
            return np.full(needs, self.round_s)
        if np.any(np.less(self.steps.paired.shape, needs)):
            raise InputError("steps.paired", self.steps.paired.shape, f"{needs} or more")
        each = whole_steps_s(self.steps.paired, self.round_s)
        return np.maximum(each, each.transpose(0, 2, 1))
