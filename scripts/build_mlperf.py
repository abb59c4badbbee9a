"""Make the tables of MLPerf Training's applications, of the epochs that they need, and of the power of their nodes.

Writes `mlperf_applications.csv`, `mlperf_epochs.csv` and `mlperf_power.csv`, always the same bytes for the same runs.
`gpusched_env/workload/tables/data/README.md` explains them. Prints how much the epochs needed vary, and a line
`dropped …` for every number of nodes that was no faster than fewer.
"""

from __future__ import annotations

from applications.arguments import parse
from applications.mlperf_tables import application_rows, epoch_rows, epochs_report, power_rows
from applications.tables import write_csv


def main() -> None:
    """Read the runs and write the tables."""
    arguments = parse(__doc__, "../shared/data")
    write_csv(arguments.out / "mlperf_applications.csv", application_rows(arguments.data))
    write_csv(arguments.out / "mlperf_epochs.csv", epoch_rows(arguments.data))
    write_csv(arguments.out / "mlperf_power.csv", power_rows(arguments.data))
    for line in epochs_report(arguments.data):
        print(line)


if __name__ == "__main__":
    main()
