"""Features of the cap on a site's power, by hand; the next cap is not seen before policies are told."""

from dataclasses import replace

import numpy as np
import pytest

from gpusched_env import GpuClusterEnv, Instance
from gpusched_env.mechanisms.cap.model import PowerCap
from gpusched_env.mechanisms.cap.names import ABOVE, CAP, LEFT, NEXT_CAP, NEXT_IN, POWER
from gpusched_env.mechanisms.cap.names import FEATURES as CAP_FEATURES
from instances import HOUR, random_instance, three_jobs
from vector_twins import Twins

FULL_KW = 2.9  # a node of two GPUs and one of one, 900 W each, and 100 W for each node
FALLS = PowerCap((0.0, 6 * HOUR), (2.0, 1.9), noticed_s=(0.0, 1.0 * HOUR))


def capped(cap: PowerCap, instance: Instance | None = None) -> Instance:
    return (three_jobs() if instance is None else instance).with_mechanisms(cap)


def test_the_cap_and_the_power_of_what_is_placed_in_this_round_are_seen():
    env = GpuClusterEnv(instance=capped(FALLS), cap_features=True)
    seen = env.reset(seed=0)[0]["cap"]
    assert seen[[CAP, POWER, LEFT]] == pytest.approx([2.0 / FULL_KW, 0.0, 2.0 / FULL_KW])
    seen = env.step(1)[0]["cap"]
    assert seen[[CAP, POWER, LEFT]] == pytest.approx([2.0 / FULL_KW, 1.0 / FULL_KW, 1.0 / FULL_KW])
    assert seen[ABOVE] == 1.0


def test_the_next_cap_is_seen_from_its_notice_on():
    env = GpuClusterEnv(instance=capped(FALLS), cap_features=True)
    observation, _ = env.reset(seed=0)
    rows, over = [(0.0, observation["cap"])], False
    while not over:
        mask = env.action_masks()
        observation, _, over, _, info = env.step(int(mask[1]))
        rows.append((info["time_s"], observation["cap"]))
    before = [seen for time_s, seen in rows if time_s < HOUR]
    told = [(time_s, seen) for time_s, seen in rows if HOUR <= time_s < 6 * HOUR]
    assert before
    assert told
    for seen in before:
        assert seen[[NEXT_CAP, NEXT_IN]] == pytest.approx([2.0 / FULL_KW, 1.0])
    for time_s, seen in told:
        assert seen[[NEXT_CAP, NEXT_IN]] == pytest.approx([1.9 / FULL_KW, (6.0 - time_s / HOUR) / 24.0])


def test_a_soft_cap_shows_its_price_over_that_of_energy():
    seen = GpuClusterEnv(instance=capped(replace(FALLS, soft_eur_per_kwh=3.0)), cap_features=True).reset(seed=0)[0]
    assert seen["cap"][ABOVE] == pytest.approx(3.0 / 4.0)


def test_without_a_cap_all_power_is_free():
    seen = GpuClusterEnv(instance=three_jobs(), cap_features=True).reset(seed=0)[0]["cap"]
    assert dict(zip(CAP_FEATURES, seen.tolist(), strict=True)) == {
        name: float(k in {CAP, LEFT, NEXT_CAP, NEXT_IN}) for k, name in enumerate(CAP_FEATURES)
    }


def test_vector_environments_have_the_same_numbers_and_all_are_in_the_space():
    instance = capped(PowerCap.with_events(2.5, [(2e3, 1e4, 0.3, 1e3)]), random_instance(8, jobs=5))
    given = {"cap_features": True, "price_features": True, "flat": True}
    twins = Twins(None, 3, instance=instance, **given)
    twins.play(60, np.random.default_rng(0), twins.reset(seed=1))
