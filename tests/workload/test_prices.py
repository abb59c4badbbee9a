"""Prices of markets and files as series of a run: which periods, when they are published, and what is added."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gpusched_env.errors import InputError
from gpusched_env.workload import Scenario, load_scenario, make_instance
from gpusched_env.workload.priced import price_notes
from gpusched_env.workload.tables import PRICE_SERIES
from gpusched_env.workload.tables.hourly_prices import builtin_prices, filled
from gpusched_env.workload.tables.price_file import PriceColumns, read_prices

DATA = Path(__file__).parents[2].parent / "shared" / "data"
HOUR = 3600.0


def scenario(**prices: Any) -> Scenario:
    """Make a small scenario with prices of 2024 in Germany and Luxembourg, or others."""
    section = {"series": "de-lu-2024", "start": "2024-03-01T00:00"} | prices
    return load_scenario("tiny").replace({f"prices.{name}": value for name, value in section.items()})


def test_a_run_has_28_days_of_history_and_60_days_after_the_last_submission():
    instance = make_instance(scenario(), 0)
    series = instance.find("prices")
    assert series is not None
    last_s = instance.jobs.submission_s[-1]
    assert (series.start_s[0], series.start_s[672]) == (-672 * HOUR, 0.0)
    assert last_s + 60 * 24 * HOUR - HOUR <= series.start_s[-1] < last_s + 60 * 24 * HOUR
    history = series.eur_per_kwh[:672]
    assert instance.energy_price_eur_per_kwh == pytest.approx(history.mean())


def test_prices_of_a_day_are_published_at_a_quarter_to_one_of_the_day_before():
    """On 31 March 2024 the clocks go forward: midnight of 1 April is 23 h after that of 31 March."""
    series = make_instance(scenario(start="2024-03-31T00:00"), 0).find("prices")
    told = (series.published_s[672:] / HOUR).tolist()
    assert told[:23] == [-11.25] * 23
    assert told[23:47] == [23.0 - 11.25] * 24
    assert make_instance(scenario(known="all"), 0).find("prices").published_s is None
    none = make_instance(scenario(known="none"), 0).find("prices")
    np.testing.assert_array_equal(none.published_s, none.start_s)
    later = make_instance(scenario(published_at="18:00"), 0).find("prices")
    assert later.published_s[672] == -6.0 * HOUR


@pytest.mark.parametrize(
    ("start", "day", "published_at", "hours"),
    [
        ("2024-03-31T00:00", "2024-04-01", "00:00", 0),
        ("2024-03-31T00:00", "2024-04-01", "01:30", 1.5),
        ("2024-03-31T00:00", "2024-04-01", "12:45", 11.75),
        ("2024-10-27T00:00", "2024-10-28", "00:00", 0),
        ("2024-10-27T00:00", "2024-10-28", "12:45", 13.75),
    ],
)
def test_on_a_day_on_which_clocks_change_prices_are_published_at_the_local_time(
    start: str, day: str, published_at: str, hours: float
):
    series = make_instance(scenario(start=start, published_at=published_at), 0).find("prices")
    midnight_s = HOUR * (23 if day == "2024-04-01" else 25)
    assert series.published_s[series.start_s == midnight_s] == hours * HOUR


@pytest.mark.parametrize("interval_h", [2.0, 24.0, 1.3, 1000.0])
def test_a_month_begins_with_the_demand_interval_nearest_to_its_midnight(interval_h: float):
    for seed in range(5):
        settings = {"start": "random", "demand_charge_eur_per_kw": 5.0}
        own = make_instance(scenario(**settings, demand_interval_s=interval_h * HOUR), seed).find("prices")
        months_s = np.array(make_instance(scenario(**settings), seed).find("prices").demand.months_s)
        wanted = {round(month_s / interval_h / HOUR) for month_s in months_s} - {0}
        assert {round(month_s / interval_h / HOUR, 9) for month_s in own.demand.months_s} == wanted


def test_levies_and_carbon_are_added_and_the_floor_holds():
    plain = make_instance(scenario(series="caiso-2022", start="2022-04-10T00:00", floor_eur_per_kwh=0.0), 0).find(
        "prices"
    )
    table = builtin_prices("caiso-2022")
    first = np.flatnonzero(table.local_s == (np.datetime64("2022-04-10", "s") - np.datetime64(0, "s")).astype(float))[0]
    raw = table.eur_per_kwh[first : first + 48]
    np.testing.assert_allclose(plain.eur_per_kwh[672 : 672 + 48], np.maximum(raw, 0.0))
    settings = {"levy_eur_per_kwh": 0.03, "carbon_eur_per_t": 100.0, "floor_eur_per_kwh": 0.09}
    added = make_instance(scenario(series="caiso-2022", start="2022-04-10T00:00", **settings), 0).find("prices")
    expected = np.maximum(raw + 0.03 + 1e-4 * table.g_per_kwh[first : first + 48], 0.09)
    np.testing.assert_allclose(added.eur_per_kwh[672 : 672 + 48], expected)
    assert 0 < np.sum(expected == 0.09) < 48


def year_of(made: Scenario, seed: int) -> int:
    """Return the year in which the run of a seed starts: its first two days are found in the market's prices."""
    series, table = make_instance(made, seed).find("prices"), builtin_prices("de-lu")
    assert series is not None
    days = np.lib.stride_tricks.sliding_window_view(table.eur_per_kwh, 48)
    first = np.flatnonzero(np.all(np.isclose(np.maximum(days, 0.005), series.eur_per_kwh[672:720]), axis=1))
    years = np.array(table.local_s[first], dtype="datetime64[s]").astype("datetime64[Y]").astype(int) + 1970
    return int(years[0])


