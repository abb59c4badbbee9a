"""Policies that choose one start for each job, as GAIA does: by the price, or by free reserved GPUs, or by both."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np

from gpusched_baselines.planning.cheapest import WORST_CASE, Epochs, any_capacity, check_epochs, left_of
from gpusched_baselines.planning.cheapest import cheapest_with as cheapest
from gpusched_baselines.price_rules import rules
from gpusched_baselines.price_rules.terms import JobTerms, Waiting, signal_of, terms_of
from gpusched_env.errors import InputError
from gpusched_env.simulator import kernels as sim
from gpusched_env.simulator.kernels import View, at

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.random import Generator

    from gpusched_baselines.price_rules.rules import StartRule
    from gpusched_baselines.price_rules.signal import Signal
    from gpusched_env.simulator.kernels import Order

# Columns of the policy's memory of a job.
SEEN = 0  # 1 once its start is chosen
START_S = 1  # its start [s]
RESERVED = 2  # 1 if it runs on reserved GPUs

RULES: Mapping[str, StartRule] = MappingProxyType(
    {
        "lowest-slot": rules.lowest_slot,
        "lowest-window": rules.lowest_window,
        "carbon-time": rules.carbon_time,
        "limit": rules.at_limit,
    }
)
"""The rules by name; `limit` starts jobs when they may wait no longer."""


@dataclass(frozen=True, slots=True)
class StartByPrice:
    """Each job starts once, at a time that a rule chooses at its submission; then it runs on.

    Jobs whose start has come are placed as by EDF: by due date, or another order, each on the cheapest configuration
    that fits and meets the due date in the worst case. So is every job where the price of energy does not change.

    Args:
        rule: The rule: one of `RULES`.
        epochs: What it knows of the length: the time of the mean epochs, or of the worst case, on the configuration
            that is cheapest in time whatever is free.
        waiting: How long jobs may wait.
        reserved: Part of the GPUs that are reserved: paid for anyway. A job for which enough are free starts at once.
        job_order: The order in which jobs are placed.
        name: Name, as tables show it.

    Raises:
        InputError: A value is out of its range.
    """

    rule: str = "carbon-time"
    epochs: Epochs = "mean"
    waiting: Waiting = field(default_factory=Waiting)
    reserved: float = 0.0
    job_order: Order = "due"
    name: str = "carbon-time"
    preemption: bool = False

    def __post_init__(self) -> None:
        if self.rule not in RULES:
            raise InputError("rule", self.rule, f"one of {', '.join(RULES)}")
        check_epochs(self.epochs)
        sim.check_order(self.job_order)
        if not 0.0 <= self.reserved <= 1.0:
            raise InputError("reserved", self.reserved, "a number from 0 to 1")

    def decide(self, view: View, rng: Generator) -> None:  # noqa: ARG002 - the rules draw nothing
        """Choose the starts of new jobs, and place those whose start has come."""
        order = sim.ask_order(view, self.job_order, waiting_only=True)
        if len(view.prices):
            self._choose_starts(view, [job for job in order.tolist() if view.memory[job, SEEN] == 0.0])
        free = self._reserved_free(view) if self.reserved else 0.0
        for job in order.tolist():
            config = int(cheapest(view.board, view.board.planning_rate, job, left_of(view.board, job, WORST_CASE)))
            if config < 0:
                if not any_capacity(view.board):
                    return
                continue
            gpus = float(view.configs[config, at.CONFIG_SIZE]) / at.UNITS
            if rules.may_start(view.now_s + sim.SAME_TIME_S, float(view.memory[job, START_S]), gpus, free):
                view.place(job, config)
                view.memory[job, RESERVED] = float(gpus <= free)
                free -= gpus if gpus <= free else 0.0

    def _choose_starts(self, view: View, new: list[int]) -> None:
        known = [(job, terms, self._limit_s(terms)) for job in new for terms in (terms_of(view, job, self.epochs),)]
        until_s = view.now_s + max((terms.length_s + limit_s for _, terms, limit_s in known), default=0.0)
        signal = signal_of(view, until_s) if known else None
        for job, terms, limit_s in known:
            start_s = self._start_s(signal, view.now_s, terms.length_s, limit_s)
            view.memory[job, SEEN], view.memory[job, START_S] = 1.0, start_s
            view.set_timer(job, start_s if start_s > view.now_s else np.inf)

    def _start_s(self, signal: Signal | None, now_s: float, length_s: float, limit_s: float) -> float:
        return now_s if signal is None else RULES[self.rule](signal, now_s, length_s, limit_s)

    def _limit_s(self, terms: JobTerms) -> float:
        limit_s = self.waiting.limit_s(terms.length_s)
        return min(limit_s, max(terms.slack_s, 0.0)) if self.waiting.meets_due_dates else limit_s

    def _reserved_free(self, view: View) -> float:
        active = view.active
        running = active[(view.jobs[active, at.CONFIG] >= 0.0) & (view.memory[active, RESERVED] > 0.0)]
        sizes = view.configs[view.jobs[running, at.CONFIG].astype(np.int64), at.CONFIG_SIZE]
        return float(self.reserved * view.nodes[:, at.USABLE].sum() - sizes.sum() / at.UNITS)
