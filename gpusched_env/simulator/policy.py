"""What a policy is: protocols with one method that matters, and whether it can decide on an instance."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, runtime_checkable

from gpusched_env.errors import InputError
from gpusched_env.model import checks

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.random import Generator

    from gpusched_env.model import Instance
    from gpusched_env.simulator.asking import Asking
    from gpusched_env.simulator.choice import Choice
    from gpusched_env.simulator.ordering import Order
    from gpusched_env.simulator.view import View


FREE_COLUMNS = 16  # columns of a policy's memory, beside one for each GPU type


@runtime_checkable
class Policy(Protocol):
    """Decides whole rounds.

    A policy keeps nothing of a run in itself (`view.memory` is there for that), so that one object may serve many runs.
    """

    @property
    def name(self) -> str:
        """Name of the policy, as tables show it."""

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
    """Decides job by job, so that it can drive the environment too."""

    @property
    def job_order(self) -> Order:
        """The order in which the round asks its jobs."""

    def choose(self, view: View, job: int) -> Choice:
        """Choose for `job`, given what the jobs before it hold in this round; change nothing."""


@runtime_checkable
class Selective(Protocol):
    """A policy that cannot decide on every instance."""

    def check(self, instance: Instance) -> None:
        """Raise InputError if the policy cannot decide on `instance`."""


@runtime_checkable
class Remembering(Protocol):
    """A policy that needs another number of columns of memory than others get."""

    def memory_columns(self, instance: Instance) -> int:
        """Give the columns of `view.memory` that it needs on `instance`, ≥ 1."""


@runtime_checkable
class Replaying(Protocol):
    """A policy that may repeat what really ran: it sees when jobs of a trace really started, and on what."""

    @property
    def replays(self) -> bool:
        """Whether it does, and so sees `layout.TRACED_START_S` and `layout.TRACED_CONFIG`; all others see none."""


@runtime_checkable
class AskedAs(Protocol):
    """A policy that is asked as an environment asks, at milestones of jobs too; all others at events and wake-ups."""

    @property
    def asking(self) -> Asking:
        """How rounds ask it."""


def memory_columns(policy: Policy, instance: Instance) -> int:
    """Give the columns of memory that a run of `policy` on `instance` has: `FREE_COLUMNS` + V, or as many as it says.

    Raises:
        InputError: The policy asks for none.
    """
    if not isinstance(policy, Remembering):
        return FREE_COLUMNS + len(instance.gpu_types)
    return checks.whole(f"{policy.name}: memory_columns", policy.memory_columns(instance))


def check_fit(policies: Iterable[Policy], instance: Instance) -> None:
    """Check that every policy can decide on `instance`.

    Raises:
        InputError: One cannot; names it.
    """
    for policy in policies:
        if isinstance(policy, Selective):
            try:
                policy.check(instance)
            except InputError as error:
                raise InputError(f"{policy.name}: {error.field}", error.value, error.allowed) from error


def can_decide(policy: Policy, instance: Instance) -> bool:
    """Say whether `policy` can decide on `instance`."""
    try:
        check_fit([policy], instance)
    except InputError:
        return False
    return True
