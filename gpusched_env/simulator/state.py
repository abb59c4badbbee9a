"""The state of a run: a few wide arrays (their columns are in `layout`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gpusched_env.model import checks
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.events import advance
from gpusched_env.simulator.interference import planned_slowdown
from gpusched_env.simulator.rounds import begin_round, commit_round
from gpusched_env.simulator.view import View

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from gpusched_env.model import Instance, JobTable


class State:
    """Everything that changes in a run of one instance, and the two calls that change it.

    `view` is the part that policies may see; `hidden` (epochs needed and completion times) is not in it.

    Args:
        instance: The instance to run.
        review_s: Interval of fixed reviews [s], > 0 and ≤ `checks.LONGEST_S`; none by default.
        idle_review_s: How far time moves when nothing runs and nothing is pending [s], > 0 and ≤ `LONGEST_S`.
        milestones: Milestones per job: each wakes its round at that many equal fractions of its maximum epochs, ≥ 0.
        deadline_wake_ups: Whether every decision sets the job's wake-up, in time for its due date (`due_wakes`).
        consolidation: Whether every decision lets a job leave its previous node for one in use (`settle`).
        record: Whether the intervals of the run are kept.
    """

    def __init__(
        self,
        instance: Instance,
        *,
        review_s: float | None = None,
        idle_review_s: float = 3600.0,
        milestones: int = 0,
        deadline_wake_ups: bool = False,
        consolidation: bool = False,
        record: bool = True,
    ) -> None:
        jobs = instance.jobs
        self.instance = instance
        self.planned_slowdown = planned_slowdown(instance)
        self.clock = np.zeros(at.CLOCK_COLUMNS)
        self.clock[at.REVIEW] = np.inf if review_s is None else checks.duration("review_s", review_s)
        self.clock[at.IDLE_REVIEW] = checks.duration("idle_review_s", idle_review_s)
        self.count = np.zeros(at.COUNT_COLUMNS, dtype=np.int64)
        self.count[at.MILESTONES] = checks.whole("milestones", milestones, 0)
        self.count[at.DUE_WAKES] = int(deadline_wake_ups)
        self.count[at.CONSOLIDATES] = int(consolidation)
        self.count[at.LOGGING] = int(record)
        self.log = np.empty((4 * len(jobs) + 16 if record else 0, at.LOG_COLUMNS))
        self.view = View(instance, self.clock, self.count)
        self.hidden = _hidden_state(jobs, self.planned_slowdown[jobs.application], self.view.least_rate)

    def advance(self) -> bool:
        """Run to the next event; return False when every job is done."""
        view = self.view
        self.make_room()
        return advance(
            view.jobs,
            self.hidden,
            view.nodes,
            view.configs,
            view.room,
            view.tau,
            view.node_rate,
            self.clock,
            self.count,
            view.active_buffer,
            self.log,
        )

    def begin_round(self, preemption: bool) -> None:
        """Open a decision round; with `preemption` it begins from an empty cluster."""
        view = self.view
        begin_round(view.jobs, view.nodes, self.count, view.active_buffer, view.room, preemption)

    def commit_round(self) -> None:
        """Close the decision round: what was placed holds from now on."""
        view = self.view
        commit_round(
            view.jobs,
            self.hidden,
            view.nodes,
            view.tau,
            view.node_rate,
            view.slowdown,
            self.planned_slowdown,
            self.clock,
            self.count,
            view.active_buffer,
            self.log,
        )

    def make_room(self) -> None:
        """Grow the log so that the next round and event surely fit: each active job ends at most two intervals.

        They take a row each, and those on several nodes no more than one for every node of the cluster.
        """
        most = 2 * int(self.count[at.ACTIVE]) + 2 * len(self.view.nodes) + 2
        if self.count[at.LOGGING] and len(self.log) - self.count[at.LOGGED] < most:
            more = max(len(self.log), most)
            self.log = np.concatenate([self.log, np.empty((more, at.LOG_COLUMNS))])


def _hidden_state(
    table: JobTable, slowdown: NDArray[np.float64], least_rate: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Make the hidden array: epochs needed, and all of every job until it is submitted.

    `slowdown` is the factor with which policies plan, (J, C); `least_rate` the cost rates in full nodes [€/s], (C,).
    """
    seconds = table.seconds_per_epoch * slowdown
    hidden = np.zeros((len(table), at.FUTURE_TAU + table.seconds_per_epoch.shape[1]))
    hidden[:, at.NEEDED] = table.epochs_needed
    hidden[:, at.FINISH_S] = np.inf
    hidden[:, at.FUTURE_TAU :] = seconds
    jobs = hidden[:, at.FUTURE : at.FUTURE_TAU]
    jobs[:, at.SUBMISSION] = table.submission_s
    jobs[:, at.DUE] = table.due_s
    jobs[:, at.WEIGHT] = table.tardiness_weight_eur_per_s
    jobs[:, at.MAX_EPOCHS] = table.max_epochs
    jobs[:, at.MIN_TAU] = seconds.min(axis=1)
    jobs[:, at.MAX_TAU] = np.where(np.isfinite(seconds), seconds, 0.0).max(axis=1)
    jobs[:, at.DISTRIBUTION] = table.distribution
    jobs[:, at.WAKE_S] = -np.inf
    jobs[:, at.MILESTONE] = 1.0
    jobs[:, at.APPLICATION] = table.application
    jobs[:, at.RESTART_S] = table.restart_s
    jobs[:, at.PACE] = 1.0
    jobs[:, [at.CONFIG, at.NODE, at.SLOT, at.OLD_CONFIG, at.OLD_NODE, at.OLD_SLOT, at.HOME, at.HOME_SLOT]] = -1.0
    jobs[:, [at.START_S, at.END_S]] = np.nan
    price = np.where(np.isfinite(seconds), seconds, np.inf) * np.maximum(least_rate, 1e-300)
    cheapest = price.argmin(axis=1)
    exists = np.isfinite(price.min(axis=1))
    jobs[:, at.CHEAPEST] = np.where(exists, cheapest, -1)
    jobs[:, at.CHEAPEST_TAU] = np.where(exists, seconds[np.arange(len(table)), cheapest], np.inf)
    return hidden
