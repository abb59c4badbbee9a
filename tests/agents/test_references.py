"""The references of an agent in training, and the warnings on the agent that is kept."""

import pytest

from gpusched_agents.training.algorithm_config import EsConfig
from gpusched_agents.training.config import TrainingConfig
from gpusched_agents.training.references import warnings_of

CONFIG = TrainingConfig()
COSTS = {"sts-x": 100.0, "sts": 110.0, "edf": 120.0}
ADVICE = "; try more decisions (--steps), or another --seed, in another --out"


def curve(*costs: float) -> list[dict[str, float]]:
    return [{"steps": 1000 * k, "total_eur": cost, "relative": cost / 100.0} for k, cost in enumerate(costs)]


@pytest.mark.parametrize("costs", [(5000.0, 100.0), (5000.0, 90.0, 130.0)])
def test_there_is_no_warning_on_a_trained_agent_cheaper_than_edf(costs):
    assert warnings_of(CONFIG, curve(*costs), COSTS) == []


def test_an_agent_costlier_than_edf_is_named_with_what_to_try():
    (outputs,) = warnings_of(CONFIG, curve(5000.0, 180.0), COSTS)
    assert outputs == f"the agent that is kept costs 50.0% more than edf (120.00 €){ADVICE}"


def test_an_agent_that_was_never_trained_is_called_so_however_cheap_it_is():
    (outputs,) = warnings_of(CONFIG, curve(99.0, 100.0), COSTS)
    assert outputs == f"the agent that is kept is sts-x itself: nothing after step 0 was better{ADVICE}"


def test_an_agent_that_goes_on_from_another_begins_as_that():
    (outputs,) = warnings_of(TrainingConfig(agent=EsConfig(begin="agent:default")), curve(99.0, 100.0), COSTS)
    assert "is agent:default itself: nothing after step 0 was better" in outputs
