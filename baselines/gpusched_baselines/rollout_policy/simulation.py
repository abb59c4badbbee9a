"""A simulation of the rollout policy: a plan decides one round, a fixed policy the next ones, in one compiled call.

`rate`, (A, C), are the cost rates to plan with [€/s], and `base` is the policy that simulations follow.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpusched_baselines.index_rules.ranks import EXPECTED, Rule, choose_job
from gpusched_baselines.index_rules.ranks import plan_round as plan_by_index
from gpusched_baselines.planning.capacity import usable
from gpusched_baselines.planning.cheapest import with_co_runners
from gpusched_baselines.sts_x.job_plan import PlanOptions
from gpusched_baselines.sts_x.plan import unadapted
from gpusched_baselines.sts_x.policy import StsX, execute_plan, plan_round
from gpusched_env.hooks import expected_arrays
from gpusched_env.model.own_state import drawn_future, new_job_rows, with_state
from gpusched_env.named_arrays import added_fields, build
from gpusched_env.simulator import kernels as sim
from gpusched_env.simulator import stepping
from gpusched_env.simulator.kernels import Board, Floats, at, kernel, lean_kernel
from gpusched_env.simulator.stepping import Hidden

if TYPE_CHECKING:
    from gpusched_env import Policy, View

FORECAST_S = 7 * 86_400.0
"""How far ahead simulations take forecasts of prices; beyond it the last one holds [s]."""
COPIED = ("nodes", "capacity", "clock", "count")


class SimulationCopy(NamedTuple):
    """The boards of the simulations of one round: rows of jobs that were submitted, then of sampled arrivals.

    Attributes:
        start: The round as it begins, from an empty cluster; never changed.
        work: The board that a simulation changes.
        plan: The same arrays except `tau`, which holds the times with which policies plan.
        hidden: The sampled outcome and arrivals.
    """

    start: Board
    work: Board
    plan: Board
    hidden: Hidden


def new_copy(board: Board, coming: int, first: int | None = None) -> SimulationCopy:
    """Make the simulation copy of the round that is open on `board`, with rows for `coming` arrivals.

    Its other rows are those of the active jobs, and of all that were submitted from `first` on; None: of no others.

    Raises:
        InputError: A mechanism keeps state of its own, and cannot draw a future.
    """
    active, known = board.active[: board.count[at.ACTIVE]], int(board.count[at.SUBMITTED])
    kept = np.union1d(active, np.arange(known if first is None else first, known))
    planned = with_co_runners(board).tau[kept]
    start = _compact(board, kept, coming)
    sim.clear(start, start.active[: len(active)])
    work = start.replaced(**{n: a.copy() for n, a in start.__getstate__().items() if n not in _SHARED})
    plan = work.replaced(tau=_longer(planned, coming))
    hidden = build(Hidden, board.mechanisms)(
        outcome=np.full((len(kept) + coming, at.OUTCOME_COLUMNS), np.inf),
        jobs=start.jobs.copy(),
        tau=start.tau.copy(),
        edges=board.edges,
        survival=board.survival,
        tail=board.tail,
        log=np.empty((0, at.LOG_COLUMNS)),
        **expected_arrays(board, None, board.clock[at.NOW] + FORECAST_S),
        **drawn_future(start, np.inf, np.random.default_rng(0)),
    )
    return SimulationCopy(start, work, plan, hidden)


def with_future(copy: SimulationCopy, seed: int, sample: int) -> SimulationCopy:
    """Return the copy in the future of a sample, which mechanisms that keep state of their own draw."""
    if with_state(copy.start.mechanisms) is None:
        return copy
    rng = np.random.default_rng([seed, sample])
    return copy._replace(hidden=copy.hidden.replaced(**drawn_future(copy.start, np.inf, rng)))


_SHARED = frozenset({"facts", "edges", "survival", "tail"})


def _compact(board: Board, kept: NDArray[np.int64], coming: int) -> Board:
    rows, active = len(kept) + coming, int(board.count[at.ACTIVE])
    values: dict[str, Any] = {name: getattr(board, name).copy() for name in (*COPIED, *added_fields(board))}
    for name in ("jobs", "tau", "memory"):
        values[name] = _longer(getattr(board, name)[kept], coming)
    values |= {name: np.concatenate([values[name][kept], new]) for name, new in new_job_rows(board, coming).items()}
    values |= {"active": np.arange(rows), "keys": np.zeros(rows), "order": np.zeros(rows, dtype=np.int64)}
    start = board.replaced(**values)
    start.active[:active] = np.searchsorted(kept, board.active[:active])
    count = start.count
    count[[at.SUBMITTED, at.DONE]] = len(kept), len(kept) - active
    count[[at.LOGGING, at.MILESTONES, at.LOGGED, at.IDLE]] = 0
    start.clock[at.REVIEW] = np.inf
    return start


def _longer(rows: NDArray[np.float64], more: int) -> NDArray[np.float64]:
    return np.concatenate([rows, np.zeros((more, rows.shape[1]))])


@kernel
def reset(start: Board, work: Board) -> None:
    work.jobs[:, :] = start.jobs
    work.memory[:, :] = start.memory
    work.nodes[:, :] = start.nodes
    work.capacity[:, :] = start.capacity
    work.clock[:] = start.clock
    work.count[:] = start.count
    work.active[:] = start.active
    sim.copy_arrays(work, start)


@kernel
def cost_of_rest(board: Board, hidden: Hidden, rate: Floats) -> float:
    """Estimate the energy and the tardiness of the jobs that are active when a simulation stops [€].

    Running jobs go on, each in the configuration in which its remaining epochs cost least, a change included. Waiting
    jobs begin, by weight per work, when the GPUs have done the work before them, as if all GPUs were one machine.
    """
    jobs, active, configs = board.jobs, board.active, board.facts.configs
    size, gpus, work, total = board.count[at.ACTIVE], max(1.0, usable(board)[0]), 0.0, 0.0
    keys, own = np.empty(size), np.zeros(size)
    for i in range(size):
        job = active[i]
        left = max(0.0, hidden.outcome[job, at.NEEDED] - jobs[job, at.EPOCHS])
        held, best = int(jobs[job, at.CONFIG]), int(jobs[job, at.CHEAPEST])
        shown = held if held >= 0 else best
        own[i] = left * board.tau[job, shown] * configs[shown, at.CONFIG_SIZE] / at.UNITS
        keys[i] = -np.inf if held >= 0 else -jobs[job, at.WEIGHT] / max(own[i], 1e-9)
    for i in sim.ranked(keys, size):
        job = active[i]
        left = max(0.0, hidden.outcome[job, at.NEEDED] - jobs[job, at.EPOCHS])
        runs = jobs[job, at.CONFIG] >= 0
        total += _least(board, job, left, 0.0 if runs else work / gpus, rate)
        work += own[i]
    return total


@kernel
def _least(board: Board, job: int, left: float, begin: float, rate: Floats) -> float:
    """Return the least that `left` epochs of a job cost that begin in `begin` seconds [€]."""
    jobs, tau, now = board.jobs, board.tau, board.clock[at.NOW]
    held, least, own = int(jobs[job, at.CONFIG]), np.inf, int(jobs[job, at.APPLICATION])
    for c in range(tau.shape[1]):
        if tau[job, c] == np.inf:
            continue
        seconds = left * tau[job, c] * (jobs[job, at.SLOWDOWN] if c == held else 1.0)
        if sim.same_gpus(board, c, held):
            seconds += max(0.0, jobs[job, at.READY_S] - now)
        else:
            seconds += jobs[job, at.RESTART_S] if held >= 0 else sim.switch_s(board, job, c)
        late = now + begin + seconds - max(jobs[job, at.DUE], now)
        least = min(least, rate[own, c] * seconds + jobs[job, at.WEIGHT] * max(0.0, late))
    return least


class Base(NamedTuple):
    """A policy that plans whole rounds.

    Attributes:
        by_index: Whether it is an index rule; else it is STS-X.
        options: How STS-X plans jobs.
        rule: The index rule.
    """

    by_index: bool
    options: PlanOptions
    rule: Rule


STS_X = Base(
    by_index=False,
    options=StsX().options,
    rule=Rule(EXPECTED, 0.25, 0.5, 0.1),
)

BASES: Mapping[str, Base] = MappingProxyType({"sts-x": STS_X, "atc": STS_X._replace(by_index=True)})
"""The policies that simulations may follow, by name."""


@kernel
def plan_by(board: Board, rate: Floats, base: Base) -> None:
    """Plan the round by a policy; write the plan of every job to its memory."""
    if not base.by_index:
        plan_round(board, base.options, unadapted(board.count[at.ACTIVE], rate))
        return
    plan_by_index(board, base.rule)
    memory = board.memory
    for job in board.active[: board.count[at.ACTIVE]]:
        config, timer = choose_job(board, base.rule, job)
        memory[job, sim.PLANNED], memory[job, sim.TIMER] = config, timer
        memory[job, sim.NODE], memory[job, sim.GPU] = -1.0, -1.0  # the place is not planned


# Columns of the plan of a job.
CONFIG, NODE, GPU, TIMER = range(4)
PLAN_COLUMNS = 4


@lean_kernel
def write_plan(board: Board, plan: Floats) -> None:
    """Write a plan of the active jobs, (A, PLAN_COLUMNS), to their memory."""
    for i in range(board.count[at.ACTIVE]):
        job = board.active[i]
        board.memory[job, sim.ROUND] = board.count[at.ROUND]
        board.memory[job, sim.PLANNED], board.memory[job, sim.NODE] = plan[i, CONFIG], plan[i, NODE]
        board.memory[job, sim.GPU], board.memory[job, sim.TIMER] = plan[i, GPU], plan[i, TIMER]


@kernel
def simulate_copy(
    copy: SimulationCopy, outcome: Floats, rate: Floats, first: Floats, base: Base, until: float, most: int
) -> tuple[float, float]:
    """Decide the round by the plan `first`, and the next ones by a policy.

    Args:
        outcome: Sampled demand of jobs, and when running ones would be complete, (J, OUTCOME_COLUMNS).
        first: The plan of every active job in the round, (A, PLAN_COLUMNS).
        until: Latest end of the simulation [s].
        most: Most rounds of the simulation, ≥ 1.

    Returns:
        The cost from now on, with an estimate for the work left at the end [€]; and the end of the simulation [s].
    """
    start, work, hidden = copy.start, copy.work, copy.hidden
    reset(start, work)
    hidden.outcome[:, :] = outcome
    write_plan(work, first)
    _decide(work, hidden)
    clock, rounds = work.clock, 1
    while rounds < most and _goes_on(work, hidden, until):
        if work.count[at.ACTIVE] > 0:
            stepping.begin_round(work, True)
            plan_by(copy.plan, rate, base)
            _decide(work, hidden)
            rounds += 1
    paid = clock[at.BILL] + clock[at.TARDINESS_COST] - start.clock[at.BILL] - start.clock[at.TARDINESS_COST]
    return paid + cost_of_rest(work, hidden, rate), clock[at.NOW]


@kernel
def _decide(board: Board, hidden: Hidden) -> None:
    sim.order_by(board, sim.PRESSURE, False)
    execute_plan(board, board.order[: board.count[at.TO_ASK]])
    stepping.commit_round(board, hidden)


@kernel
def _goes_on(board: Board, hidden: Hidden, until: float) -> bool:
    time, clock = stepping.next_event(board, hidden), board.clock
    if time > until:
        if until > clock[at.NOW]:
            stepping.accrue(board, hidden, until)
        return False
    if time == np.inf and board.count[at.ACTIVE] == 0:
        return False
    return stepping.advance(board, hidden)


def cost_of_policy(
    copy: SimulationCopy, outcome: Floats, view: View, policy: Policy, most: int, most_eur: float = np.inf
) -> tuple[float, int, int]:
    """Let a policy decide the round and all that follow, until every job of the copy is done.

    Args:
        outcome: Sampled demand of jobs, and when running ones would be complete, (J, OUTCOME_COLUMNS).
        view: The view of the board that the simulation changes.
        policy: The policy; rounds begin from an empty cluster.
        most: Most rounds, ≥ 1.
        most_eur: The simulation stops when it costs more [€].

    Returns:
        The cost from now on [€], inf where it stopped; the rounds; and the active jobs, summed over the rounds.
    """
    work, hidden, rng, planned = copy.work, copy.hidden, np.random.default_rng(0), 0
    hidden.outcome[:, :] = outcome
    clock, count = work.clock, work.count
    before = clock[at.BILL] + clock[at.TARDINESS_COST]
    for number in range(1, most + 1):
        planned += int(count[at.ACTIVE])
        policy.decide(view, rng)
        stepping.commit_round(work, hidden)
        goes_on = stepping.advance(work, hidden)
        while goes_on and count[at.ACTIVE] == 0:
            goes_on = stepping.advance(work, hidden)
        paid = float(clock[at.BILL] + clock[at.TARDINESS_COST] - before)
        if not goes_on:
            return paid, number, planned
        if paid > most_eur:
            break
        stepping.begin_round(work, True)
    return np.inf, number, planned