def test_validation_and_test_seeds_start_in_months_that_are_held_out():
    held_out = scenario(series="de-lu", start="random", validation_from="2023-01", test_from="2024-01")
    assert {year_of(held_out, seed) for seed in range(100_000, 100_012)} == {2020, 2021, 2022}
    assert {year_of(held_out, seed) for seed in range(20_000, 20_004)} == {2023}
    assert {year_of(held_out, seed) for seed in range(30_000, 30_004)} == {2024}
    free = scenario(series="de-lu", start="random", test_from="2021-01")
    assert {year_of(free, seed) for seed in range(20_000, 20_004)} == {2020}


def test_random_starts_are_days_of_the_months_asked_for():
    for seed in range(8):
        chosen = scenario(series="de-lu", start="random", first_month="2021-02", last_month="2021-02")
        series = make_instance(chosen, seed).find("prices")
        found = builtin_prices("de-lu")
        place = [p for p in range(28) if _same(series, found, p)]
        assert len(place) == 1


def _same(series: Any, table: Any, day: int) -> bool:
    begin = (np.datetime64("2021-02-01", "s") - np.datetime64(0, "s")).astype(float) + day * 86_400.0
    first = int(np.flatnonzero(table.local_s == begin)[0])
    wanted = np.maximum(table.eur_per_kwh[first : first + 24], 0.005)
    return bool(np.allclose(series.eur_per_kwh[672 : 672 + 24], wanted))


def test_a_monday_is_known_to_forecasts():
    """1 March 2024 was a Friday."""
    assert make_instance(scenario(), 0).find("prices").monday_s == -4 * 24 * HOUR


def test_demand_charges_begin_again_with_each_calendar_month():
    series = make_instance(scenario(start="2024-03-30T00:00", demand_charge_eur_per_kw=10.0), 0).find("prices")
    assert series.demand.months_s[0] == (2 * 24 - 1) * HOUR  # one hour is skipped on 31 March
    assert series.demand.interval_s == 900.0


def test_the_last_week_is_repeated_after_the_end_of_the_series():
    series = make_instance(scenario(start="2024-12-24T00:00"), 0).find("prices")
    later = series.eur_per_kwh[672 + 8 * 24 :]
    assert set(np.diff(series.start_s)) == {HOUR}
    np.testing.assert_array_equal(later[:168], later[168:336])
    np.testing.assert_array_equal(later[:168], series.eur_per_kwh[672 + 24 : 672 + 8 * 24])


def test_missing_hours_are_those_of_the_day_before():
    hourly = np.arange(60.0)
    hourly[[0, 30, 54]] = np.nan
    assert filled(hourly)[[0, 30, 54]].tolist() == [24.0, 6.0, 6.0]


