"""The experiments, one file each."""

from gpusched_reproductions.published.experiments.agents import AGENTS
from gpusched_reproductions.published.experiments.conformance import CONFORMANCE
from gpusched_reproductions.published.experiments.cost import COST
from gpusched_reproductions.published.experiments.lessons import LESSONS_EXPERIMENT
from gpusched_reproductions.published.experiments.load import LOAD
from gpusched_reproductions.published.experiments.mean_times import MEAN_TIMES
from gpusched_reproductions.published.experiments.scaling import SCALING
from gpusched_reproductions.published.experiments.sharing import SHARING_EXPERIMENT
from gpusched_reproductions.published.experiments.sts_x import STS_X
from gpusched_reproductions.published.experiments.why import WHY

EXPERIMENTS = {
    each.name: each
    for each in (
        CONFORMANCE,
        COST,
        MEAN_TIMES,
        SHARING_EXPERIMENT,
        WHY,
        LOAD,
        STS_X,
        LESSONS_EXPERIMENT,
        AGENTS,
        SCALING,
    )
}
"""The experiments by name, in the order in which `all` runs them: timings come last, when nothing else runs."""

__all__ = [
    "AGENTS",
    "CONFORMANCE",
    "COST",
    "EXPERIMENTS",
    "LESSONS_EXPERIMENT",
    "LOAD",
    "MEAN_TIMES",
    "SCALING",
    "SHARING_EXPERIMENT",
    "STS_X",
    "WHY",
]
