"""Names of the features of prices."""

from __future__ import annotations

from gpusched_env.observation.ratios import Names

HOURS = 36  # from noon a day-ahead auction has made known the prices until midnight of the next day
TOGETHER = 4  # hours in a row that a job without a pause may take
HOUR_S = 3600.0
DAYS_OF_MONTH = 31.0

_price = Names()
NOW = _price("squash(price now / m - 1), m = mean of the next 36 hours that are published; of all where none are")
HOUR = _price(*(f"squash(price from {k} h to {k + 1} h from now / m - 1), published or forecast" for k in range(HOURS)))
KNOWN = _price("hours of these that are published / 36")
QUANTILE = _price("share of these hours that are cheaper than now")
CHEAPEST = _price("hours until the cheapest of these / 36")
CHEAPEST_ROW = _price(f"hours until the cheapest {TOGETHER} in a row / 36")
LEVEL = _price("squash(m / price with which policies plan - 1)")
CARBON = _price(
    "squash(carbon intensity now / its mean over the published of these hours - 1); 0 where it is not given"
)
CARBON_QUANTILE = _price("share of the published of these hours with a lower one; 0 where it is not given")
PEAK = _price("highest mean power for which the demand charge was paid this month / power of all GPUs; 0 without")
INTERVAL = _price("mean power over its present interval, as if no more were used / power of all GPUs; 0 without")
MONTH_LEFT = _price("days left in the billing month / 31, at most 1; 0 without a demand charge")
FEATURES = tuple(_price)
"""Features of prices, which `price_features` adds to observations."""