def test_without_a_series_nothing_changes_and_the_seed_draws_the_same_jobs():
    plain, priced = make_instance(load_scenario("tiny"), 3), make_instance(scenario(start="random"), 3)
    assert plain.find("prices") is None
    assert plain.jobs == priced.jobs


def test_a_file_of_quarter_hours_is_a_series(tmp_path: Path):
    quarters = [f"2025-10-0{1 + q // 96}T{q % 96 // 4:02}:{q % 4 * 15:02}+02:00" for q in range(192)]
    lines = ["time,eur_per_mwh,g_per_kwh,pue", *(f"{time},{q},{2 * q},1.2" for q, time in enumerate(quarters))]
    (tmp_path / "mine.csv").write_text("\n".join(lines))
    (tmp_path / "mine.toml").write_text(
        'base = "tiny"\n[prices]\nseries = "mine.csv"\nstart = "2025-10-02T00:00"\nfloor_eur_per_kwh = 0.0\n'
    )
    series = make_instance(load_scenario(tmp_path / "mine.toml"), 0).find("prices")
    assert series.start_s[95:98].tolist() == [-900.0, 0.0, 900.0]
    assert series.eur_per_kwh[95:98] == pytest.approx([0.095, 0.096, 0.097])
    assert series.g_per_kwh[96] == 192.0
    assert series.pue[0] == 1.2
    assert series.published_s[96] == -11.25 * HOUR


@pytest.mark.parametrize(
    ("text", "field", "allowed"),
    [
        ("time,price\n", "columns", "eur_per_kwh or eur_per_mwh"),
        ("time,eur_per_kwh\n2024-03-01T00:00,0.1\n", "line 2, time", "offset"),
        ("time,eur_per_kwh\n2024-03-01T00:00Z,0.1\n2024-03-01T00:00Z,0.2\n", "line 3, time", "later"),
        ("time,eur_per_kwh\nyesterday,0.1\n", "line 2, time", "ISO 8601"),
        ("time,eur_per_kwh\n2024-03-01T00:00Z,cheap\n", "line 2, eur_per_kwh", "a finite number"),
        ("time,eur_per_kwh,pue\n2024-03-01T00:00Z,0.1,0.9\n", "line 2, pue", ">= 1"),
        ("time,eur_per_kwh,colour\n2024-03-01T00:00Z,0.1,red\n", "columns", "pue"),
        ("time,eur_per_kwh\n2024-03-01T00:00Z,0.1,0.2\n", "line 2", "2, as the first line has"),
        ("time;eur_per_kwh\n2024-03-01T00:00Z;0,1\n2024-03-01T01:00Z;0;1\n", "line 3", "2, as the first line has"),
        (
            "Beginn,Preis (EUR/MWh),Last\n2024-03-01T00:00Z,9,5\n",
            "columns",
            "--set prices.columns.time=Beginn --set prices.columns.eur_per_mwh='Preis (EUR/MWh)'",
        ),
    ],
)
def test_a_wrong_file_is_refused_by_line_and_column(text: str, field: str, allowed: str, tmp_path: Path):
    (tmp_path / "mine.csv").write_text(text)
    with pytest.raises(InputError) as error:
        read_prices(str(tmp_path / "mine.csv"))
    assert field in error.value.field
    assert allowed in error.value.allowed


