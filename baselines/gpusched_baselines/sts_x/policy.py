"""STS-X: STS with one hull over everything, at the rates of full nodes, and with the patience to fill them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gpusched_baselines.planning.cheapest import beside_company, cheapest_fitting, rates_by_duty
from gpusched_baselines.sts_x.appraisal import FREE_RATE, Parts
from gpusched_baselines.sts_x.plan import Steering, unsteered
from gpusched_baselines.sts_x.round import plan_round
from gpusched_env.errors import InputError
from gpusched_env.model import checks
from gpusched_env.simulator import kernels as sim
from gpusched_env.simulator.kernels import Board, Floats, Ints, PlannedPolicy, View, at, kernel


@kernel
def carry_out(board: Board, order: Ints) -> None:
    """Decide the open round as planned, job by job in the given order, (A,)."""
    for job in order:
        config, wake = choose_planned(board, job)
        sim.give(board, job, config, wake)


@kernel
def choose_planned(board: Board, job: int) -> tuple[int, float]:
    """Return what the plan of the round says, configuration and wake-up, or what fits if that does not."""
    config, wake = int(board.memory[job, sim.PLANNED]), board.memory[job, sim.WAKE]
    if config < 0 or sim.may_have(board, job, config):
        return config, wake
    # The placement came out otherwise than planned.
    if wake <= board.clock[at.NOW]:
        wake = np.inf
    return cheapest_fitting(board, board.least_rate, job), wake


@dataclass(frozen=True, slots=True)
class StsX(PlannedPolicy):
    """STS-X, our own: no job runs on GPUs that are dearer than those it can afford to wait for.

    Every job is planned over the configurations of all GPU types at once, shares and whole nodes included, at the rates
    of full nodes. The plan weighs tardiness against energy: it may be late where being in time would cost more. Where
    GPUs are short their power counts for more, by what those who wait for them lose. A job whose plan leaves no
    time to lose is urgent and runs now, on a node that is on if it can. Jobs that must be late go first, by what a
    second is worth to them for the GPU-seconds that they need; the others go by slack. A job with slack runs only where
    it is cheapest, on a node that is on anyway or that such jobs fill together; else it waits, at the longest until its
    slack ends. Idle GPUs of nodes that are on are then given to jobs there while that makes an epoch cheaper, and jobs
    leave nodes that the round can do without. Where restarts cost time, jobs change only for what is worth it, and
    those that keep their configuration stay.

    The round is planned as a whole when its first job is asked; then the jobs are decided one by one. So one such
    policy should decide the whole round. A restart that is under way when a round is planned is not counted, only those
    that changes would take.

    Args:
        full_nodes: How full nodes are expected to be, 0 to 1: 1 plans at the rates of full nodes, 0 at those of a job
            alone on its node, as STS does.
        waits: Whether jobs with slack may wait.
        consolidates: Whether jobs leave nodes that the round can do without.
        spreads: Whether idle GPUs of nodes that are on are given to jobs there.
        guarantees: Whether plans meet the due date where they can if all epochs are needed, whatever that costs.
        priced: Whether GPUs cost more than their power where they are short.
        by_value: Whether jobs that must be late go first, by the value of their time; else they go by slack too.
        stays: Whether the round is placed again so that jobs that keep their configuration stay where they are.
        company: Whether shares are planned beside the company to be expected; else, as where due dates are guaranteed,
            beside the worst there can be.
        name: Name, as tables show it.

    Raises:
        InputError: `full_nodes` is not a number from 0 to 1.
    """

    full_nodes: float = 1.0
    waits: bool = True
    consolidates: bool = True
    spreads: bool = True
    guarantees: bool = False
    priced: bool = True
    by_value: bool = True
    stays: bool = True
    company: bool = True
    name: str = "sts-x"
    job_order: str = "pressure"
    preemption: bool = True
    _carry_out = staticmethod(carry_out)
    _planned = staticmethod(choose_planned)

    def __post_init__(self) -> None:
        if checks.not_negative("full_nodes", self.full_nodes) > 1.0:
            raise InputError("full_nodes", self.full_nodes, "a number from 0 to 1")

    @property
    def parts(self) -> Parts:
        """The parts that are in use, as kernels take them."""
        return Parts(
            self.waits, self.consolidates, self.spreads, self.guarantees, self.priced, self.by_value, self.stays
        )

    def rates(self, board: Board) -> Floats:
        """Return the cost rates of configurations to plan the open round with [€/s], (C,)."""
        full = np.where(np.isfinite(board.least_rate), board.least_rate, board.planning_rate)
        rate = self.full_nodes * full + (1.0 - self.full_nodes) * board.planning_rate
        rate = rates_by_duty(board, rate)
        if not rate.any():  # energy is free: what counts is the GPUs that others want
            rate = FREE_RATE * board.facts.configs[:, at.CONFIG_SIZE] / at.UNITS
        return rate

    def _plan(self, view: View) -> None:
        board = beside_company(view.board) if self.company and not self.guarantees else view.board
        plan_round(board, self.parts, self._steering(board, self.rates(board)))

    def _steering(self, board: Board, rate: Floats) -> Steering:
        """Give what is said of the round, which an agent may: here, nothing."""
        return unsteered(int(board.count[at.ACTIVE]), rate)
