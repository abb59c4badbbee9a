"""The shipped policies by name."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from gpusched_baselines.dispatching.dispatch import edf, edf_mean, fifo, priority
from gpusched_baselines.dispatching.greedy import Greedy
from gpusched_baselines.search.local_search import LocalSearch
from gpusched_baselines.search.path_relinking import PathRelinking
from gpusched_baselines.search.random_greedy import RandomGreedy, random_greedy_mean
from gpusched_baselines.sts.sts import Sts
from gpusched_baselines.sts_x.policy import StsX
from gpusched_env.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable

    from gpusched_env.simulator import Policy


@dataclass(frozen=True, slots=True)
class _Shipped:
    """A shipped policy.

    Attributes:
        make: Makes it with its defaults.
        line: Says what it does.
        usual: Whether a comparison that names no policies has it.
    """

    make: Callable[[], Policy]
    line: str
    usual: bool = True


_POLICIES = {
    "fifo": _Shipped(fifo, "First submitted, first served; the cheapest configuration that meets the due date"),
    "edf": _Shipped(edf, "Earliest due date first; the cheapest configuration that meets it"),
    "priority": _Shipped(
        priority, "Largest tardiness weight first; the cheapest configuration that meets the due date"
    ),
    "greedy": _Shipped(Greedy, "All jobs anew by pressure; idle GPUs go to the job that gains the most speed"),
    "random-greedy": _Shipped(
        RandomGreedy, "Greedy and up to 1,000 randomised constructions a round; the best by a proxy"
    ),
    "sts": _Shipped(Sts, "Stochastic: plan each job against the distribution of its epochs, speed up if it survives"),
    "sts-x": _Shipped(
        StsX, "STS over all GPU types at once, at the rates of full nodes, with the patience to fill them"
    ),
    "sts-ipopt": _Shipped(
        partial(Sts, solver="ipopt", name="sts-ipopt"),
        "STS with ten iterations of Ipopt, as in the thesis",
        usual=False,
    ),
    "sts-highs": _Shipped(
        partial(Sts, solver="highs", name="sts-highs"), "STS with HiGHS on the linear program over bins", usual=False
    ),
    "edf-mean": _Shipped(edf_mean, "EDF on expected instead of worst-case execution times", usual=False),
    "random-greedy-mean": _Shipped(
        random_greedy_mean, "Random Greedy on expected instead of worst-case execution times", usual=False
    ),
    "local-search": _Shipped(
        LocalSearch,
        "Random Greedy's best, improved by exchanges and moves of jobs as long as the proxy falls",
        usual=False,
    ),
    "path-relinking": _Shipped(
        PathRelinking, "The best of Random Greedy's ten best rounds and of the paths between them", usual=False
    ),
}


ABLATIONS: dict[str, Callable[[], Policy]] = {
    "sts-x:alone-rates": partial(StsX, full_nodes=0.0, name="sts-x:alone-rates"),
    "sts-x:no-waiting": partial(StsX, waits=False, name="sts-x:no-waiting"),
    "sts-x:no-consolidation": partial(StsX, consolidates=False, name="sts-x:no-consolidation"),
    "sts-x:no-spreading": partial(StsX, spreads=False, name="sts-x:no-spreading"),
    "sts-x:no-smith": partial(StsX, smith=False, name="sts-x:no-smith"),
}
"""STS-X without one of its parts: can be made by name, but no list of policies has them."""


def policy_names() -> tuple[str, ...]:
    """List the names of the shipped policies."""
    return tuple(_POLICIES)


def usual_policy_names() -> tuple[str, ...]:
    """List the names of the policies that are compared if none are named: all but slow ones and variants."""
    return tuple(name for name, shipped in _POLICIES.items() if shipped.usual)


def policy_descriptions() -> dict[str, str]:
    """Give a line on every shipped policy, by name."""
    return {name: shipped.line for name, shipped in _POLICIES.items()}


def make_policy(name: str) -> Policy:
    """Make the policy `name` with its defaults.

    Raises:
        InputError: There is no such policy.
    """
    if name in ABLATIONS:
        return ABLATIONS[name]()
    if name not in _POLICIES:
        raise InputError("policy", name, f"one of {', '.join(_POLICIES)}")
    return _POLICIES[name].make()
