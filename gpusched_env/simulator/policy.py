"""What a policy is: protocols with one method that matters."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, runtime_checkable

if TYPE_CHECKING:
    from numpy.random import Generator

    from gpusched_env.simulator.ordering import Order
    from gpusched_env.simulator.view import View


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

    def choose(self, view: View, job: int) -> int:
        """Choose a configuration for `job`, given what the jobs before it hold in this round.

        Returns:
            The configuration's index, or -1 to wait.
        """
