"""The arguments of the scripts that make tables."""

from __future__ import annotations

import argparse
from pathlib import Path


def parse(description: str | None, data: str) -> argparse.Namespace:
    """Parse `--data`, the folder of the public files, by default `data`, and `--out`, that of the tables."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path(data), help="folder of the public files")
    out = Path("gpusched_env/workload/tables/data")
    parser.add_argument("--out", type=Path, default=out, help="folder of the tables")
    return parser.parse_args()
