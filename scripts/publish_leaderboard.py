"""Pack the runs of a leaderboard into the package, for `gpusched leaderboard --submit` to rank against.

    python scripts/publish_leaderboard.py docs/results/leaderboard

takes `cells.csv` and `record.json` of the folder, but no slow policies: an entry would meet them on all its seeds.
Times, which are those of one machine, keep three digits.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import sys
from pathlib import Path

from gpusched_experiments.leaderboard.against import CELLS, PACKED, PUBLISHED, RECORD
from gpusched_experiments.leaderboard.plan import is_usual

TIMES = {"decision_s", "decision_s_per_round", "run_s"}


def packed(text: str) -> bytes:
    """Return the runs without their keys, compressed: equal runs give equal bytes."""
    rows = [row for row in csv.DictReader(io.StringIO(text)) if is_usual(row["policy"])]
    names = [name for name in rows[0] if name != "key"]
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(names)
    writer.writerows([f"{float(row[n]):.3g}" if n in TIMES else row[n] for n in names] for row in rows)
    return gzip.compress(buffer.getvalue().encode(), 9, mtime=0)


def main(folder: Path) -> None:
    """Pack the runs of `folder`."""
    record = json.loads((folder / RECORD).read_text(encoding="utf-8"))
    record["provenance"]["facts"].pop("groups", None)  # what ran where: the runs themselves say it
    PUBLISHED.mkdir(exist_ok=True)
    (PUBLISHED / PACKED).write_bytes(packed((folder / CELLS).read_text(encoding="utf-8")))
    (PUBLISHED / RECORD).write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
