"""The variants of a study: what each changes, and for how long it learns."""

import pytest

from gpusched_agents.study import VARIANTS
from gpusched_agents.training.algorithm_config import EsConfig
from gpusched_agents.training.config import TrainingConfig
from gpusched_agents.training.references import warnings_of

pytest.importorskip("sb3_contrib", reason="needs the extra `agents`")

BASE = TrainingConfig(evaluate_every=64)


def test_every_variant_that_learns_takes_the_same_number_of_rounds_and_one_of_ppo_changes_one_thing():
    for steps in (16, 999, 5_000_001):
        for name, variant in VARIANTS.items():
            made = variant.config(BASE, steps, 3)
            rounds = 1 if made.agent.algorithm == "es" else made.network.rounds  # of a step
            assert made.steps == (max(1, steps // rounds) if variant.learns else 1), name
            assert made.evaluate_every == 64 // rounds
            assert made.seed == 3
    full = VARIANTS["controls-ppo"].config(BASE, 1600, 0)
    for name, variant in VARIANTS.items():
        made = variant.config(BASE, 1600, 0)
        if name.startswith("ppo-"):
            assert (made.agent != full.agent) != (made.network != full.network), name


def test_variants_differ_in_algorithm_and_beginning():
    each = {name: one.config(BASE, 1000, 0) for name, one in VARIANTS.items() if not name.startswith("ppo-")}
    assert {name: (one.agent.algorithm, one.agent.begin) for name, one in each.items()} == {
        "best-constants": ("es", "common-constants"),
        "constants": ("es", "constants"),
        "constants-es": ("es", "constants"),
        "constants-ppo": ("ppo", "constants"),
        "controls-es": ("es", ""),
        "controls-ppo": ("ppo", ""),
        "controls-sac": ("sac", ""),
        "control-set": ("es", "constants"),
        "control-set-es": ("es", "constants"),
    }
    layers = {name: one.network.layers for name, one in each.items() if one.agent.algorithm == "es"}
    assert {name for name, number in layers.items() if number} == {"control-set", "control-set-es"}
    assert each["constants-ppo"].agent.settings["log_std_init"] == -2.0


CONFIG = TrainingConfig()

COSTS = {"sts-x": 100.0, "sts": 110.0, "edf": 120.0}

ADVICE = "; try more decisions (--steps), or another --seed, in another --out"


def curve(*costs: float) -> list[dict[str, float]]:
    return [{"steps": 1000 * k, "total_eur": cost, "relative": cost / 100.0} for k, cost in enumerate(costs)]


@pytest.mark.parametrize("costs", [(5000.0, 100.0), (5000.0, 90.0, 130.0)])
def test_there_is_no_warning_on_a_trained_agent_cheaper_than_edf(costs):
    assert warnings_of(CONFIG, curve(*costs), COSTS) == []


def test_an_agent_costlier_than_edf_or_never_trained_is_named_with_what_to_try():
    (outputs,) = warnings_of(CONFIG, curve(5000.0, 180.0), COSTS)
    assert outputs == f"the agent that is kept costs 50.0% more than edf (120.00 €){ADVICE}"
    (outputs,) = warnings_of(CONFIG, curve(99.0, 100.0), COSTS)
    assert outputs == f"the agent that is kept is sts-x itself: nothing after step 0 was better{ADVICE}"
    (outputs,) = warnings_of(TrainingConfig(agent=EsConfig(begin="agent:default")), curve(99.0, 100.0), COSTS)
    assert "is agent:default itself: nothing after step 0 was better" in outputs
