"""Files of prices and carbon intensities as they are published: columns, times, and numbers.

Read are own names, the exports of ENTSO-E and its client entsoe-py, gridstatus, OASIS and Electricity Maps; the columns
of other tables are named (`prices.columns`).
"""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from gpusched_env.errors import InputError
from gpusched_env.files import unpack
from gpusched_env.workload.tables import PRICE_FIELDS
from gpusched_env.workload.tables.hourly_prices import PriceTable
from gpusched_env.workload.tables.price_gaps import without_gaps
from gpusched_env.workload.tables.price_times import LINE, naive, times_in
from gpusched_env.workload.traces.columns import MISSING, Condition
from gpusched_env.workload.traces.presets import shell_word

Floats = NDArray[np.float64]
LBS, LBS_PER_MWH = "lbs_co2_per_mwh", 0.45359237
"""The unit of WattTime, and what it is in g/kWh."""
FORMS = {
    "time": (
        r"mtu \(.*|interval[ _]?start([ _]utc)?|intervalstarttime_gmt|datetime \(utc\)|",
        r"delivery start \(.*\)|datum( von| \(.*\))|start_?timestamp|utc_timestamp|startsat|valid_from|point_time",
    ),
    "eur_per_mwh": (
        r"day-ahead price [\[(]eur/mwh[\])]|lmp|spp|0",
        r".*[\[(](eur|€)/mwhe?[\])].*|(?!.*(kwh|\bct\b|cents?\b)).* \(eur\)|marketprice|.*_price_day_ahead",
    ),
    "g_per_kwh": (r"carbon intensity .*\(direct\)", LBS),
}
"""Columns of published tables, in small letters, the more certain first; an index without a name is a time."""
OTHER_UNITS = re.compile(r"gbp|usd|£|\$|nok|sek|dkk|pln|chf|czk|lbs|pence|\bcents?\b|\bct\b|co2|vat", re.IGNORECASE)
OF_ONE_HOUR = re.compile(r"(hour|stunde|h) ?\d\d?[ab]?", re.IGNORECASE)
LIKELY_EUR_PER_KWH = (0.002, 2.0)
"""Between these the mean of prices is [€/kWh], where units are not mixed up."""
OASIS, OASIS_PRICES = "INTERVALSTARTTIME_GMT", ("MW", "VALUE", "PRC")
LEAST = {"g_per_kwh": 0.0, "pue": 1.0}
MWH = 1000.0
NO_VALUE = {*MISSING, "n/e"}


@dataclass(frozen=True, slots=True)
class PriceColumns:
    """How a file of prices is to be read.

    Attributes:
        columns: Column of a field (`PRICE_FIELDS`) where it has another name.
        where: Conditions that rows must meet, such as `NODE = TH_NP15_GEN-APND`.
        time_zone: Zone of times without an offset, such as Europe/Berlin; None: that which the column's name tells.
    """

    columns: Mapping[str, str]
    where: Sequence[str] = ()
    time_zone: str | None = None


def read_prices(path: str, given: PriceColumns = PriceColumns({})) -> PriceTable:
    """Read prices [€/kWh or €/MWh], carbon intensities [g CO₂/kWh] or both, by period, in any order of time.

    Raises:
        InputError: The file cannot be read, lacks a column, has a cell that is no number or time, several rows for one
            time, or a gap that is too long; it names file, line, column and value.
    """
    file = Path(path).name
    table = _rows(Path(path))
    column_of = _columns(file, table, given.columns)
    table, of_file = _taken(table, column_of, given.where)
    fields = [field for field in PRICE_FIELDS[1:] if field in column_of]
    empty = pl.any_horizontal(pl.col(column_of[f]).str.strip_chars().str.to_lowercase().is_in(NO_VALUE) for f in fields)
    whole = table.filter(~empty)
    if whole.is_empty():
        raise InputError(f"{file}: rows", len(table), "at least one row with values; prices.where leaves rows out")
    values = {field: _numbers(file, whole, column_of[field], LEAST.get(field, -np.inf)) for field in fields}
    time_s, local_h = times_in(file, whole, column_of["time"], given.time_zone)
    order = _once(file, whole, column_of["time"], time_s, values)
    price = values.get("eur_per_kwh", values["eur_per_mwh"] / MWH if "eur_per_mwh" in values else None)
    columns = (price, values.get("g_per_kwh"), values.get("pue"))
    prices, carbon, pue = (None if column is None else column[order] for column in columns)
    if carbon is not None and column_of["g_per_kwh"] == LBS:
        carbon = carbon * LBS_PER_MWH
    made = PriceTable(time_s[order], local_h[order], prices, carbon, pue, -np.inf, np.inf)
    left_out = {
        "of other sequences or kinds of price": of_file - len(table),
        "without a value": len(table) - len(whole),
    }
    notes = tuple(f"{file}: rows {reason} that are left out: {count:,}." for reason, count in left_out.items() if count)
    return without_gaps(file, replace(made, notes=(*notes, *_of_units(file, column_of, prices))))


