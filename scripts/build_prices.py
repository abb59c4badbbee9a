"""Make the table of hourly prices and carbon intensities, `hourly_prices.csv.xz`: the same bytes for the same sources.

`gpusched_env/workload/tables/data/README.md` explains it. Needs the time zones of the system (`zoneinfo`).
"""

from __future__ import annotations

import csv
import lzma
from datetime import datetime
from zoneinfo import ZoneInfo

from applications.arguments import parse

MARKETS = {
    "de_lu": ("de_lu_day_ahead_eur_per_mwh", "Europe/Berlin"),
    "caiso": ("caiso_np15_day_ahead_usd_per_mwh", "America/Los_Angeles"),
    "ercot": ("ercot_hubavg_day_ahead_usd_per_mwh", "America/Chicago"),
}
CARBON = {"caiso": "ciso_gco2eq_per_kwh", "ercot": "erco_gco2eq_per_kwh"}


def main() -> None:
    """Read prices and intensities, and write one row for each hour."""
    arguments = parse(__doc__, "../shared/data")
    carbon = {}
    with (arguments.data / "carbon_us_2022" / "hourly_carbon_intensity_2022.csv").open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            carbon[row["hour_utc"]] = row
    columns = [f"{name}_{what}" for name in MARKETS for what in ("price", "local_h")]
    lines = [",".join(columns + [f"{name}_g" for name in CARBON])]
    with (arguments.data / "electricity_prices" / "hourly_prices_2020_2024.csv").open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            cells = []
            for column, zone in MARKETS.values():
                cells.append(_scaled(row[column], 100))
                cells.append(_local_h(row["hour_utc"], zone))
            emitted = carbon.get(row["hour_utc"], {})
            lines.append(",".join(cells + [_scaled(emitted.get(column, ""), 10) for column in CARBON.values()]))
    arguments.out.mkdir(parents=True, exist_ok=True)
    text = "\n".join(lines) + "\n"
    (arguments.out / "hourly_prices.csv.xz").write_bytes(lzma.compress(text.encode(), preset=9 | lzma.PRESET_EXTREME))


def _scaled(cell: str, factor: int) -> str:
    return str(round(float(cell) * factor)) if cell else ""


def _local_h(stamp: str, zone: str) -> str:
    """Return the hours by which local time is before UTC, or after it (negative)."""
    offset = datetime.fromisoformat(stamp).astimezone(ZoneInfo(zone)).utcoffset()
    return f"{offset.total_seconds() / 3600:g}" if offset is not None else ""


if __name__ == "__main__":
    main()
