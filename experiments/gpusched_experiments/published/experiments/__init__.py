"""The experiments, one file each."""

from gpusched_experiments.published.experiments.agents import AGENTS
from gpusched_experiments.published.experiments.cost import COST
from gpusched_experiments.published.experiments.mean_times import MEAN_TIMES
from gpusched_experiments.published.experiments.scaling import SCALING
from gpusched_experiments.published.experiments.sensitivity import SENSITIVITY
from gpusched_experiments.published.experiments.sharing import SHARING_EXPERIMENT
from gpusched_experiments.published.experiments.sts_x import STS_X

EXPERIMENTS = {each.name: each for each in (COST, MEAN_TIMES, SHARING_EXPERIMENT, SENSITIVITY, STS_X, AGENTS, SCALING)}
"""The experiments by name, in the order in which `all` runs them: timings come last, when nothing else runs."""

__all__ = ["AGENTS", "COST", "EXPERIMENTS", "MEAN_TIMES", "SCALING", "SENSITIVITY", "SHARING_EXPERIMENT", "STS_X"]
