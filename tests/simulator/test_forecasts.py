"""Forecasts of prices: published values, then those of the same hours of days like them, at the level of the latest."""

from dataclasses import replace

import numpy as np
import pytest

from gpusched_env.mechanisms.prices.model import PriceSeries
from gpusched_env.simulator import State
from gpusched_env.simulator.kernels import forecast_prices, known_until_s, mean_price, next_publication_s
from instances import HOUR, three_jobs

DAY = 24 * HOUR
STARTS = np.arange(-28 * 24, 10 * 24) * HOUR


def state_of(series: PriceSeries | None) -> State:
    """Make the state of a run at time 0, a Monday, with a reference price of 1 €/kWh."""
    return State(three_jobs() if series is None else three_jobs().with_mechanisms(series))


def weekly(**more: float) -> PriceSeries:
    """Make prices of 1 to 24 ct by the hour, 50 ct more at weekends; those of the first two days are published."""
    weekend = STARTS % (7 * DAY) >= 5 * DAY
    prices = (STARTS / HOUR % 24 + 1.0) / 100.0 + 0.5 * weekend
    told = np.where(STARTS < 2 * DAY, -np.inf, STARTS - 20 * HOUR)
    return PriceSeries(STARTS, prices, published_s=told, **more)


def forecast(state: State, edges: np.ndarray) -> np.ndarray:
    prices = np.empty(len(edges) - 1)
    forecast_prices(state.board, edges, prices)
    return prices


def test_published_prices_come_first_and_then_those_of_days_like_them():
    state = state_of(weekly())
    series = state.instance.find("prices")
    found = forecast(state, np.arange(0.0, 8 * 24 + 1) * HOUR)
    expected = series.eur_per_kwh[28 * 24 : 36 * 24]
    np.testing.assert_allclose(found, expected)  # the week repeats itself: so does the forecast
    assert known_until_s(state.board) == 2 * DAY
    assert next_publication_s(state.board) == 2 * DAY - 20 * HOUR


def test_a_forecast_is_the_mean_of_what_was_published_at_the_level_of_the_latest_day():
    """Prices rise by the day; the forecast of Wednesday noon is the mean of noon on working days of four weeks.

    Tuesday is the latest published day: 0.8 of the difference from its own forecast is left a day after its noon.
    """
    series = weekly()
    rising = replace(series, eur_per_kwh=series.eur_per_kwh + (STARTS + 28 * DAY) / DAY)
    state = state_of(rising)
    noon = 2 * DAY + 12 * HOUR

    def forecast_of_hour(start: float) -> float:
        earlier = [start - d * DAY for d in range(1, 29) if start - d * DAY >= STARTS[0]]
        return np.mean([rising.eur_per_kwh[s == STARTS][0] for s in earlier if s < 2 * DAY and s % (7 * DAY) < 5 * DAY])

    tuesday = (STARTS >= DAY) & (STARTS < 2 * DAY)
    level = rising.eur_per_kwh[tuesday].mean() / np.mean([forecast_of_hour(s) for s in STARTS[tuesday]])
    assert level > 1.5
    expected = forecast_of_hour(noon) * (1.0 + 0.8 * (level - 1.0))
    assert forecast(state, np.array([noon, noon + HOUR]))[0] == pytest.approx(expected)
    later = forecast_of_hour(noon + DAY) * (1.0 + 0.8**2 * (level - 1.0))
    assert forecast(state, np.array([noon + DAY, noon + DAY + HOUR]))[0] == pytest.approx(later)


@pytest.mark.parametrize("then", [0.0, 16_667.76, 4.7 * DAY, 5.5 * DAY, 6.9 * DAY, 7.5 * DAY])
def test_where_weeks_repeat_themselves_forecasts_are_exact_whenever_a_run_begins(then):
    """The last 24 hours that are published are of one type of day or of two: their level is 1."""
    series = replace(weekly(), published_s=STARTS).from_then(then)
    ahead = (series.start_s > 0.0) & (series.start_s < series.start_s[-1])
    edges = np.append(series.start_s[ahead], series.start_s[-1])
    np.testing.assert_allclose(forecast(state_of(series), edges), series.eur_per_kwh[ahead])


def test_parts_of_periods_and_several_are_means_over_time():
    state = state_of(weekly())
    both = forecast(state, np.array([DAY * 2 - 1.5 * HOUR, 2 * DAY + HOUR]))[0]
    single = forecast(state, np.array([DAY * 2 - 1.5 * HOUR, DAY * 2 - HOUR, DAY * 2, DAY * 2 + HOUR]))
    assert both == pytest.approx((0.5 * single[0] + single[1] + single[2]) / 2.5)


def test_without_history_the_reference_price_is_the_forecast():
    state = state_of(PriceSeries([0.0, HOUR], [0.3, 0.4], published_s=[0.0, HOUR]))
    assert forecast(state, np.array([0.0, HOUR, 2 * HOUR])).tolist() == [0.3, 1.0]
    assert np.isnan(mean_price(state.board, 0.0, 2 * HOUR))
    assert mean_price(state.board, 0.0, HOUR) == 0.3


def test_without_a_series_the_one_price_is_known_for_ever():
    state = state_of(None)
    assert forecast(state, np.array([0.0, HOUR])).tolist() == [1.0]
    assert (state.view.price(0.0, DAY), state.view.known_until_s) == (1.0, np.inf)


def test_noise_multiplies_forecasts_alone_and_has_mean_one():
    plain, noisy = state_of(weekly()), state_of(weekly(forecast_noise=0.18, forecast_seed=4))
    edges = np.arange(0.0, 8 * 24 + 1) * HOUR
    ratio = forecast(noisy, edges) / forecast(plain, edges)
    np.testing.assert_array_equal(ratio[:48], 1.0)
    assert np.std(np.log(ratio[48:])) == pytest.approx(0.18, rel=0.2)
    many = PriceSeries(np.arange(100_000.0), np.ones(100_000), forecast_noise=0.18)
    assert many.noise.mean() == pytest.approx(1.0, abs=0.003)
    np.testing.assert_array_equal(
        forecast(state_of(weekly(forecast_noise=0.18, forecast_seed=4)), edges), forecast(noisy, edges)
    )