def _of_units(file: str, column_of: Mapping[str, str], prices: Floats | None) -> list[str]:
    """Return what to check where the unit of prices is not given, or is not likely."""
    if prices is None:
        return []
    field = next(field for field in ("eur_per_kwh", "eur_per_mwh") if field in column_of)
    name, mean = column_of[field], float(np.mean(np.abs(prices)))
    notes = []
    if name.lower() in ("lmp", "spp") or name in OASIS_PRICES or OTHER_UNITS.search(name):
        notes.append(f"{file}: numbers of {name} are taken as euros, whatever their currency.")
    if not LIKELY_EUR_PER_KWH[0] <= mean <= LIKELY_EUR_PER_KWH[1]:
        notes.append(f"{file}: {name} is read as {field}; its mean is {mean:.3g} €/kWh: check the unit.")
    return notes


def _once(
    file: str, table: pl.DataFrame, column: str, time_s: Floats, values: Mapping[str, Floats]
) -> NDArray[np.int64]:
    """Return the rows in order of time; of rows that are alike the first. Others of one time are an error."""
    order: NDArray[np.int64] = np.argsort(time_s, kind="stable")
    again = np.flatnonzero(np.diff(time_s[order]) == 0.0) + 1
    for place in again:
        first, second = (int(row) for row in order[place - 1 : place + 1])
        if any(each[first] != each[second] for each in values.values()):
            allowed = "one row for each time: a later time than the line before, or rows chosen by --set 'prices.where="
            where = f"{file}: line {table[LINE][second]}, {column}"
            raise InputError(where, table[column][second], f'{allowed}["COLUMN = VALUE"]\'')
    return np.delete(order, again)


def _rows(path: Path) -> pl.DataFrame:
    """Read a table as texts, with the number of each line; blank lines and what is after the last column are left out.

    A line with too few or too many cells is an error.
    """
    try:
        data = unpack(path.read_bytes())
        text = data.decode("utf-16") if data[:2] in {b"\xff\xfe", b"\xfe\xff"} else data.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = data.decode("cp1252", errors="replace")
    except (OSError, ValueError) as error:
        raise InputError(str(path), getattr(error, "strerror", None) or str(error), "a file that can be read") from None
    lines = ["" if re.match("#|sep=.$", line) else line for line in text.splitlines()]
    header = re.sub('"[^"]*"', "", next((line for line in lines if line.strip()), ""))
    reader = csv.reader(lines, delimiter=next((sign for sign in ";\t|" if sign in header), ","))
    try:
        rows = [(reader.line_num, [cell.strip() for cell in row]) for row in reader if any(map(str.strip, row))]
    except csv.Error:
        raise InputError(f"{path.name}: line {reader.line_num + 1}", "no row", "a row of a table of texts") from None
    if text.lstrip()[:1] in ("", "{", "[", "<") or "\0" in text:
        raise InputError(path.name, "no table", f"a table of texts such as CSV, no JSON, XML or spreadsheet: {_NEEDED}")
    names = rows[0][1] if rows else []
    if len(rows) > 2 and not rows[1][1][0] and not any(map(_number, rows[1][1])):  # a second line of names
        names = [" ".join(filter(None, each)) for each in zip(names, rows[1][1], strict=False)]
        rows = [rows[0], *rows[2:]]
    if len(rows) < 2 or len(set(names)) < len(names):
        raise InputError(f"{path.name}: columns", ", ".join(names), f"names that differ: {_NEEDED}")
    for line, row in rows[1:]:
        if len(row) != len(names):
            raise InputError(f"{path.name}: line {line}", f"{len(row)} cells", f"{len(names)}, as the first line has")
    table = pl.DataFrame([row for _, row in rows[1:]], schema=dict.fromkeys(names, pl.String), orient="row")
    if {"value", "units"} <= set(names) and (table["units"] == LBS).all():
        table = table.rename({"value": LBS})
    return table.select(pl.Series(LINE, [line for line, _ in rows[1:]]), pl.all())


_NEEDED = (
    "time and eur_per_kwh or eur_per_mwh, in euros (g_per_kwh for carbon alone), perhaps g_per_kwh and pue, and one "
    "line or more below"
)


