"""The variants of a study: what each changes, and for how long it learns."""

import pytest

pytest.importorskip("sb3_contrib", reason="needs the extra `agents`")

from gpusched_agents.study import VARIANTS
from gpusched_agents.training.config import TrainingConfig

BASE = TrainingConfig(evaluate_every=64)


def test_every_variant_that_learns_takes_the_same_number_of_rounds():
    for steps in (16, 999, 5_000_001):
        for name, variant in VARIANTS.items():
            made = variant.config(BASE, steps, 3)
            rounds = 1 if made.agent.algorithm == "es" else made.network.rounds  # of a step
            assert made.steps == (max(1, steps // rounds) if variant.learns else 1), name
            assert made.evaluate_every == 64 // rounds
            assert made.seed == 3


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


def test_a_variant_of_ppo_changes_one_thing():
    full = VARIANTS["controls-ppo"].config(BASE, 1600, 0)
    for name, variant in VARIANTS.items():
        made = variant.config(BASE, 1600, 0)
        if name.startswith("ppo-"):
            assert (made.agent != full.agent) != (made.network != full.network), name
