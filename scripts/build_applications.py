"""Make the built-in application profiles and GPU types from the public measurements.

Writes `gpu_types.csv`, `applications.csv`, `application_facts.csv`, `whole_nodes.csv`, `communication.csv`,
`spread.csv`, `colocation.csv`, `utilisation.csv` and `inflation.csv`, always the same bytes for the same measurements.
Prints the single-GPU speed factors it used, what data sheets say of them, how unequal the workers of jobs on shared
GPUs are, and a line `dropped FILE ROW: REASON` for every cell of the scaling tables that is zero, blank, NaN or out of
line (see `applications/screening.py`). `gpusched_env/workload/tables/data/README.md` explains the figures.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from applications.affinity import spread_rows
from applications.arguments import parse
from applications.colocation import colocation_rows
from applications.communication import communication_rows
from applications.data_sheets import data_sheet_factors, data_sheet_report
from applications.factors import geometric_mean, mean_factors, speed_factors
from applications.facts import facts_row
from applications.inflation import inflation_rows
from applications.mlperf import NOT_VERIFIED, mlperf_factors, speeds_beside_h100
from applications.power import GPUS_PER_NODE, gpu_type_rows
from applications.profiles import Profile
from applications.recipes import RECIPES
from applications.screening import survey
from applications.spread import worker_spread
from applications.tables import write_csv
from applications.utilisation import utilisation_rows
from applications.whole_nodes import whole_nodes_rows

if TYPE_CHECKING:
    from pathlib import Path


def main() -> None:
    """Read the measurements, write the tables, print the report."""
    arguments = parse(__doc__, "../shared/data")
    factors = speed_factors(arguments.data)
    measured = mean_factors(factors)
    by_mlperf = mlperf_factors(arguments.data, measured["A100"])
    by_mlperf["H100-air"] = by_mlperf["H100"]
    means = measured | by_mlperf | data_sheet_factors(measured)
    means = {gpu: means[gpu] for gpu in GPUS_PER_NODE}
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
        [facts_row(recipe, single_v100[recipe.name], arguments.data) for recipe in RECIPES],
    )
    whole_nodes = [row for recipe in RECIPES for row in whole_nodes_rows(recipe, arguments.data)]
    write_csv(arguments.out / "whole_nodes.csv", whole_nodes)
    communication = [row for recipe in RECIPES for row in communication_rows(recipe, arguments.data)]
    write_csv(arguments.out / "communication.csv", communication)
    write_csv(arguments.out / "spread.csv", [row for recipe in RECIPES for row in spread_rows(recipe, arguments.data)])
    write_csv(arguments.out / "colocation.csv", colocation_rows(RECIPES, means, arguments.data))
    write_csv(arguments.out / "utilisation.csv", utilisation_rows(RECIPES, means, arguments.data))
    write_csv(arguments.out / "inflation.csv", inflation_rows(means, arguments.data))
    _report(arguments.data, factors, measured, by_mlperf)


def _report(
    data: Path, factors: dict[str, dict[str, float]], means: dict[str, float], by_mlperf: dict[str, float]
) -> None:
    for gpu, ratios in factors.items():
        parts = ", ".join(f"{name} {ratio:.3f}" for name, ratio in ratios.items())
        print(f"speed of one {gpu} against one V100: {means[gpu]:.4f} (geometric mean of {parts})")
    for gpu, ratios in speeds_beside_h100(data).items():
        parts = ", ".join(f"{name} {ratio:.3f}" for name, ratio in sorted(ratios.items()))
        mean = geometric_mean(ratios.values())
        print(f"speed of eight {gpu} against eight H100: {mean:.4f} (geometric mean of {parts}); {NOT_VERIFIED}")
    for gpu, factor in by_mlperf.items():
        print(f"speed of one {gpu} against one V100, by MLPerf's ratio to A100: {factor:.4f}")
    for line in data_sheet_report(means, by_mlperf):
        print(line)
    print(worker_spread(data))
    for line in survey(data):
        print(line)


if __name__ == "__main__":
    main()