PUBLISHED = {
    "ENTSO-E": (
        '"MTU (CET/CEST)","Area","Sequence","Day-ahead Price (EUR/MWh)"\n'
        '"01/09/2025 02:00:00 - 01/09/2025 03:00:00","BZN|DE-LU","Sequence 2","7"\n'
        '"01/09/2025 02:00:00 - 01/09/2025 03:00:00","BZN|DE-LU","Sequence 1","80.00"\n'
        '"01/09/2025 03:00:00 - 01/09/2025 04:00:00","BZN|DE-LU","Sequence 1","-5.5"\n'
    ),
    "ENTSO-E before 2024": (
        '"MTU (UTC)","Day-ahead Price [EUR/MWh]","Currency","BZN|DE-LU"\n'
        '"01.09.2025 00:00 - 01.09.2025 01:00","80.00","EUR",""\n'
        '"01.09.2025 01:00 - 01.09.2025 02:00","-5.5","EUR",""\n'
        '"01.09.2025 02:00 - 01.09.2025 03:00","n/e","EUR",""\n'
    ),
    "entsoe-py": ",0\n2025-09-01 02:00:00+02:00,80.0\n2025-09-01 03:00:00+02:00,-5.5\n",
    "gridstatus": (
        ",Time,Interval Start,Interval End,Market,Location,LMP,Loss\n"
        "0,2025-08-31 17:00:00-07:00,2025-08-31 17:00:00-07:00,2025-08-31 18:00:00-07:00,DAY_AHEAD_HOURLY,NP15,80.0,1\n"
        "1,2025-08-31 18:00:00-07:00,2025-08-31 18:00:00-07:00,2025-08-31 19:00:00-07:00,DAY_AHEAD_HOURLY,NP15,-5.5,1\n"
    ),
    "OASIS": (
        "INTERVALSTARTTIME_GMT,INTERVALENDTIME_GMT,OPR_HR,NODE,LMP_TYPE,MW\n"
        "2025-09-01T01:00:00-00:00,2025-09-01T02:00:00-00:00,2,N,LMP,-5.5\n"
        "2025-09-01T00:00:00-00:00,2025-09-01T01:00:00-00:00,1,N,LMP,80\n"
        "2025-09-01T00:00:00-00:00,2025-09-01T01:00:00-00:00,1,N,MCC,3\n"
    ),
    "lines of remarks": "# exported\nsep=;\ntime;eur_per_mwh\n2025-09-01T00:00Z;80\n2025-09-01T01:00Z;-5.5\n# end\n",
    "a table of Excel": "\ufefftime;eur_per_mwh\n2025-09-01T01:00Z;-5,5\n2025-09-01T00:00Z;80,00\n",
    "energy-charts": "time,eur_per_mwh\n1756684800,80\n1756688400,-5.5\n",
    "aWATTar": "start_timestamp,end_timestamp,marketprice,unit\n1756684800000,1756688400000,80,Eur/MWh\n"
    "1756688400000,1756692000000,-5.5,Eur/MWh\n",
    "two lines of names": "Datum (MEZ),Day Ahead Auktion (DE-LU)\n,Preis (EUR/MWh)\n2025-09-01T00:00Z,80\n"
    "2025-09-01T01:00Z,-5.5\n",
    "Ember": "Country,Datetime (UTC),Price (EUR/MWhe)\nGermany,2025-09-01 00:00:00,80\n"
    "Germany,2025-09-01 01:00:00,-5.5\n",
    "OPSD": "utc_timestamp,DE_LU_price_day_ahead\n2025-09-01T00:00:00Z,80\n2025-09-01T01:00:00Z,-5.5\n",
    "thousands": 'time,eur_per_mwh\n2025-09-01T00:00Z,"0,080.0"\n2025-09-01T01:00Z,-5.5\n',
}


@pytest.mark.parametrize("form", PUBLISHED)
def test_tables_are_read_as_they_are_published(form: str, tmp_path: Path):
    (tmp_path / "mine.txt").write_text(PUBLISHED[form], encoding="utf-8")
    table = read_prices(str(tmp_path / "mine.txt"))
    assert table.time_s.tolist() == [1_756_684_800.0, 1_756_688_400.0]
    assert table.eur_per_kwh.tolist() == pytest.approx([0.08, -0.0055])
    assert (table.local_h == {"ENTSO-E": 2.0, "entsoe-py": 2.0, "gridstatus": -7.0}.get(form, 0.0)).all()
    left_out = {"ENTSO-E": "of other sequences or kinds of price", "ENTSO-E before 2024": "without a value"}
    reason = (left_out | {"OASIS": left_out["ENTSO-E"]}).get(form)
    notes = [f"mine.txt: rows {reason} that are left out: 1."] if reason else []
    in_dollars = {"gridstatus": "LMP", "OASIS": "MW"}.get(form)
    notes += [f"mine.txt: numbers of {in_dollars} are taken as euros, whatever their currency."] if in_dollars else []
    assert table.notes == tuple(notes)


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("time,eur_per_kwh\n2025-09-01T00:00Z,80\n", "eur_per_kwh is read as eur_per_kwh; its mean is 80 €/kWh"),
        ("time,eur_per_mwh\n2025-09-01T00:00Z,0.08\n", "its mean is 8e-05 €/kWh: check the unit"),
    ],
)
def test_prices_of_an_unlikely_unit_are_reported(text: str, named: str, tmp_path: Path):
    (tmp_path / "mine.csv").write_text(text)
    (note,) = read_prices(str(tmp_path / "mine.csv")).notes
    assert named in note


