"""Make the tables of the inputs that the authors of STS published.

Writes `published_applications.csv`, `published_inhouse_applications.csv` and `published_epochs.csv`, always the same
bytes for the same files. `docs/applications.md` explains them.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from applications.published import epochs_table, inhouse_rows, published_rows
from applications.tables import write_csv, write_table


def main() -> None:
    """Read the published files and write the tables."""
    arguments = _parse()
    write_csv(arguments.out / "published_applications.csv", published_rows(arguments.data))
    write_csv(arguments.out / "published_inhouse_applications.csv", inhouse_rows(arguments.data))
    write_table(arguments.out / "published_epochs.csv", epochs_table(arguments.data))


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    data = Path("../shared/data/gpuspb")
    parser.add_argument("--data", type=Path, default=data, help="folder of the published files")
    out = Path("gpusched_env/workload/tables/data")
    parser.add_argument("--out", type=Path, default=out, help="folder of the tables")
    return parser.parse_args()


if __name__ == "__main__":
    main()
