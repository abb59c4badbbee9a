"""Index rules as policies."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from gpusched_baselines.index_rules.ranks import (
    ATTAINED,
    EXPECTED,
    GITTINS,
    WORST_CASE,
    Rule,
    choose_job,
    plan_round,
)
from gpusched_baselines.planning.cheapest import with_co_runners
from gpusched_env.errors import InputError
from gpusched_env.model import checks
from gpusched_env.simulator import kernels as sim
from gpusched_env.simulator.kernels import Board, Choice, Ints, View, at, kernel

if TYPE_CHECKING:
    from numpy.random import Generator


Work = Literal["expected", "worst-case", "gittins", "attained"]
"""How an index rule measures a job's work."""

_WORK: dict[str, int] = {"expected": EXPECTED, "worst-case": WORST_CASE, "gittins": GITTINS, "attained": ATTAINED}


@dataclass(frozen=True, slots=True)
class IndexRule:
    """The jobs with the largest weight per work first, each on the configuration with the least price.

    A round begins from an empty cluster. In the order of the index, ties by job index, each job takes the cheapest
    configuration that fits and meets the due date, else the cheapest that fits, else it waits. The cheapest is that
    with the least τ_c · (ℓ_c + μ · ρ · g_c): power, and GPU-seconds at their cost in the full cluster.

    The policy plans the round as a whole at the decision on its first job; then it places the jobs in the order in
    which the round asks for them. Where the placement differs from the plan, the same rule decides again. So one such
    policy should decide the whole round.

    Args:
        name: Name, as tables show it.
        work: A job's work, in GPU-seconds on its efficient configuration: the work left in expectation ("expected") or
            in the worst case ("worst-case"), the work per completion at the best stopping time ("gittins"), or the work
            attained so far ("attained").
        due_scale: K > 0: the index falls by the factor e for every K mean execution times of slack; inf: due dates do
            not count.
        gpu_price: μ ≥ 0, the price of a GPU-second, as a multiple of its cost in the full cluster.
        quantum: With "attained", how much more than a waiting job a running job attains before it is preempted, > 0 and
            ≤ 1, as a fraction of the maximum epochs of the waiting job.
        co_located: Whether shares are planned with the expected co-runners; else with the worst possible ones.

    Raises:
        InputError: One of them is out of its range.
    """

    name: str
    work: Work = "expected"
    due_scale: float = math.inf
    gpu_price: float = 0.5
    quantum: float = 0.1
    co_located: bool = False
    job_order: str = "pressure"
    preemption: bool = True

    def __post_init__(self) -> None:
        if self.work not in _WORK:
            raise InputError("work", self.work, ", ".join(_WORK))
        if self.due_scale != math.inf:
            checks.positive("due_scale", self.due_scale)
        checks.not_negative("gpu_price", self.gpu_price)
        if checks.positive("quantum", self.quantum) > 1.0:
            raise InputError("quantum", self.quantum, "a number > 0 and <= 1")

    def decide(self, view: View, rng: Generator) -> None:  # noqa: ARG002 - index rules draw nothing
        """Place all active jobs."""
        place_by_index(self._seen(view), sim.ask_order(view, self.job_order, waiting_only=False), self.rule)

    def choose(self, view: View, job: int) -> Choice:
        """Choose the configuration and the timer of one job."""
        if view.memory[job, sim.ROUND] != view.count[at.ROUND]:
            plan_round(self._seen(view), self.rule)
        config, timer = choose_job(self._seen(view), self.rule, job)
        return Choice(int(config), float(timer))

    def _seen(self, view: View) -> Board:
        return with_co_runners(view.board) if self.co_located else view.board

    @property
    def rule(self) -> Rule:
        """Return its settings, as kernels take them."""
        return Rule(_WORK[self.work], float(self.due_scale), float(self.gpu_price), float(self.quantum))


@kernel
def place_by_index(board: Board, order: Ints, rule: Rule) -> None:
    plan_round(board, rule)
    for job in order:
        config, timer = choose_job(board, rule, job)
        sim.apply_choice(board, job, False, timer)
        if config >= 0:
            sim.place(board, job, config)


def atc() -> IndexRule:
    """Make the apparent-tardiness-cost rule on the expected work left."""
    return IndexRule("atc", due_scale=0.25)


def atc_co_located() -> IndexRule:
    """Make the apparent-tardiness-cost rule with the expected co-runners on shared GPUs."""
    return IndexRule("atc:co-located", due_scale=0.25, co_located=True)


def atc_worst() -> IndexRule:
    """Make the apparent-tardiness-cost rule on the worst-case work left."""
    return IndexRule("atc:worst", "worst-case", due_scale=0.25)


def gittins() -> IndexRule:
    """Make the Gittins index rule."""
    return IndexRule("gittins", "gittins")


def sept() -> IndexRule:
    """Make the rule of least expected work left per weight first."""
    return IndexRule("sept")


def srpt_worst() -> IndexRule:
    """Make the rule of least worst-case work left per weight first."""
    return IndexRule("sept:worst", "worst-case")


def las() -> IndexRule:
    """Make the rule of least attained service per weight first."""
    return IndexRule("las", "attained")
