"""Policies that pause jobs while energy is costly: Ecovisor and Wait AWhile.

A pause costs what every pause costs in the simulator: the job restarts. Jobs that run count it as time that they need.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

import numpy as np

from gpusched_baselines.dispatching.dispatch import dispatch
from gpusched_baselines.planning.cheapest import WORST_CASE, Epochs, check_epochs, left_of_all
from gpusched_baselines.price_rules import rules
from gpusched_baselines.price_rules.rules import DAY
from gpusched_baselines.price_rules.terms import JobTerms, Waiting, signal_of, terms_of
from gpusched_env.errors import InputError
from gpusched_env.simulator import kernels as sim
from gpusched_env.simulator.kernels import View, at

if TYPE_CHECKING:
    from numpy.random import Generator

    from gpusched_baselines.price_rules.signal import Signal
    from gpusched_env.simulator.kernels import Order

# Columns of the policy's memory of a job.
SEEN = 0  # 1 once it is known
WAITING_S = 1  # how long it may still wait by its queue [s]
THRESHOLD = 2  # Ecovisor's threshold
UNTIL_S = 3  # until when WAITING_S is counted [s]
END_S = 4  # when Wait AWhile wants it done [s]


@dataclass(frozen=True, slots=True)
class PauseByPrice:
    """Jobs run while a rule says so, and are paused else.

    "threshold", Ecovisor: while the price is below the 30 % quantile of the 24 hours after the submission; all the time
    once the limit of the queue, or the slack in the worst case, is used up. It knows no length but for the queue.
    "cheapest", Wait AWhile: in the cheapest hours until the length and the limit of the queue are over, or the due date
    if it is before. Decided again in every round, for what is left. Published for a known length: with an instance of
    `gpusched_baselines.hindsight.with_known_needs` it is.

    Jobs that are to run are placed as by EDF. So is every job where the price of energy does not change.

    Args:
        rule: The rule.
        epochs: What it knows of the length: the time of the mean epochs, or of the worst case.
        waiting: How long jobs may wait in all.
        job_order: The order in which jobs are placed.
        name: Name, as tables show it.

    Raises:
        InputError: A value is out of its range.
    """

    rule: Literal["threshold", "cheapest"] = "threshold"
    epochs: Epochs = "worst-case"
    waiting: Waiting = field(default_factory=Waiting)
    job_order: Order = "due"
    name: str = "ecovisor"
    preemption: bool = False

    def __post_init__(self) -> None:
        if self.rule not in {"threshold", "cheapest"}:
            raise InputError("rule", self.rule, "threshold or cheapest")
        check_epochs(self.epochs)
        sim.check_order(self.job_order)

    def decide(self, view: View, rng: Generator) -> None:  # noqa: ARG002 - the rules draw nothing
        """Pause and place the jobs of this round."""
        paused = self._pause(view) if len(view.prices) else set()
        order = sim.ask_order(view, self.job_order, waiting_only=True)
        order = order[[job not in paused for job in order.tolist()]]
        dispatch(view.board, order, left_of_all(view.board, order, WORST_CASE))

    def _pause(self, view: View) -> set[int]:
        """Return the jobs that do not run now, and release what they hold; set all timers."""
        now_s, memory, paused = view.now_s, view.memory, set()
        known = [(job, terms_of(view, job, self.epochs)) for job in view.active.tolist()]
        for job, terms in known:
            self._count_waiting(view, job, terms)
        until_s = max((float(memory[job, END_S]) for job, _ in known), default=now_s)
        signal = signal_of(view, max(until_s, now_s + DAY))
        for job, terms in known:
            if memory[job, SEEN] == 1.0:
                memory[job, SEEN], memory[job, THRESHOLD] = 2.0, rules.threshold(signal, now_s)
            runs, change_s = self._runs(view, signal, job, terms)
            if not runs:
                paused.add(job)
                if view.jobs[job, at.CONFIG] >= 0.0:
                    view.release(job)
            view.set_timer(job, change_s if change_s > now_s + sim.SAME_TIME_S else np.inf)
        return paused

    def _count_waiting(self, view: View, job: int, terms: JobTerms) -> None:
        memory, now_s = view.memory, view.now_s
        if memory[job, SEEN] == 0.0:
            limit_s = self.waiting.limit_s(terms.length_s)
            memory[job, SEEN], memory[job, WAITING_S] = 1.0, limit_s
            memory[job, END_S] = now_s + terms.length_s + limit_s
        elif view.jobs[job, at.OLD_CONFIG] < 0.0:
            memory[job, WAITING_S] -= now_s - memory[job, UNTIL_S]
        memory[job, UNTIL_S] = now_s

    def _runs(self, view: View, signal: Signal, job: int, terms: JobTerms) -> tuple[bool, float]:
        """Return whether a job runs now, and until when that holds [s]."""
        now_s, memory = view.now_s, view.memory
        if self.rule == "threshold":
            waiting_s = float(memory[job, WAITING_S])
            waiting_s = min(waiting_s, terms.slack_s) if self.waiting.meets_due_dates else waiting_s
            waiting_s = waiting_s if waiting_s > sim.SAME_TIME_S * max(1.0, now_s) else 0.0
            return rules.below_threshold(signal, float(memory[job, THRESHOLD]), now_s, waiting_s)
        end_s, due_s = float(memory[job, END_S]), float(view.jobs[job, at.DUE])
        end_s = min(end_s, due_s) if self.waiting.meets_due_dates else end_s
        if self.waiting.meets_due_dates and terms.slack_s <= 0.0:
            return True, np.inf
        pieces = rules.cheapest_hours(signal, now_s, terms.length_s, end_s)
        if pieces and pieces[0][0] > now_s and view.jobs[job, at.CONFIG] >= 0.0:  # after a pause it restarts
            pieces = rules.cheapest_hours(signal, now_s, terms.length_s + terms.restart_s, end_s)
        runs = not pieces or pieces[0][0] <= now_s + sim.SAME_TIME_S
        return runs, np.inf if not pieces or (runs and len(pieces) == 1) else pieces[0][1 if runs else 0]
