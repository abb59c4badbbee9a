"""Series of prices: what they refuse, and that they are values."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from gpusched_env.errors import InputError
from gpusched_env.mechanisms.cap.model import PowerCap
from gpusched_env.mechanisms.prices.model import DemandCharge, PriceSeries
from instances import three_jobs

SERIES = PriceSeries([-1.0, 0.0, 5.0], [0.1, 0.2, 0.3], [100.0, 200.0, 300.0], [1.1, 1.2, 1.3], [-np.inf, 0.0, 4.0])


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"start_s": [0.0, 0.0, 5.0]}, "prices.start_s[1]"),
        ({"start_s": [0.0, 1.0, np.inf]}, "prices.start_s[2]"),
        ({"start_s": [1.0, 2.0, 5.0]}, "prices.start_s[0]"),
        ({"eur_per_kwh": [0.1, -0.1, 0.3]}, "prices.eur_per_kwh[1]"),
        ({"eur_per_kwh": [0.1, np.nan, 0.3]}, "prices.eur_per_kwh[1]"),
        ({"eur_per_kwh": [0.1, 0.2]}, "prices.eur_per_kwh"),
        ({"g_per_kwh": [0.1, 0.2, -1.0]}, "prices.g_per_kwh[2]"),
        ({"pue": [1.0, 0.9, 1.0]}, "prices.pue[1]"),
        ({"published_s": [-np.inf, 0.1, 4.0]}, "prices.published_s[1]"),
        ({"published_s": [-1.0, -2.0, 4.0]}, "prices.published_s[1]"),
        ({"forecast_noise": -0.1}, "prices.forecast_noise"),
    ],
)
def test_what_no_series_has_is_refused(changes: dict[str, Any], field: str):
    with pytest.raises(InputError) as error:
        replace(
            SERIES, **{name: np.array(value) if isinstance(value, list) else value for name, value in changes.items()}
        )
    assert error.value.field == field


@pytest.mark.parametrize(
    ("values", "field"),
    [
        ((0.0,), "prices.demand.eur_per_kw"),
        ((1.0, 0.0), "prices.demand.interval_s"),
        ((1.0, 900.0, (1_000.0,)), "prices.demand.months_s[0]"),
        ((1.0, 900.0, (1_800.0, 900.0)), "prices.demand.months_s[1]"),
        ((1.0, 900.0, (1_800.0, 1_800.0)), "prices.demand.months_s[1]"),
        ((1.0, 900.0, (0.0,)), "prices.demand.months_s[0]"),
    ],
)
def test_what_no_demand_charge_has_is_refused(values: tuple[Any, ...], field: str):
    with pytest.raises(InputError) as error:
        DemandCharge(*values)
    assert error.value.field == field


def test_series_are_values():
    assert deepcopy(SERIES) == SERIES
    assert replace(SERIES, g_per_kwh=None) != SERIES
    assert replace(SERIES, eur_per_kwh=[0.1, 0.2, 0.4]) != SERIES
    assert SERIES != 3
    with pytest.raises(ValueError, match="read-only"):
        SERIES.eur_per_kwh[0] = 1.0


def test_rates_need_a_reference_price_where_there_is_a_series():
    with pytest.raises(InputError) as error:
        replace(three_jobs(), energy_price_eur_per_kwh=0.0).with_mechanisms(SERIES)
    assert error.value.field == "energy_price_eur_per_kwh"


def test_an_instance_keeps_its_other_models_without_one():
    cap = PowerCap((0.0,), (100.0,))
    both = three_jobs().with_mechanisms(SERIES, cap)
    assert both.mechanisms == (cap, SERIES)
    assert both.without("prices") == three_jobs().with_mechanisms(cap)
    assert both.without("prices", "cap") == both.without("prices").without("cap", "shares") == three_jobs()


def test_a_series_on_a_clock_that_begins_later_has_the_same_prices_at_the_same_times():
    """Six hours later; months begin at the nearest beginning of an interval of that clock, those before it are over."""
    demand = DemandCharge(5.0, 900.0, (3600.0, 10 * 3600.0))
    start = np.arange(12) * 3600.0
    series = PriceSeries(start, np.arange(12.0), published_s=start - 3600.0, demand=demand, monday_s=7200.0)
    later = series.from_then(6 * 3600.0 + 60.0)
    assert later.start_s.tolist() == (start - 21_660.0).tolist()
    assert later.published_s.tolist() == (start - 25_260.0).tolist()
    assert later.eur_per_kwh.tolist() == series.eur_per_kwh.tolist()
    assert (later.monday_s, later.demand.months_s) == (7200.0 - 21_660.0, (16 * 900.0,))