def test_carbon_in_pounds_for_each_mwh_is_read_in_grams(tmp_path: Path):
    text = "point_time,value,units\n2025-09-01T00:00:00+00:00,1000,lbs_co2_per_mwh\n"
    (tmp_path / "mine.csv").write_text(text)
    assert read_prices(str(tmp_path / "mine.csv")).g_per_kwh.tolist() == pytest.approx([453.59237])


@pytest.mark.parametrize(
    ("text", "field", "named"),
    [
        ("MTU (UTC),Day-ahead Price (GBP/MWh)\n2025-09-01T00:00Z,80\n", "columns", "eur_per_mwh=COLUMN"),
        ("point_time,value,units\n2025-09-01T00:00Z,80,USD\n", "columns", "eur_per_mwh=COLUMN"),
        ("time,Strompreis je kWh (EUR)\n2025-09-01T00:00Z,0.2\n", "columns", "eur_per_kwh="),
        ("time,Strompreis [ct/kWh] (EUR)\n2025-09-01T00:00Z,20\n", "columns", "eur_per_mwh=COLUMN"),
        ("valid_from,value_exc_vat,value_inc_vat\n2025-09-01T00:00Z,8,9\n", "columns", "eur_per_mwh=COLUMN"),
        ("day,Hour 1,Hour 2,Hour 3A,Hour 3B\n2025-09-01,8,9,8,\n", "columns", "a line for each period"),
        (
            "time,eur_per_mwh,eur_per_kwh\n2025-09-01T00:00Z,80,0.08\n",
            "columns",
            "time=time --set prices.columns.eur_per_kwh=eur_per_kwh",
        ),
        ('{"data": []}', "mine.csv", "no JSON, XML or spreadsheet"),
        ('<?xml version="1.0"?>', "mine.csv", "no JSON, XML or spreadsheet"),
        ("", "mine.csv", "no JSON, XML or spreadsheet"),
        ("Datum von;Preis [€/MWh]\n01.09.2025 00:00;80,5\n", "line 2, Datum von", "prices.time_zone=Europe/Berlin"),
    ],
)
def test_a_form_that_is_not_read_is_named_and_no_other_unit_is_suggested_as_euros(
    text: str, field: str, named: str, tmp_path: Path
):
    (tmp_path / "mine.csv").write_text(text, encoding="utf-8")
    with pytest.raises(InputError) as error:
        read_prices(str(tmp_path / "mine.csv"))
    assert field in error.value.field
    assert named in error.value.allowed


def test_columns_zone_and_rows_of_any_other_table_are_named(tmp_path: Path):
    hours = [*(f"26.10.2025 {h:02}:00" for h in (0, 1, 2, 2, 3)), "26.10.2025 03:00"]
    rows = [f"{time};{'DE' if i < 5 else 'FR'};{i},5" for i, time in enumerate(hours)]
    (tmp_path / "mine.csv").write_text("\n".join(["Beginn;Zone;Preis", *rows]))
    with pytest.raises(InputError, match="time_zone"):
        read_prices(str(tmp_path / "mine.csv"), PriceColumns({"time": "Beginn", "eur_per_mwh": "Preis"}))
    settings = {
        "prices.series": str(tmp_path / "mine.csv"), "prices.columns.time": "Beginn",
        "prices.time_zone": "Europe/Berlin", "prices.columns.eur_per_mwh": "Preis",
        "prices.start": "2025-10-26T00:00", "prices.where": ["Zone = DE"],
    }  # fmt: skip
    series = make_instance(load_scenario("tiny").replace(settings), 0).find("prices")
    assert series.start_s[:5].tolist() == [0.0, HOUR, 2 * HOUR, 3 * HOUR, 4 * HOUR]
    assert series.eur_per_kwh[:5].tolist() == [0.005, 0.005, 0.005, 0.005, 0.005]
    table = read_prices(
        str(tmp_path / "mine.csv"),
        PriceColumns({"time": "Beginn", "eur_per_mwh": "Preis"}, ["Zone = DE"], "Europe/Berlin"),
    )
    assert table.local_h.tolist() == [2.0, 2.0, 2.0, 1.0, 1.0]
    for wrong, field in (
        ({"prices.time_zone": "Berlin"}, "prices.time_zone"),
        ({"prices.where": ["x = 1"]}, "prices.where"),
    ):
        with pytest.raises(InputError) as error:
            make_instance(load_scenario("tiny").replace(settings | wrong), 0)
        assert error.value.field == field


