"""Policies: their protocols, how they are asked, and whether they can decide on an instance."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypedDict, runtime_checkable

import numpy as np

from gpusched_env.errors import InputError
from gpusched_env.model import Instance, checks
from gpusched_env.simulator.rounds import NAMED_ORDERS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.random import Generator

    from gpusched_env.simulator.choice import Choice
    from gpusched_env.simulator.ordering import Order
    from gpusched_env.simulator.view import View

FREE_COLUMNS = 23  # columns of a policy's memory, in addition to three for each GPU type
CONTROL_COLUMNS = 44  # further ones in an environment, in addition to two for each GPU type


@runtime_checkable
class Policy(Protocol):
    """Decides whole rounds.

    A policy keeps the state of a run in `view.memory`, not in itself, so that one object may serve many runs.
    """

    @property
    def name(self) -> str:
        """Name of the policy in tables."""

    @property
    def preemption(self) -> bool:
        """Whether a round begins from an empty cluster; else running jobs keep what they have, unless released."""

    def decide(self, view: View, rng: Generator) -> None:
        """Place the jobs of this round with `view.place`; a job that is not placed waits.

        Args:
            view: The present state.
            rng: The run's own source of randomness.
        """


@runtime_checkable
class JobPolicy(Policy, Protocol):
    """Decides job by job, so it can act in the environment too."""

    @property
    def job_order(self) -> Order:
        """The order in which the round asks its jobs."""

    def choose(self, view: View, job: int) -> Choice:
        """Choose for `job`, given what the jobs before it hold in this round; it changes nothing but `view.memory`."""


@runtime_checkable
class Selective(Protocol):
    """A policy that cannot decide on every instance."""

    def check(self, instance: Instance) -> None:
        """Raise InputError if the policy cannot decide on `instance`."""


@runtime_checkable
class Remembering(Protocol):
    """A policy that needs another number of columns of memory than the default."""

    def memory_columns(self, instance: Instance) -> int:
        """Return the columns of `view.memory` that it needs on `instance`, ≥ 1."""


@runtime_checkable
class Replaying(Protocol):
    """A policy that may replay a trace: it sees the traced starts and configurations of jobs."""

    @property
    def replays(self) -> bool:
        """Whether it does, and sees `layout.TRACED_START_S` and `layout.TRACED_CONFIG`; all others do not."""


@runtime_checkable
class LookingBack(Protocol):
    """A policy that reads completed jobs."""

    @property
    def jobs_over(self) -> int:
        """The number of them that it reads, those submitted last, ≥ 1."""


@runtime_checkable
class AskedAs(Protocol):
    """A policy that is asked as in an environment, at milestones of jobs too; all others at events and timers."""

    @property
    def asking(self) -> Asking:
        """How rounds ask it."""


def memory_columns(policy: Policy, instance: Instance) -> int:
    """Return the columns of memory of a run of `policy` on `instance`: `FREE_COLUMNS` + 3 V, or its own number."""
    if not isinstance(policy, Remembering):
        return FREE_COLUMNS + 3 * len(instance.gpu_types)
    return checks.whole(f"{policy.name}: memory_columns", policy.memory_columns(instance))


def environment_columns(instance: Instance) -> int:
    """Return the columns of memory of an environment, which may ask any policy: enough to keep controls of STS-X."""
    return FREE_COLUMNS + CONTROL_COLUMNS + 5 * len(instance.gpu_types)


def check_fit(policies: Iterable[Policy], instance: Instance) -> None:
    """Check that every policy can decide on `instance`.

    Raises:
        InputError: One cannot; the error names it.
    """
    for policy in policies:
        if isinstance(policy, Selective):
            try:
                policy.check(instance)
            except InputError as error:
                raise InputError(f"{policy.name}: {error.field}", error.value, error.allowed) from error


def can_decide(policy: Policy, instance: Instance) -> bool:
    """Whether `policy` can decide on `instance`."""
    try:
        check_fit([policy], instance)
    except InputError:
        return False
    return True


class AskingSettings(TypedDict, total=False):
    """The settings of `Asking` as keywords of an environment."""

    preemption: bool
    job_order: str
    milestones: int
    idle_review_s: float
    due_date_timers: bool
    consolidation: bool


@dataclass(frozen=True, slots=True)
class Asking:
    """How an environment asks its agent.

    Args:
        preemption: Whether a round begins from an empty cluster and asks every active job; else running jobs keep their
            GPUs and only waiting ones are asked.
        job_order: Order in which a round asks its jobs: `pressure`, `submission`, `due` or `weight`.
        milestones: Each job begins a round at this many equal fractions of its maximum epochs, ≥ 0 (0: never).
        idle_review_s: Step of the clock when nothing runs and nothing is pending [s], > 0.
        due_date_timers: Whether a job that would miss its due date as it runs, or waits, gets a round just before
            the cheapest configuration that would still meet it would miss it (in place of `set_timer`).
        consolidation: Whether a job whose previous node is off in this round goes to one of the same GPU type that is
            on, if it fits there and the move costs no restart; else jobs return to their node where they fit.

    Raises:
        InputError: One of them is of the wrong kind or out of its range.
    """

    preemption: bool = True
    job_order: str = "pressure"
    milestones: int = 4
    idle_review_s: float = 3600.0
    due_date_timers: bool = False
    consolidation: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.job_order, str) or self.job_order not in NAMED_ORDERS:
            raise InputError("job_order", self.job_order, f"one of {', '.join(NAMED_ORDERS)}")
        checks.whole("milestones", self.milestones, 0)
        checks.duration("idle_review_s", self.idle_review_s)
        for name in ("preemption", "due_date_timers", "consolidation"):
            flag = getattr(self, name)
            if not isinstance(flag, bool | np.bool_):
                raise InputError(name, flag, "True or False")
            object.__setattr__(self, name, bool(flag))


AS_A_POLICY = Asking(milestones=0)
"""How `simulate` asks: at events and timers only. Order and preemption are then the policy's own."""
