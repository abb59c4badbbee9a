"""Reference policies, the exact single-job solver, and lower bounds."""

from gpusched_baselines.bounds import (
    clairvoyant_bound,
    clairvoyant_bounds,
    non_clairvoyant_bound,
    non_clairvoyant_bounds,
)
from gpusched_baselines.dispatch import DispatchPolicy, edf, fifo, priority
from gpusched_baselines.exact import Plan, Segment, solve_single_job
from gpusched_baselines.greedy import Greedy
from gpusched_baselines.random_greedy import RandomGreedy
from gpusched_baselines.registry import make_policy, policy_descriptions, policy_names
from gpusched_baselines.sts import Sts

__all__ = [
    "DispatchPolicy",
    "Greedy",
    "Plan",
    "RandomGreedy",
    "Segment",
    "Sts",
    "clairvoyant_bound",
    "clairvoyant_bounds",
    "edf",
    "fifo",
    "make_policy",
    "non_clairvoyant_bound",
    "non_clairvoyant_bounds",
    "policy_descriptions",
    "policy_names",
    "priority",
    "solve_single_job",
]
