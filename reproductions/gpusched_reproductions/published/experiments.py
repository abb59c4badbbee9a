"""The list of the published experiments."""

from gpusched_reproductions.published.conformance import CONFORMANCE
from gpusched_reproductions.published.cost import COST, MEAN_TIMES
from gpusched_reproductions.published.forecasts import FORECASTS
from gpusched_reproductions.published.load import LOAD, SHARING_EXPERIMENT
from gpusched_reproductions.published.scaling import SCALING
from gpusched_reproductions.published.sts_x import AGENTS, STS_X
from gpusched_reproductions.published.value_of_information import VALUE_OF_INFORMATION_EXPERIMENT
from gpusched_reproductions.published.why import WHY

_ORDER = (
    CONFORMANCE,
    COST,
    MEAN_TIMES,
    SHARING_EXPERIMENT,
    WHY,
    LOAD,
    STS_X,
    VALUE_OF_INFORMATION_EXPERIMENT,
    AGENTS,
    FORECASTS,
    SCALING,
)
EXPERIMENTS = {each.name: each for each in _ORDER}
"""The experiments by name, in the order in which `all` runs them: timings come last, when nothing else runs."""
