"""Make the built-in application profiles and GPU types from the public measurements.

Writes `gpu_types.csv`, `applications.csv` and `application_facts.csv`, always the same bytes for the same measurements.
Prints the single-GPU speed factors it used and a line `dropped FILE ROW: REASON` for every cell of the scaling tables
that is zero, blank, NaN or out of line (see `applications/screening.py`). `docs/applications.md` explains the figures.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from applications.factors import mean_factors, speed_factors
from applications.facts import facts_row
from applications.power import gpu_type_rows
from applications.profiles import Profile
from applications.recipes import RECIPES
from applications.screening import survey
from applications.tables import write_csv


def main() -> None:
    """Read the measurements, write the three tables, print the report."""
    arguments = _parse()
    factors = speed_factors(arguments.data)
    means = mean_factors(factors)
    profiles = {recipe.name: Profile(recipe, means, arguments.data).rows() for recipe in RECIPES}
    single_v100 = {
        row.application: row.seconds_per_epoch
        for rows in profiles.values()
        for row in rows
        if (row.gpu_type, row.gpus) == ("V100", 1)
    }
    write_csv(arguments.out / "gpu_types.csv", gpu_type_rows(arguments.data))
    write_csv(arguments.out / "applications.csv", [row for rows in profiles.values() for row in rows])
    write_csv(
        arguments.out / "application_facts.csv",
        [facts_row(recipe, single_v100[recipe.name]) for recipe in RECIPES],
    )
    _report(arguments.data, factors, means)


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"), help="folder of the public measurements")
    parser.add_argument("--out", type=Path, default=Path("gpusched_env/workload/data"), help="folder of the tables")
    return parser.parse_args()


def _report(data: Path, factors: dict[str, dict[str, float]], means: dict[str, float]) -> None:
    for gpu, ratios in factors.items():
        parts = ", ".join(f"{name} {ratio:.3f}" for name, ratio in ratios.items())
        print(f"speed of one {gpu} against one V100: {means[gpu]:.4f} (geometric mean of {parts})")
    for line in survey(data):
        print(line)


if __name__ == "__main__":
    main()
