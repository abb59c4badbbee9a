"""The references of an agent in training, and the warnings on the agent that is kept."""

from __future__ import annotations

import pytest

from gpusched_agents.training.algorithm_config import EsConfig
from gpusched_agents.training.config import ImitationConfig, TrainingConfig
from gpusched_agents.training.references import reference_names, warnings_of

TAUGHT = TrainingConfig(imitation=ImitationConfig(expert="sts-x", steps=40_000))
UNTAUGHT = TrainingConfig(imitation=ImitationConfig(steps=0))
COSTS = {"sts-x": 100.0, "sts": 110.0, "edf": 120.0}


def curve(*costs: float) -> list[dict[str, float]]:
    return [{"steps": 1000 * k, "total_eur": cost} for k, cost in enumerate(costs)]


def test_the_references_are_the_expert_sts_and_edf_each_once():
    assert reference_names(TAUGHT) == ("sts-x", "sts", "edf")
    assert reference_names(UNTAUGHT) == ("sts", "edf")
    assert reference_names(TrainingConfig(imitation=ImitationConfig(expert="edf"))) == ("edf", "sts")


@pytest.mark.parametrize("costs", [(5000.0, 100.0), (5000.0, 90.0, 130.0)])
def test_there_is_no_warning_on_an_agent_as_good_as_its_expert(costs):
    assert warnings_of(TAUGHT, curve(*costs), COSTS) == []


def test_an_agent_a_little_costlier_than_its_expert_is_named_with_what_to_try():
    (outputs,) = warnings_of(TAUGHT, curve(5000.0, 100.1), COSTS)
    assert outputs == (
        "the agent that is kept costs 0.1% more than its expert sts-x (100.00 €); "
        "try --imitation-steps 160000, or another --seed, in another --out"
    )


def test_an_agent_costlier_than_edf_is_named_twice_if_it_had_an_expert():
    first, second = warnings_of(TAUGHT, curve(5000.0, 180.0), COSTS)
    assert "80.0% more than its expert sts-x" in first
    assert "50.0% more than edf (120.00 €)" in second
    (alone,) = warnings_of(UNTAUGHT, curve(5000.0, 180.0), {"sts": 110.0, "edf": 120.0})
    assert alone.endswith("try a warm start (--imitate sts-x), or more decisions (--steps)")
    assert "edf" in alone


def test_an_agent_that_was_never_trained_is_called_so_however_cheap_it_is():
    (outputs,) = warnings_of(TAUGHT, curve(99.0, 100.0), COSTS)
    assert "is the untrained one: nothing after step 0 was better" in outputs


def test_an_agent_that_goes_on_from_another_begins_as_that():
    (outputs,) = warnings_of(TrainingConfig(agent=EsConfig(begin="agent:default")), curve(99.0, 100.0), COSTS)
    assert "is agent:default itself: nothing after step 0 was better" in outputs


def test_an_agent_that_adapts_is_not_advised_a_warm_start_which_it_does_not_have():
    (outputs,) = warnings_of(TrainingConfig(agent=EsConfig()), curve(99.0, 100.0), COSTS)
    assert "is sts-x itself: nothing after step 0 was better" in outputs
    assert outputs.endswith("; try more decisions (--steps), or another --seed, in another --out")