def _columns(file: str, table: pl.DataFrame, given: Mapping[str, str]) -> dict[str, str]:
    """Return the column of every field that there is: named ones, own names, then those of published tables."""
    names = [name for name in table.columns if name != LINE]
    for field, name in given.items():
        if name not in names:
            raise InputError(f"prices.columns.{field}", name, f"one of {', '.join(names)}")
    column_of = {field: field for field in PRICE_FIELDS if field in names}
    own = len(column_of) >= 2 and "time" in column_of and not given
    for field, forms in FORMS.items():
        found = [name for name in names if re.fullmatch(forms[0], name.lower())]
        others = [name for name in names if re.fullmatch(forms[1], name.lower())]
        found += others if not found and len(others) == 1 else []
        found += [name for name in OASIS_PRICES if field == "eur_per_mwh" and name in names and OASIS in names]
        if field not in column_of and found and not own:
            column_of[field] = max(found, key=bool)  # a table with an index may have a time too
    for unit, other in (("eur_per_kwh", "eur_per_mwh"), ("eur_per_mwh", "eur_per_kwh")):
        if unit in given:
            column_of.pop(other, None)
    column_of |= given
    values = [field for field in ("eur_per_kwh", "eur_per_mwh", "g_per_kwh") if field in column_of]
    unknown = [name for name in names if name not in PRICE_FIELDS] if own else []
    if "time" not in column_of or not values or len({"eur_per_kwh", "eur_per_mwh"} & set(values)) == 2 or unknown:
        if sum(bool(OF_ONE_HOUR.fullmatch(name)) for name in names) > 3:
            raise InputError(f"{file}: columns", ", ".join(names), f"a line for each period, not a column: {_NEEDED}")
        allowed = f"{_NEEDED}; or name them: {_settings(table, column_of, names)}"
        raise InputError(f"{file}: columns", ", ".join(names), allowed)
    return column_of


def _settings(table: pl.DataFrame, column_of: Mapping[str, str], names: list[str]) -> str:
    """Write the options that name the columns: those whose cells are times or numbers, and COLUMN for others."""
    text = [name for name in names if name not in column_of.values()]
    times = [name for name in text if naive(table[name][0]) is not None]
    numbers = [name for name in text if _number(table[name][0].replace(",", ".")) is not None]
    own_unit = [name for name in numbers if not OTHER_UNITS.search(name)]
    told = [table[name][0] for name in names if name.lower() in ("unit", "units", "currency")]
    numbers = own_unit if all(re.search("eur|€", each.lower()) for each in told) else []
    priced = [name for name in numbers if re.search("price|preis|eur|€|usd|mwh|kwh", name.lower())] or numbers
    price = priced[0] if len(priced) == 1 else "COLUMN"
    known = [(field, name) for field, name in column_of.items() if field in ("eur_per_kwh", "eur_per_mwh")]
    likely = dict(known[:1]) or {"eur_per_kwh" if "kwh" in price.lower() else "eur_per_mwh": price}
    chosen = {"time": column_of.get("time") or next(iter(times), "COLUMN"), **likely}
    return " ".join(f"--set prices.columns.{field}={shell_word(name)}" for field, name in chosen.items())


def _taken(table: pl.DataFrame, column_of: Mapping[str, str], where: Sequence[str]) -> tuple[pl.DataFrame, int]:
    """Return the rows that meet the conditions, and how many do.

    Of these only the prices of OASIS (`LMP`) and the first sequence of each time of ENTSO-E are kept.
    """
    for text in where:
        try:
            table = table.filter(Condition.parse(text).holds(table, column_of))
        except InputError as error:
            raise InputError("prices.where", text, error.allowed) from None
    met = len(table)
    if "LMP_TYPE" in table.columns and not any("LMP_TYPE" in text for text in where):
        table = table.filter(pl.col("LMP_TYPE") == "LMP")
    if "Sequence" in table.columns:
        table = table.filter(pl.col("Sequence") == pl.col("Sequence").min().over(column_of["time"]))
    return table, met


def _numbers(file: str, table: pl.DataFrame, column: str, least: float) -> Floats:
    cells = table[column]
    commas = cells.filter(cells.str.contains(",", literal=True))
    if len(commas):
        thousands = commas.str.contains(r"^-?\d{1,3}(,\d{3})+\.\d+$").all()
        other = cells.str.replace_all("," if thousands else ".", "", literal=True)
        cells = other if thousands else other.str.replace(",", ".", literal=True)
    numbers: Floats = np.array([np.nan if (n := _number(cell)) is None else n for cell in cells])
    bad = ~np.isfinite(numbers) | (numbers < least)
    if np.any(bad):
        row = int(np.argmax(bad))
        allowed = "a finite number" + ("" if least == -np.inf else f" >= {least:g}")
        raise InputError(f"{file}: line {table[LINE][row]}, {column}", table[column][row], allowed)
    return numbers


def _number(cell: str) -> float | None:
    try:
        return float(cell)
    except ValueError:
        return None
