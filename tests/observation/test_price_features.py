"""Features of prices, by hand and computed again, the same through every door, and without what is not published."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpusched_env import GpuClusterEnv, Instance
from gpusched_env.mechanisms.cap.model import PowerCap
from gpusched_env.mechanisms.cap.names import ABOVE, CAP, LEFT, NEXT_CAP, NEXT_IN, POWER
from gpusched_env.mechanisms.cap.names import FEATURES as CAP_FEATURES
from gpusched_env.mechanisms.prices.names import FEATURES as PRICE_FEATURES
from gpusched_env.model import DemandCharge, PriceSeries
from instances import HOUR, random_instance, three_jobs
from refusals import refused
from vector_twins import Twins

AT = {name: k for k, name in enumerate(PRICE_FEATURES)}
HOURS = np.arange(72.0)


def squash(x: float) -> float:
    return x / (1.0 + abs(x))


def priced(instance: Instance, eur_per_kwh: np.ndarray, **more: Any) -> Instance:
    """Return the instance with a price for every hour from its beginning on."""
    return replace(instance, prices=PriceSeries(HOURS[: len(eur_per_kwh)] * HOUR, eur_per_kwh, **more))


def first_features(instance: Instance) -> dict[str, float]:
    observation, _ = GpuClusterEnv(instance=instance, price_features=True).reset(seed=0)
    return dict(zip(PRICE_FEATURES, observation["prices"].tolist(), strict=True))


def starting(of: dict[str, float], text: str) -> float:
    return next(value for name, value in of.items() if name.startswith(text))


def day_of_prices() -> np.ndarray:
    """Make prices of 1 € but for 2 € now and 0.50 € in the sixth hour."""
    prices = np.ones(72)
    prices[[0, 5]] = 2.0, 0.5
    return prices


def test_known_prices_are_compared_with_their_mean_over_36_hours():
    seen = first_features(priced(three_jobs(), day_of_prices()))
    mean = 36.5 / 36.0
    assert starting(seen, "squash(price now") == pytest.approx(squash(2.0 / mean - 1.0))
    assert starting(seen, "squash(price from 5 h") == pytest.approx(squash(0.5 / mean - 1.0))
    assert starting(seen, "squash(price from 35 h") == pytest.approx(squash(1.0 / mean - 1.0))
    assert starting(seen, "hours of these that are published") == 1.0
    assert starting(seen, "share of these hours that are cheaper") == pytest.approx(35.0 / 36.0)
    assert starting(seen, "hours until the cheapest of") == pytest.approx(5.0 / 36.0)
    assert starting(seen, "hours until the cheapest 4") == pytest.approx(2.0 / 36.0)  # hours 2 to 5 cost 3.50 €
    assert starting(seen, "squash(m /") == pytest.approx(squash(mean - 1.0))
    seen = first_features(three_jobs())
    assert {value for name, value in seen.items() if not name.startswith("hours of these")} == {0.0}
    assert starting(seen, "hours of these") == 1.0


def test_what_is_not_published_is_forecast_and_does_not_count_in_the_mean():
    published = np.where(HOURS < 12, 0.0, HOURS - 1.0) * HOUR
    seen = first_features(priced(three_jobs(), 3.0 * day_of_prices(), published_s=published))
    mean = 3.0 * 12.5 / 12.0
    assert starting(seen, "hours of these that are published") == pytest.approx(12.0 / 36.0)
    assert starting(seen, "squash(price now") == pytest.approx(squash(6.0 / mean - 1.0))
    assert starting(seen, "squash(price from 12 h") == pytest.approx(squash(1.0 / mean - 1.0))  # the reference price
    assert starting(seen, "squash(price from 24 h") == pytest.approx(squash(6.0 / mean - 1.0))  # as a day before
    assert starting(seen, "share of these hours that are cheaper") == pytest.approx(34.0 / 36.0)
    seen = first_features(priced(three_jobs(), day_of_prices(), published_s=HOURS * HOUR))
    assert starting(seen, "hours of these that are published") == pytest.approx(1.0 / 36.0)
    assert starting(seen, "squash(price now") == 0.0
    assert starting(seen, "squash(price from 5 h") == pytest.approx(squash(1.0 / 2.0 - 1.0))  # the reference price
    assert starting(seen, "share of these hours that are cheaper") == pytest.approx(34.0 / 36.0)


def test_carbon_is_compared_with_the_published_hours_and_0_where_it_is_not_given():
    carbon = np.full(72, 100.0)
    carbon[[0, 1]] = 400.0, 50.0
    seen = first_features(priced(three_jobs(), np.ones(72), g_per_kwh=carbon))
    assert starting(seen, "squash(carbon") == pytest.approx(squash(400.0 / (3850.0 / 36.0) - 1.0))
    assert starting(seen, "share of the published") == pytest.approx(35.0 / 36.0)
    without = first_features(priced(three_jobs(), np.ones(72)))
    assert starting(without, "squash(carbon") == starting(without, "share of the published") == 0.0


def test_the_demand_charge_shows_the_maximum_that_was_paid_and_the_month_that_is_left():
    """2 + 1 GPUs of 900 W on nodes of 100 W: 2.9 kW when full, 1 kW for job 2 alone on node 1."""
    demand = DemandCharge(10.0, interval_s=HOUR, months_s=(62 * HOUR,))
    env = GpuClusterEnv(instance=priced(three_jobs(), np.ones(72), demand=demand), price_features=True, milestones=2)
    observation, _ = env.reset(seed=0)
    assert not observation["prices"][AT_PEAK : AT_PEAK + 2].any()
    assert observation["prices"][AT_PEAK + 2] == pytest.approx(62.0 / (31.0 * 24.0))
    for _ in range(3):
        observation, _, _, _, info = env.step(1 if env.job == 2 else 0)
    assert info["time_s"] == HOUR
    assert observation["prices"][AT_PEAK] == pytest.approx(1.0 / 2.9)
    assert observation["prices"][AT_PEAK + 2] == pytest.approx(61.0 / (31.0 * 24.0))


AT_PEAK = next(k for name, k in AT.items() if name.startswith("highest mean power"))


def random_series(seed: int, **more: Any) -> PriceSeries:
    """Make two weeks of random prices and carbon, one of them before the run, published at noon for the next day."""
    rng = np.random.default_rng(seed)
    hours = np.arange(-168.0, 168.0)
    published = np.where(hours < 24, -np.inf, np.floor(hours / 24.0) * 24.0 - 12.0) * HOUR
    given_ = {"g_per_kwh": rng.uniform(20.0, 600.0, len(hours)), "published_s": published}
    return PriceSeries(hours * HOUR, rng.lognormal(-2.0, 0.6, len(hours)), **(given_ | more))


def instance_of(seed: int) -> Instance:
    demand = DemandCharge(8.0, months_s=(40 * HOUR,)) if seed % 2 else None
    return replace(random_instance(seed, jobs=5, span_s=2e5), prices=random_series(seed, demand=demand))


def play(env: GpuClusterEnv, seed: int) -> list[tuple[float, Any]]:
    """Play an episode at random; return times and observations."""
    rng = np.random.default_rng(seed)
    observation, info = env.reset(seed=0)
    rows, over = [(info["time_s"], observation)], False
    while not over:
        action = int(rng.choice(np.flatnonzero(info["action_mask"])))
        observation, _, terminated, truncated, info = env.step(action)
        rows.append((info["time_s"], observation))
        over = terminated or truncated
    return rows


@pytest.mark.parametrize("seed", [2, 3])
def test_every_step_has_the_features_that_follow_from_what_is_published_by_then(seed):
    instance = instance_of(seed)
    series = instance.prices
    start, price = series.start_s, series.eur_per_kwh * instance.pue
    rows = play(GpuClusterEnv(instance=instance, price_features=True), seed)
    assert all(np.abs(observation["prices"]).max() <= 1.0 for _, observation in rows)
    for time_s, observation in rows[:: max(1, len(rows) // 12)]:
        public = series.published_s <= time_s
        seconds = time_s + np.arange(36)[:, None] * HOUR + np.arange(0.5, 3600.0, 1.0)
        period = np.searchsorted(start, seconds, side="right") - 1
        known = int(public[period].all(axis=1).sum())
        hours = price[period].mean(axis=1)[:known]
        expected = [squash(value / hours.mean() - 1.0) for value in hours]
        np.testing.assert_allclose(observation["prices"][1 : 1 + known], expected, atol=2e-3)
        now = price[np.searchsorted(start, time_s, side="right") - 1]
        assert observation["prices"][0] == pytest.approx(squash(now / hours.mean() - 1.0), abs=1e-3)
        assert observation["prices"][37] == pytest.approx(known / 36.0)
        later = series.g_per_kwh[np.searchsorted(start, time_s + np.arange(known) * HOUR, side="right") - 1]
        carbon = observation["prices"][next(k for name, k in AT.items() if name.startswith("squash(carbon"))]
        assert carbon == pytest.approx(squash(later[0] / later.mean() - 1.0), abs=1e-5)


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 1_000), share=st.floats(0.0, 0.9))
def test_nothing_that_is_not_published_is_in_an_observation(seed, share):
    instance = instance_of(seed)
    series = instance.prices
    time_s = share * 2e5
    later = series.published_s > time_s
    rng = np.random.default_rng(seed)
    other = replace(
        series,
        eur_per_kwh=np.where(later, rng.uniform(0.0, 9.0, len(later)), series.eur_per_kwh),
        g_per_kwh=np.where(later, rng.uniform(0.0, 9.0, len(later)), series.g_per_kwh),
    )
    known = {"price_features": True, "cap_features": False, "flat": True}
    first = play(GpuClusterEnv(instance=instance, **known), seed)
    second = play(GpuClusterEnv(instance=replace(instance, prices=other), **known), seed)
    for (now, one), (_, two) in zip(first, second, strict=False):
        if now > time_s:
            break
        np.testing.assert_array_equal(one, two)


def test_a_flat_observation_ends_with_the_groups_and_is_else_the_same():
    instance = instance_of(4)
    parts = GpuClusterEnv(instance=instance, price_features=True)
    flat = GpuClusterEnv(instance=instance, price_features=True, flat=True)
    assert flat.feature_names[-len(PRICE_FEATURES) :] == tuple(f"prices: {name}" for name in PRICE_FEATURES)
    assert flat.observation_space.shape == (len(flat.feature_names),)
    np.testing.assert_array_equal(flat.reset(seed=0)[0][-len(PRICE_FEATURES) :], parts.reset(seed=0)[0]["prices"])
    instance = instance_of(6)
    with_, without = (play(GpuClusterEnv(instance=instance, price_features=on), 6) for on in (True, False))
    for (_, one), (_, two) in zip(with_, without, strict=True):
        assert one.keys() - two.keys() == {"prices"}
        for part in two:
            np.testing.assert_array_equal(one[part], two[part])


@pytest.mark.parametrize("name", ["price_features", "cap_features", "limit_features", "factored"])
def test_a_group_is_asked_for_by_a_flag(name):
    with refused(name, 1):
        GpuClusterEnv(instance=three_jobs(), **{name: 1})


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


def test_a_soft_cap_shows_its_price_over_that_of_energy_and_without_a_cap_power_is_free():
    seen = GpuClusterEnv(instance=capped(replace(FALLS, soft_eur_per_kwh=3.0)), cap_features=True).reset(seed=0)[0]
    assert seen["cap"][ABOVE] == pytest.approx(3.0 / 4.0)
    seen = GpuClusterEnv(instance=three_jobs(), cap_features=True).reset(seed=0)[0]["cap"]
    assert dict(zip(CAP_FEATURES, seen.tolist(), strict=True)) == {
        name: float(k in {CAP, LEFT, NEXT_CAP, NEXT_IN}) for k, name in enumerate(CAP_FEATURES)
    }


def test_vector_environments_have_the_same_numbers_and_all_are_in_the_space():
    instance = capped(PowerCap.with_events(2.5, [(2e3, 1e4, 0.3, 1e3)]), random_instance(8, jobs=5))
    given = {"cap_features": True, "price_features": True, "flat": True}
    twins = Twins(None, 3, instance=instance, **given)
    twins.play(60, np.random.default_rng(0), twins.reset(seed=1))
