"""Reference policies, the exact single-job solver, and lower bounds."""

from typing import TYPE_CHECKING

from gpusched_env.lazy import lazy_names
from gpusched_env.version import VERSION

if TYPE_CHECKING:
    from gpusched_baselines.bounds.capacity import (
        CapacityPrices,
        capacity_bound,
        capacity_prices,
        clairvoyant_bound,
        clairvoyant_bounds,
        non_clairvoyant_bound,
        non_clairvoyant_bounds,
    )
    from gpusched_baselines.bounds.priced import priced_bound
    from gpusched_baselines.dispatching.dispatch import (
        AsTraced,
        DispatchPolicy,
        Greedy,
        edf,
        edf_conditional_mean,
        edf_mean,
        edf_preemptive,
        fifo,
        priority,
    )
    from gpusched_baselines.dispatching.slack_slice import SlackSlice
    from gpusched_baselines.dispatching.time_slice import HiveD, TimeSlice
    from gpusched_baselines.dispatching.tiresias import Tiresias
    from gpusched_baselines.dispatching.zeus_limit import ZeusLimit
    from gpusched_baselines.gavel import Gavel, GavelCost
    from gpusched_baselines.hindsight import hindsight_cost
    from gpusched_baselines.index_rules import IndexRule, atc, atc_co_located, atc_worst, gittins, las, sept, srpt_worst
    from gpusched_baselines.planning.single_job import Plan, Segment, SingleJobProblem, solve_single_job
    from gpusched_baselines.power_cap.policy import CappedStsX
    from gpusched_baselines.registry import make_policy, policy_descriptions, policy_names, usual_policy_names
    from gpusched_baselines.search.constructions import RandomGreedy, random_greedy_conditional_mean, random_greedy_mean
    from gpusched_baselines.search.path_relinking import LocalSearch, PathRelinking
    from gpusched_baselines.shared_gpus.antman import AntMan
    from gpusched_baselines.shared_gpus.fill import Fill
    from gpusched_baselines.shared_gpus.pack import Pack
    from gpusched_baselines.sts import Sts
    from gpusched_baselines.sts_x.policy import StsX

__all__ = [
    "AntMan",
    "AsTraced",
    "CapacityPrices",
    "CappedStsX",
    "DispatchPolicy",
    "Fill",
    "Gavel",
    "GavelCost",
    "Greedy",
    "HiveD",
    "IndexRule",
    "LocalSearch",
    "Pack",
    "PathRelinking",
    "Plan",
    "RandomGreedy",
    "Segment",
    "SingleJobProblem",
    "SlackSlice",
    "Sts",
    "StsX",
    "TimeSlice",
    "Tiresias",
    "ZeusLimit",
    "atc",
    "atc_co_located",
    "atc_worst",
    "capacity_bound",
    "capacity_prices",
    "clairvoyant_bound",
    "clairvoyant_bounds",
    "edf",
    "edf_conditional_mean",
    "edf_mean",
    "edf_preemptive",
    "fifo",
    "gittins",
    "hindsight_cost",
    "las",
    "make_policy",
    "non_clairvoyant_bound",
    "non_clairvoyant_bounds",
    "policy_descriptions",
    "policy_names",
    "priced_bound",
    "priority",
    "random_greedy_conditional_mean",
    "random_greedy_mean",
    "sept",
    "solve_single_job",
    "srpt_worst",
    "usual_policy_names",
]

__version__ = VERSION

__getattr__ = lazy_names(__name__, __file__)
