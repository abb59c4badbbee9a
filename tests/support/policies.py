"""Policies for tests that run all of them."""

from dataclasses import dataclass, fields, replace
from typing import Any

from numpy.random import Generator

from gpusched_baselines import make_policy
from gpusched_baselines.rollout_policy import RolloutPolicy
from gpusched_baselines.rollout_policy.policy import RolloutSettings
from gpusched_env import Instance, JobPolicy, Policy, View
from gpusched_env.simulator.ordering import ask_order
from gpusched_env.simulator.policy import memory_columns

QUICK_LOOK = RolloutSettings(first=2, second=1, challenger_samples=3, deviations=4, rounds=4, base_rounds=6, arrivals=2)
"""Settings of `RolloutPolicy` for tests."""


def quick_policy(name: str, constructions: int = 20) -> Policy:
    """Make the policy `name`; one that constructs rounds at random does so a few times only."""
    policy: Any = make_policy(name)
    if isinstance(policy, RolloutPolicy):
        return replace(policy, settings=QUICK_LOOK)
    randomised = any(field.name == "constructions" for field in fields(policy))
    return replace(policy, constructions=constructions) if randomised else policy


@dataclass(frozen=True)
class JobByJob:
    """A policy that asks another one job by job, as an environment does, and does what it chooses."""

    policy: JobPolicy
    name: str = "job-by-job"

    @property
    def preemption(self) -> bool:
        return self.policy.preemption

    def memory_columns(self, instance: Instance) -> int:
        return memory_columns(self.policy, instance)

    def decide(self, view: View, rng: Generator) -> None:
        for job in ask_order(view, self.policy.job_order, waiting_only=not self.preemption).tolist():
            choice = self.policy.choose(view, job)
            view.apply(job, choice)
            if choice.config >= 0:
                view.place(job, choice.config)
