"""Make the tables of how unevenly the jobs of public traces come.

Writes `arrival_profiles.csv` and `arrival_bursts.csv`, always the same bytes for the same traces.
`docs/scenarios.md` explains them.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from applications.arrivals import arrival_tables
from applications.tables import write_csv, write_table


def main() -> None:
    """Read the traces and write the tables."""
    arguments = _parse()
    profiles, bursts = arrival_tables(arguments.data)
    write_table(arguments.out / "arrival_profiles.csv", profiles)
    write_csv(arguments.out / "arrival_bursts.csv", bursts)


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    data = Path("../shared/data")
    parser.add_argument("--data", type=Path, default=data, help="folder of the public files")
    out = Path("gpusched_env/workload/tables/data")
    parser.add_argument("--out", type=Path, default=out, help="folder of the tables")
    return parser.parse_args()


if __name__ == "__main__":
    main()
