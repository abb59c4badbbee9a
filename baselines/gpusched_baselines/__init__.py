"""Reference policies, the exact single-job solver, and lower bounds."""

from gpusched_baselines.bounds import (
    clairvoyant_bound,
    clairvoyant_bounds,
    non_clairvoyant_bound,
    non_clairvoyant_bounds,
)
from gpusched_baselines.dispatch import DispatchPolicy, edf, edf_mean, fifo, priority
from gpusched_baselines.exact import Plan, Segment, solve_single_job
from gpusched_baselines.greedy import Greedy
from gpusched_baselines.local_search import LocalSearch
from gpusched_baselines.path_relinking import PathRelinking
from gpusched_baselines.random_greedy import RandomGreedy, random_greedy_mean
from gpusched_baselines.registry import make_policy, policy_descriptions, policy_names, usual_policy_names
from gpusched_baselines.sts import Sts
from gpusched_baselines.sts_x import StsX

__all__ = [
    "DispatchPolicy",
    "Greedy",
    "LocalSearch",
    "PathRelinking",
    "Plan",
    "RandomGreedy",
    "Segment",
    "Sts",
    "StsX",
    "clairvoyant_bound",
    "clairvoyant_bounds",
    "edf",
    "edf_mean",
    "fifo",
    "make_policy",
    "non_clairvoyant_bound",
    "non_clairvoyant_bounds",
    "policy_descriptions",
    "policy_names",
    "priority",
    "random_greedy_mean",
    "solve_single_job",
    "usual_policy_names",
]
