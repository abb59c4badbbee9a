"""Gavel's round mechanism (section 6 of the paper) and its memory: jobs get approximately their shares of time."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from gpusched_env.errors import InputError
from gpusched_env.simulator import kernels as sim
from gpusched_env.simulator.kernels import Board, Floats, Ints, View, at, kernel, lean_kernel

if TYPE_CHECKING:
    from numpy.random import Generator
    from numpy.typing import NDArray

    from gpusched_baselines.gavel.program import GavelDemand
    from gpusched_env.model import Instance

# Columns of the policy's memory with K options: first K with shares of time x, K with the time got since the last
# reset [s], K with deficits [s]. Then:
KNOWN = 0  # 1 if the job was active at the last reset
# and, in the first row only:
ROUND_END = 1  # when the present round ends [s]
RESET_AT = 2  # time of the last reset [s]; 0: none, or one at the very beginning
SEEN = 3  # 1 + submissions + completions until then
ISOLATED = 4  # first of three columns of every job about its time in isolation
TOTALS = 7  # first of the columns with the time of all jobs on each GPU type [s]

# `ISOLATED` and the next two, of every job: at the last program the time in isolation that what was done took [s], the
# epochs left, and the isolated speed [1/s].


@dataclass(frozen=True, slots=True, eq=False)
class StepSpeeds:
    """Steps per second of jobs that do whole steps in a round: P applications, C configurations, V GPU types.

    Attributes:
        alone: Those of an application in a configuration, ≥ 0, (P, C); 0 where steps are not known.
        paired: Those of an application with another one on a GPU, ≥ 0, (V, P, P); 0 where steps are not known.

    Raises:
        InputError: A speed is negative or not finite.
    """

    alone: NDArray[np.float64]
    paired: NDArray[np.float64]

    def __post_init__(self) -> None:
        for name, speed in (("alone", self.alone), ("paired", self.paired)):
            if not np.all(np.isfinite(speed) & (speed >= 0.0)):
                raise InputError(f"steps.{name}", float(np.min(speed)), "finite numbers >= 0")


def whole_steps_s(speed: NDArray[np.float64], round_s: float) -> NDArray[np.float64]:
    """Return the time of the whole steps in a round [s], of the shape of `speed` [1/s]; all of it where there is none.

    Args:
        round_s: Length of a round [s], > 0.
    """
    steps = np.floor(round_s * speed)
    return np.where(steps > 0.0, steps / np.maximum(speed, 1e-300), round_s)


@lean_kernel
def columns(options: int, types: int) -> int:
    return 3 * options + TOTALS + types


def isolated_so_far(memory: NDArray[np.float64], demand: GavelDemand, own: int) -> NDArray[np.float64]:
    """Return the time that what the jobs have done took in isolation [s], (A,), and remember it for the next program.

    Epochs between two programs took their number / the isolated speed at the first of the two; before its first program
    a job has done nothing.

    Args:
        memory: The policy's memory, (J, M).
        own: First column after those of the options.
    """
    mine = memory[demand.job, own + ISOLATED : own + ISOLATED + 3]
    done = np.maximum(mine[:, 1] - demand.left, 0.0)
    so_far = mine[:, 0] + np.where(mine[:, 2] > 0.0, done / np.maximum(mine[:, 2], 1e-300), 0.0)
    memory[demand.job, own + ISOLATED : own + ISOLATED + 3] = np.column_stack([so_far, demand.left, demand.isolated])
    return so_far


@kernel
def place_as_before(board: Board) -> None:
    for i in range(board.count[at.ACTIVE]):
        job = board.active[i]
        if board.jobs[job, at.OLD_CONFIG] >= 0:
            sim.place(board, job, int(board.jobs[job, at.OLD_CONFIG]))


@kernel
def reevaluate_all(board: Board, time_s: float) -> None:
    """Set the timers of all jobs to `time_s` [s]: if some complete before, the others still cause a round."""
    for i in range(board.count[at.ACTIVE]):
        sim.set_timer_at(board, board.active[i], time_s)


@kernel
def reset(board: Board, jobs: Ints, x: Floats, kind: Ints, half_s: float) -> None:
    """Reset the counts for the shares `x`; add to the deficits what jobs got less than their old shares.

    Args:
        jobs: The active jobs, (A,).
        x: Their new shares, (A, K).
        kind: GPU types of the options, (K,).
        half_s: The time of every job in every option at the start, half a round [s].
    """
    memory, now, options = board.memory, board.clock[at.NOW], x.shape[1]
    own, types = 3 * options, board.capacity.shape[0]
    since = now - memory[0, own + RESET_AT]
    for v in range(types):
        memory[0, own + TOTALS + v] = 0.0
    for i in range(jobs.shape[0]):
        row = memory[jobs[i]]
        for k in range(options):
            if row[own + KNOWN] > 0.0:
                row[2 * options + k] += row[k] * since - (row[options + k] - half_s)
            row[k], row[options + k] = x[i, k], half_s
            memory[0, own + TOTALS + kind[k]] += half_s
        row[own + KNOWN] = 1.0
    memory[0, own + RESET_AT] = now
    memory[0, own + SEEN] = 1.0 + board.count[at.ACTIVE] + 2 * board.count[at.DONE]


@kernel
def place_by_priority(
    board: Board, jobs: Ints, config: Ints, kind: Ints, order: Ints, credit_s: Floats, idle_too: bool
) -> None:
    """Fill the GPU types one after the other, each with the jobs of highest priority that fit.

    The priority of an option is x / (time of the job in it / time of all jobs on its type); of equals the larger
    deficit goes first, then the larger x, then the earlier job.

    Args:
        jobs: The active jobs, (A,).
        config: The configurations of their options, (A, K); -1 for none.
        kind: GPU types of the options, (K,).
        order: The GPU types in the order in which they are filled, (V,).
        credit_s: Time that a round counts for in every option [s], (A, K).
        idle_too: Whether GPUs that are left go to jobs that have no share of their type.
    """
    memory, options = board.memory, kind.shape[0]
    own, most = 3 * kind.shape[0], jobs.shape[0] * kind.shape[0]
    keys, who = np.empty((3, most)), np.empty((2, most), dtype=np.int64)
    for v in order:
        n, total = 0, memory[0, own + TOTALS + v]
        for i in range(jobs.shape[0]):
            row = memory[jobs[i]]
            if board.jobs[jobs[i], at.CONFIG] >= 0 or row[own + KNOWN] == 0.0:
                continue
            for k in range(options):
                if kind[k] != v or config[i, k] < 0 or not (row[k] > 0.0 or idle_too):
                    continue
                keys[0, n], keys[1, n], keys[2, n] = -row[k] * total / row[options + k], -row[2 * options + k], -row[k]
                who[0, n], who[1, n] = i, k
                n += 1
        for r in _by_keys(keys, n):
            i, k = who[0, r], who[1, r]
            if board.jobs[jobs[i], at.CONFIG] < 0 and sim.place(board, jobs[i], config[i, k]):
                memory[jobs[i], options + k] += credit_s[i, k]
                memory[0, own + TOTALS + v] += credit_s[i, k]


@kernel
def _by_keys(keys: Floats, size: int) -> Ints:
    """Sort by the first row of keys, equals by the second, then the third, then the index."""
    order = np.arange(size)
    for key in range(keys.shape[0] - 1, -1, -1):
        sorted_keys = np.empty(size)
        for i in range(size):
            sorted_keys[i] = keys[key, order[i]]
        order = order[sim.ranked(sorted_keys, size)]
    return order


def fastest_types(demand: GavelDemand) -> NDArray[np.int64]:
    """Return the GPU types, the one on which the active jobs are fastest on average first, (V,)."""
    relative = demand.speed / np.maximum(demand.speed.max(axis=1), 1e-300)[:, None]
    return np.argsort(-relative.mean(axis=0), kind="stable")


class ByRounds:
    """A policy that approximates shares of time by rounds of `round_s` seconds.

    The shares are computed again at most every `reset_s` seconds, and only after arrivals or completions. With
    `at_once` every event begins a round, and the shares are computed at every arrival and completion, and `reset_s`
    after the last time. Jobs have an option for each GPU type, or with `any_configuration` for each configuration.
    """

    __slots__ = ()
    round_s: float
    reset_s: float
    at_once = False
    any_configuration = False
    steps: StepSpeeds | None = None

    @property
    def fills(self) -> bool:
        return False

    def demand(self, view: View) -> GavelDemand:
        raise NotImplementedError

    def shares(self, demand: GavelDemand, rng: Generator) -> NDArray[np.float64]:
        raise NotImplementedError

    def solve(self, view: View, demand: GavelDemand, rng: Generator) -> NDArray[np.float64]:  # noqa: ARG002
        """Solve for the shares of time, (A, K); a policy with more options than these keeps theirs in its memory."""
        return self.shares(demand, rng)

    def credit_s(self, view: View, demand: GavelDemand) -> NDArray[np.float64]:
        """Return the time that a round counts for in every option [s], (A, K): that of the job's whole steps."""
        if self.steps is None:
            return np.full(demand.config.shape, self.round_s)
        application, speed = view.jobs[demand.job, at.APPLICATION].astype(np.int64), self.steps.alone
        needs = 1 + int(application.max(initial=0)), len(view.configs)
        if speed.shape[0] < needs[0] or speed.shape[1] < needs[1]:
            raise InputError("steps.alone", speed.shape, f"{needs} or more")
        speed = speed[application[:, None], np.maximum(demand.config, 0)]
        return whole_steps_s(np.where(demand.config >= 0, speed, 0.0), self.round_s)

    def fill(self, view: View, demand: GavelDemand, order: NDArray[np.int64]) -> None:
        kind = demand.kind.copy()  # one type of array, so that the kernel is compiled once
        credit_s = self.credit_s(view, demand)
        place_by_priority(view.board, demand.job, demand.config, kind, order, credit_s, self.fills)

    def order(self, demand: GavelDemand, rng: Generator) -> NDArray[np.int64]:
        """Return the GPU types in the order in which rounds fill them, (V,)."""
        raise NotImplementedError

    def memory_columns(self, instance: Instance) -> int:
        types = len(instance.gpu_types)
        return columns(len(instance.configurations) if self.any_configuration else types, types)

    def decide(self, view: View, rng: Generator) -> None:
        """Begin a round if the last one is over or nothing runs any more; else leave everything as it is."""
        board = view.board
        options = len(view.configurations) if self.any_configuration else len(view.capacity)
        own, needs = 3 * options, columns(options, len(view.capacity))
        if view.memory.shape[1] < needs:
            raise InputError("memory_columns", view.memory.shape[1], f"{needs} or more")
        end_s = float(view.memory[0, own + ROUND_END])
        if not self.at_once and view.now_s < end_s and np.any(view.jobs[view.active, at.OLD_CONFIG] >= 0):
            place_as_before(board)
            reevaluate_all(board, end_s)
            return
        demand = self.demand(view)
        if self._is_due(view, own):
            demand = replace(demand, isolated_s=isolated_so_far(view.memory, demand, own))
            x = self.solve(view, demand, rng)
            reset(board, demand.job, x, demand.kind, 0.5 * self.round_s)
        order = self.order(demand, rng)
        self.fill(view, demand, order)
        view.memory[0, own + ROUND_END] = view.now_s + self.round_s
        reevaluate_all(board, view.now_s + self.round_s)

    def _is_due(self, view: View, own: int) -> bool:
        first = view.memory[0]
        changed = first[own + SEEN] != 1.0 + view.count[at.ACTIVE] + 2 * view.count[at.DONE]
        reset_at = first[own + RESET_AT]
        # A reset at time 0 counts as none, as in Gavel's own simulator: the next one need not wait.
        passed = reset_at == 0.0 or view.now_s - reset_at >= self.reset_s
        return bool(changed or passed) if self.at_once else bool(changed and passed)
