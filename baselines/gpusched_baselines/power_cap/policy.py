"""STS-X under a power cap: the round is planned as if there were none, and then every job gets a power limit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from gpusched_baselines.power_cap.limits import (
    PAUSED,
    POLCA,
    PRICE,
    PRIORITY,
    UNIFORM,
    choose_levels,
    offers_of,
)
from gpusched_baselines.sts_x import plan as of
from gpusched_baselines.sts_x.policy import StsX
from gpusched_env.errors import InputError
from gpusched_env.mechanisms.cap.model import PowerCap
from gpusched_env.simulator import kernels as sim
from gpusched_env.simulator.kernels import Board, Ints, View, at, kernel

if TYPE_CHECKING:
    from gpusched_env.model import Instance

RULES = {"uniform": UNIFORM, "priority": PRIORITY, "polca": POLCA, "price": PRICE}


@dataclass(frozen=True, slots=True)
class CappedStsX(StsX):
    """STS-X whose jobs get power limits so that the site stays under its cap.

    STS-X plans the round without power limits, as if there were no cap. Then a rule gives every job that is to run one
    of the limits that it is offered, in the planned place, or pauses it:

    - *uniform*: one limit for all, the highest with which the site stays under its cap.
    - *priority*: tiers by slack; those whose slack allows a loss of 50, 25 or 10 % of their speed are slowed down
      first, by no more than that.
    - *polca*: above 80 % of the cap jobs with slack are slowed down by one step, above 89 % they get the lowest limit
      and the others one step; limits are released 5 points below.
    - *price*: power has the least price with which the site stays under its cap; a job takes the limit at which an
      epoch costs least: energy, GPUs, its time and that price.

    Without a cap it is STS-X without power limits. Shares of GPUs have no limits here.

    Args:
        rule: The rule: one of those.
        name: Name, as tables show it.

    Raises:
        InputError: There is no such rule.
    """

    rule: str = "price"
    name: str = "sts-x-cap"

    def __post_init__(self) -> None:
        StsX.__post_init__(self)
        if self.rule not in RULES:
            raise InputError("rule", self.rule, f"one of {', '.join(RULES)}")

    def check(self, instance: Instance) -> None:
        """Check that jobs hold whole GPUs where the site has a cap.

        Raises:
            InputError: There are shares.
        """
        for index, configuration in enumerate(instance.configurations if instance.of(PowerCap) is not None else ()):
            if configuration.kind == "shared":
                raise InputError(f"configurations[{index}]", configuration.name, "whole GPUs where the site has a cap")

    def _plan(self, view: View) -> None:
        board = view.board
        StsX._plan(self, _unlimited_view(view))  # noqa: SLF001 - its own base
        if board.clock[at.CAP_KW] < np.inf:
            limit_plan(board, RULES[self.rule], _most_limits(board))


def _most_limits(board: Board) -> int:
    return int(np.bincount(board.facts.configs[:, at.CONFIG_UNLIMITED]).max())


def _unlimited_view(view: View) -> View:
    """Return the view of a board without a cap, on which a job may use each kind of GPUs at its highest limit alone.

    What is planned on it is written to the same memory; all else that it changes is put back, or a copy.
    """
    board, groups = view.board, view.board.facts.configs[:, at.CONFIG_UNLIMITED]
    if np.array_equal(groups, np.arange(len(groups))) and board.clock[at.CAP_KW] == np.inf:
        return view
    jobs, tau, clock = board.jobs.copy(), board.tau.copy(), board.clock.copy()
    active = board.active[: board.count[at.ACTIVE]]
    highest = np.full((len(active), len(groups)), -1)  # configuration of each job and kind of GPUs
    for c in sorted(range(len(groups)), key=lambda c: view.configurations[c].power_limit):
        highest[:, groups[c]] = np.where(np.isfinite(tau[active, c]), c, highest[:, groups[c]])
    tau[:, groups != np.arange(len(groups))] = np.inf
    tau[active] = np.where(highest[:, groups] == np.arange(len(groups)), board.tau[active], np.inf)
    clock[at.CAP_KW] = np.inf
    for column in (at.CONFIG, at.OLD_CONFIG):
        held = jobs[active, column].astype(np.int64)
        jobs[active, column] = np.where(held >= 0, highest[np.arange(len(active)), groups[held]], held)
    rate = np.maximum(board.least_rate[jobs[active, at.APPLICATION].astype(np.int64)], 1e-300)
    price = np.where(np.isfinite(tau[active]) & np.isfinite(rate), tau[active] * rate, np.inf)
    cheapest = price.argmin(axis=1)
    jobs[active, at.CHEAPEST] = np.where(np.isfinite(price.min(axis=1)), cheapest, -1)
    jobs[active, at.CHEAPEST_TAU] = tau[active, cheapest]
    return View(board.replaced(jobs=jobs, tau=tau, clock=clock), view.configurations)


@kernel
def limit_plan(board: Board, rule: int, levels: int) -> None:
    active, memory = board.active[: board.count[at.ACTIVE]], board.memory
    planned, value = np.empty(active.shape[0], dtype=np.int64), np.empty(active.shape[0])
    for i in range(active.shape[0]):
        planned[i], value[i] = int(memory[active[i], sim.PLANNED]), max(0.0, memory[active[i], of.BARE_VALUE])
    offers = offers_of(board, planned, value, levels)
    level = choose_levels(board, offers, rule)
    _write(board, offers.jobs, offers.configs, level)


@kernel
def _write(board: Board, jobs: Ints, configs: Ints, level: Ints) -> None:
    for i in range(jobs.shape[0]):
        board.memory[jobs[i], sim.PLANNED] = -1 if level[i] == PAUSED else configs[i, level[i]]