def test_carbon_alone_goes_with_the_one_price(tmp_path: Path):
    name = "Carbon intensity gCO₂eq/kWh"
    rows = [f"2025-09-01 0{hour}:00:00,DE,{300 + hour},{400 + hour}" for hour in range(3)]
    text = "\n".join([f"Datetime (UTC),Zone id,{name} (direct),{name} (Life cycle)", *rows])
    (tmp_path / "DE_2025_hourly.csv").write_text(text, encoding="utf-8")
    settings = {"series": str(tmp_path / "DE_2025_hourly.csv"), "start": "2025-09-01T00:00"}
    series = make_instance(scenario(**settings, energy_price_eur_per_kwh=0.3, levy_eur_per_kwh=0.1), 0).find("prices")
    assert series.g_per_kwh[:3].tolist() == [300.0, 301.0, 302.0]
    assert set(series.eur_per_kwh) == {0.4}
    other = scenario(**settings, columns={"g_per_kwh": f"{name} (Life cycle)"})
    assert make_instance(other, 0).find("prices").g_per_kwh[0] == 400.0


def hourly(missing: range, hours: int = 480, step_s: int = 3600) -> str:
    begin = np.datetime64("2025-09-01T00:00:00")
    rows = (
        f"{begin + np.timedelta64(step_s * h, 's')}Z,{(h % 24 + 1) / 100}" for h in range(hours) if h not in missing
    )
    return "\n".join(["time,eur_per_kwh", *rows])


@pytest.mark.parametrize(
    ("text", "places", "values", "note"),
    [
        (hourly(range(30, 31)), [29, 30, 31], [6, 6, 8], "the period 2025-09-02T06:00+00:00 is missing"),
        (hourly(range(30, 33)), [30, 31, 32, 33], [6, 6, 6, 10], "3 periods from 2025-09-02T06:00"),
        (
            hourly(range(30, 150)),
            [30, 53, 54, 149, 150],
            [7, 6, 7, 6, 7],
            "120 periods from 2025-09-02T06:00+00:00 to 2025-",
        ),
        (hourly(range(30, 32), step_s=900), [30, 31], [6, 6], "2 periods from 2025-09-01T07:30"),
    ],
)
def test_missing_periods_have_the_values_before_or_those_of_the_day_before(
    text: str, places: list[int], values: list[int], note: str, tmp_path: Path
):
    (tmp_path / "mine.csv").write_text(text)
    table = read_prices(str(tmp_path / "mine.csv"))
    assert len(table.time_s) == 480
    assert len(set(np.diff(table.time_s))) == 1
    assert (100 * table.eur_per_kwh[places]).tolist() == pytest.approx(values)
    (told,) = price_notes(load_scenario("tiny").replace({"prices.series": str(tmp_path / "mine.csv")}).prices)
    assert told.startswith(f"mine.csv: {note}")


def test_a_gap_that_is_too_long_is_refused_with_its_first_and_last_period(tmp_path: Path):
    for missing, first in ((range(100, 270), "2025-09-05T04:00"), (range(5, 10), "2025-09-01T05:00")):
        (tmp_path / "mine.csv").write_text(hourly(missing))
        with pytest.raises(InputError, match=first):
            read_prices(str(tmp_path / "mine.csv"))


