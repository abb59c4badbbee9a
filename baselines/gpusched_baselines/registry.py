"""The shipped policies by name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpusched_baselines.dispatch import edf, fifo, priority
from gpusched_baselines.greedy import Greedy
from gpusched_baselines.random_greedy import RandomGreedy
from gpusched_baselines.sts import Sts
from gpusched_env.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable

    from gpusched_env.simulator import Policy

_POLICIES: dict[str, tuple[Callable[[], Policy], str]] = {
    "fifo": (fifo, "First submitted, first served; the cheapest configuration that meets the due date"),
    "edf": (edf, "Earliest due date first; the cheapest configuration that meets it"),
    "priority": (priority, "Largest tardiness weight first; the cheapest configuration that meets the due date"),
    "greedy": (Greedy, "All jobs anew by pressure; idle GPUs go to the job that gains the most speed"),
    "random-greedy": (RandomGreedy, "Greedy and up to 1,000 randomised constructions a round; the best by a proxy"),
    "sts": (Sts, "Stochastic: plan each job against the distribution of its epochs, speed up if it survives"),
}


def policy_names() -> tuple[str, ...]:
    """List the names of the shipped policies."""
    return tuple(_POLICIES)


def policy_descriptions() -> dict[str, str]:
    """Give a line on every shipped policy, by name."""
    return {name: line for name, (_, line) in _POLICIES.items()}


def make_policy(name: str) -> Policy:
    """Make the policy `name` with its defaults.

    Raises:
        InputError: There is no such policy.
    """
    if name not in _POLICIES:
        raise InputError("policy", name, f"one of {', '.join(_POLICIES)}")
    return _POLICIES[name][0]()
