"""Make the tables of how unevenly the jobs of public traces come.

Writes `arrival_profiles.csv` and `arrival_bursts.csv`, always the same bytes for the same traces.
`gpusched_env/workload/tables/data/README.md` explains them.
"""

from __future__ import annotations

from applications.arguments import parse
from applications.arrivals import arrival_tables
from applications.tables import write_csv, write_table


def main() -> None:
    """Read the traces and write the tables."""
    arguments = parse(__doc__, "../shared/data")
    profiles, bursts = arrival_tables(arguments.data)
    write_table(arguments.out / "arrival_profiles.csv", profiles)
    write_csv(arguments.out / "arrival_bursts.csv", bursts)


if __name__ == "__main__":
    main()
