"""The field `prices` of an instance file: a series of prices as columns."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpusched_env.errors import InputError
from gpusched_env.formats.json_fields import Schema, check_lengths, value_of
from gpusched_env.model import DemandCharge, PriceSeries
from gpusched_env.model.prices import ARRAYS

SCHEMA: dict[str, Schema] = {
    "start_s": [float],
    "eur_per_kwh": [float],
    "g_per_kwh?": [float],
    "pue?": [float],
    "published_s?": [None],
    "demand?": {"eur_per_kw": float, "interval_s": float, "months_s": [float]},
    "monday_s?": float,
    "forecast_noise?": float,
    "forecast_seed?": int,
}
"""Columns have a value for each period; null in `published_s` is a price that was known from the beginning."""


def price_fields(series: PriceSeries) -> dict[str, Any]:
    """Return the field of a series: optional ones only where they differ from the default."""
    fields: dict[str, Any] = {
        name: getattr(series, name).tolist() for name in ARRAYS if getattr(series, name) is not None
    }
    if series.published_s is not None:
        fields["published_s"] = [None if value == -np.inf else value for value in fields["published_s"]]
    if series.demand is not None:
        own = series.demand
        fields["demand"] = {
            "eur_per_kw": float(own.eur_per_kw),
            "interval_s": float(own.interval_s),
            "months_s": [float(month) for month in own.months_s],
        }
    numbers = {"monday_s": float(series.monday_s), "forecast_noise": float(series.forecast_noise)}
    return fields | {k: v for k, v in (numbers | {"forecast_seed": int(series.forecast_seed)}).items() if v}


def prices_of(read: dict[str, Any]) -> PriceSeries:
    columns: dict[str, Any] = {name: read[name] for name in ARRAYS if name in read}
    check_lengths("prices", columns)
    for index, value in enumerate(columns.get("published_s", ())):
        if value is not None:
            value_of(f"prices.published_s[{index}]", value, float)
    if "published_s" in columns:
        columns["published_s"] = [-np.inf if value is None else value for value in columns["published_s"]]
    if not columns["start_s"]:
        raise InputError("prices.start_s", [], "at least one value")
    rest = {name: value for name, value in read.items() if name not in ARRAYS}
    if "demand" in rest:
        rest["demand"] = DemandCharge(**(rest["demand"] | {"months_s": tuple(rest["demand"]["months_s"])}))
    arrays: dict[str, Any] = {name: np.array(column) for name, column in columns.items()}
    return PriceSeries(**arrays, **rest)