def test_periods_of_different_lengths_are_no_gaps_and_are_reported(tmp_path: Path):
    hours = [*range(48), *np.arange(48.0, 96.0, 0.25)]
    begin = np.datetime64("2025-09-01T00:00:00")
    tariff = [24 * day + hour for day in range(9) for hour in (0, 6, 22)]
    said = "mine.csv: periods have 120 to 960 min; the values of each hold until the next begins."
    for times, notes in ((hours, ()), (tariff, (said,))):
        rows = (f"{begin + np.timedelta64(int(3600 * hour), 's')}Z,1" for hour in times)
        (tmp_path / "mine.csv").write_text("\n".join(["time,eur_per_kwh", *rows]))
        table = read_prices(str(tmp_path / "mine.csv"))
        assert (len(table.time_s), table.notes) == (len(times), notes)


def test_prices_below_zero_are_read_billed_at_the_floor_and_told(tmp_path: Path):
    (tmp_path / "mine.csv").write_text("time,eur_per_kwh\n2025-09-01T00:00Z,-0.1\n2025-09-01T01:00Z,0.2\n")
    made = scenario(series=str(tmp_path / "mine.csv"), start="2025-09-01T00:00")
    assert make_instance(made, 0).find("prices").eur_per_kwh[:2].tolist() == [0.005, 0.2]
    assert "1 of 2 periods have a price below 0" in price_notes(made.prices)[0]
    with pytest.raises(InputError, match="best to waste energy"):
        scenario(floor_eur_per_kwh=-1.0)


@pytest.mark.parametrize(
    ("prices", "field", "allowed"),
    [
        ({"series": "mars"}, "prices.series", "de-lu-2024"),
        ({"start": "soon"}, "prices.start", "2024-03-01T00:00"),
        ({"start": "2024-03-01T00:00+01:00"}, "prices.start", "without a time zone"),
        ({"first_month": "March"}, "prices.first_month", "2024-03"),
        ({"published_at": "25:00"}, "prices.published_at", "12:45"),
        ({"series": None, "start": "random", "levy_eur_per_kwh": 0.1}, "prices.levy_eur_per_kwh", "without a series"),
        ({"energy_price_eur_per_kwh": 0.0}, "prices.energy_price_eur_per_kwh", "> 0 with a series"),
    ],
)
def test_a_wrong_setting_is_refused(prices: dict[str, Any], field: str, allowed: str):
    with pytest.raises(InputError) as error:
        scenario(**prices)
    assert (error.value.field, allowed in error.value.allowed) == (field, True)


@pytest.mark.parametrize(
    ("prices", "field"),
    [
        ({"start": "1999-03-01T00:00"}, "prices.start"),
        ({"start": "random", "first_month": "2026-01"}, "prices.first_month"),
        ({"carbon_eur_per_t": 50.0}, "prices.carbon_eur_per_t"),
    ],
)
def test_what_the_series_does_not_have_is_refused(prices: dict[str, Any], field: str):
    with pytest.raises(InputError) as error:
        make_instance(scenario(**prices), 0)
    assert error.value.field == field


def test_every_built_in_series_is_whole():
    for name in PRICE_SERIES:
        table = builtin_prices(name)
        assert np.isfinite(table.eur_per_kwh).all()
        assert (np.diff(table.time_s) == HOUR).all()
    for name, mean in (("caiso-2022", 256.06), ("ercot-2022", 343.44)):
        assert builtin_prices(name).g_per_kwh.mean() == pytest.approx(mean, abs=0.01)
    assert builtin_prices("ercot-2023").g_per_kwh is None


@pytest.mark.skipif(
    not (DATA / "electricity_prices").is_dir(), reason="the public prices are not beside the repository"
)
def test_the_built_in_prices_are_those_of_the_source():
    with (DATA / "electricity_prices" / "hourly_prices_2020_2024.csv").open() as file:
        rows = list(csv.DictReader(file))
    source = {"de-lu": "de_lu_day_ahead_eur_per_mwh", "caiso": "caiso_np15_day_ahead_usd_per_mwh"}
    for market, column in source.items():
        ours = builtin_prices(market).eur_per_kwh
        there = np.array([float(row[column]) if row[column] else np.nan for row in rows])
        known = np.isfinite(there)
        np.testing.assert_allclose(ours[known], there[known] / 1000.0, atol=1e-9)
