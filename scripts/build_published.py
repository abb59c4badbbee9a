"""Make the tables of the inputs that the authors of STS published.

Writes `published_applications.csv`, `published_inhouse_applications.csv` and `published_epochs.csv`, always the same
bytes for the same files. `gpusched_env/workload/tables/data/README.md` explains them.
"""

from __future__ import annotations

from applications.arguments import parse
from applications.published import epochs_table, inhouse_rows, published_rows
from applications.tables import write_csv, write_table


def main() -> None:
    """Read the published files and write the tables."""
    arguments = parse(__doc__, "../shared/data/gpuspb")
    write_csv(arguments.out / "published_applications.csv", published_rows(arguments.data))
    write_csv(arguments.out / "published_inhouse_applications.csv", inhouse_rows(arguments.data))
    write_table(arguments.out / "published_epochs.csv", epochs_table(arguments.data))


if __name__ == "__main__":
    main()
