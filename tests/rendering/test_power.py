"""Power over time and what each hour costs, worked out by hand and beside the meter of the run."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpusched_baselines.registry import make_policy
from gpusched_env.mechanisms.prices.model import PriceSeries
from gpusched_env.mechanisms.saved_power.model import SavedPower
from gpusched_env.rendering.gantt import gantt_figure
from gpusched_env.rendering.power import energy_between, hours_of, power_over_time
from gpusched_env.simulator import simulate
from tests.support.instances import HOUR, random_instance, three_jobs

SERIES = PriceSeries(
    np.array([0.0, 1.0, 3.0]) * HOUR, np.array([1.0, 3.0, 0.5]), g_per_kwh=np.array([100.0, 200.0, 1000.0])
)


def priced_run(instance=None, series=SERIES):
    return simulate((instance or three_jobs()).with_mechanisms(series), make_policy("fifo"))


def test_one_gpu_of_a_node_draws_a_kilowatt_and_two_draw_more():
    result = priced_run()
    times, drawn = power_over_time(result)
    log = result.log
    at_once = [log[(log[:, 3] <= time) & (log[:, 5] > time)] for time in times]
    for kilowatts, rows in zip(drawn, at_once, strict=True):
        on_node = [int(sum(2 if config == 1 else 1 for config in rows[rows[:, 1] == n, 2])) for n in (0, 1)]
        assert kilowatts == pytest.approx(sum((0.0, 1.0, 1.9)[busy] for busy in on_node))


def test_a_kilowatt_from_half_past_costs_by_the_price_of_each_hour():
    instance = three_jobs().with_mechanisms(SERIES)
    kwh, eur, kilograms = energy_between(
        instance, (np.array([0.5, 2.5]) * HOUR, np.array([1.0, 0.0])), np.array([0.0, 1.0, 2.0, 3.0]) * HOUR
    )
    assert kwh.tolist() == pytest.approx([0.5, 1.0, 0.5])
    assert eur.tolist() == pytest.approx([0.5, 3.0, 1.5])
    assert kilograms.tolist() == pytest.approx([0.05, 0.2, 0.1])


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 10**6), periods=st.integers(1, 30), pue=st.sampled_from([1.0, 1.3]))
def test_the_hours_sum_to_what_the_run_was_billed(seed, periods, pue):
    rng = np.random.default_rng(seed)
    starts = np.append(0.0, np.sort(rng.uniform(1.0, 6000.0, periods - 1)))
    series = PriceSeries(starts, rng.random(periods), rng.random(periods) * 900.0, np.full(periods, pue))
    result = priced_run(random_instance(seed % 1000, jobs=6, kinds=True), series)
    hours = hours_of(result, 500.0)
    assert hours["energy_kwh"].sum() == pytest.approx(result.energy_kwh)
    assert hours["energy_eur"].sum() == pytest.approx(result.energy_eur)
    assert hours["co2_kg"].sum() == pytest.approx(result.co2_kg)
    whole = hours["energy_kwh"] > 0.0
    assert np.all(hours["energy_eur"][whole] / hours["energy_kwh"][whole] <= series.eur_per_kwh.max() * (1 + 1e-9))


def test_without_a_series_the_hours_cost_the_constant_price_and_emissions_are_not_known():
    result = simulate(three_jobs(), make_policy("fifo"))
    hours = hours_of(result)
    assert set(hours["eur_per_kwh"]) == {three_jobs().energy_price_eur_per_kwh}
    assert np.isnan(hours["co2_kg"]).all()
    assert hours["energy_eur"].sum() == pytest.approx(result.energy_eur)


def test_a_run_whose_energy_is_another_has_no_power_over_time():
    result = priced_run()
    assert power_over_time(replace(result, energy_kwh=2.0 * result.energy_kwh)) is None
    assert hours_of(replace(result, energy_kwh=2.0 * result.energy_kwh)) is None


def test_what_a_power_limit_saves_is_not_drawn():
    """One GPU at 0.7 of 900 W: 1000 W of the node, less 270 W."""
    instance = three_jobs()
    limited = replace(
        instance, configurations=tuple(replace(c, power_limit=0.7) for c in instance.configurations)
    ).with_mechanisms(SavedPower(tuple((0.27, 0.54) for _ in range(3))))
    result = simulate(limited, make_policy("fifo"))
    full, drawn = power_over_time(simulate(instance, make_policy("fifo"))), power_over_time(result)
    assert drawn[0].tolist() == full[0].tolist()
    gpus = [(0.0, 1.0, 2.0, 3.0)[(0.0, 1.0, 1.9, 2.9).index(round(kw, 6))] for kw in full[1]]
    assert drawn[1] == pytest.approx(full[1] - 0.27 * np.array(gpus))
    assert hours_of(result)["energy_kwh"].sum() == pytest.approx(result.energy_kwh)


def test_a_gantt_chart_has_a_strip_of_power_and_price_where_prices_change():
    labels = [axes.get_ylabel() for axes in gantt_figure(priced_run()).axes]
    assert {"power [kW]", "ct/kWh"} < set(labels)
    labels = [axes.get_ylabel() for axes in gantt_figure(simulate(three_jobs(), make_policy("fifo"))).axes]
    assert "power [kW]" not in labels
