"""Make `trace_times.csv`: how long the jobs of traces run that name their work only, Gavel's and Pollux's (and Sia's).

Call: python scripts/build_trace_times.py SHARED/data. Gavel's traces say how many steps a job takes: seconds are those
of a step on V100 (gavel/simulation_throughputs.json). Pollux's say application, batch and GPUs: seconds are those of
all iterations of the recorded training with that batch on T4, four to a node (pollux/APPLICATION).
"""

from __future__ import annotations

import csv
import json
import math
import re
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import numpy as np

ON_A_NODE, GPUS = 4, (1, 2, 3, 4, 6, 8, 10, 12, 14, 16, 24, 32, 48)
TARGET = Path(__file__).parents[1] / "gpusched_env" / "workload" / "tables" / "data" / "trace_times.csv"
Row = tuple[str, str, str, int, str, str]


def of_gavel(folder: Path) -> Iterator[Row]:
    throughputs = json.loads((folder / "simulation_throughputs.json").read_text())["v100"]
    for key, steps_per_s in throughputs.items():
        kind, gpus = re.fullmatch(r"\('(.*)', (\d+)\)", key).groups()  # type: ignore[union-attr]
        source = f"gavel/simulation_throughputs.json v100 {key} null"
        yield "gavel", kind, "", int(gpus), f"{1.0 / steps_per_s['null']:.6g}", source


def of_pollux(folder: Path) -> Iterator[Row]:
    for place in sorted(path for path in folder.iterdir() if path.is_dir()):
        steps: dict[int, list[tuple[float, float]]] = defaultdict(list)
        for row in read(place / "placements.csv"):
            nodes = sorted(map(int, row["placement"]), reverse=True)
            if all(gpus == ON_A_NODE for gpus in nodes[:-1]):
                steps[sum(nodes)].append((float(row["local_bsz"]), float(row["step_time"])))
        known = set(steps)
        for row in read(place / "scalability.csv"):
            gpus = int(row["num_replicas"])
            if gpus not in known and int(row["num_nodes"]) == math.ceil(gpus / ON_A_NODE):
                steps[gpus].append((float(row["local_bsz"]), float(row["step_time"])))
        for file in sorted(place.glob("validation-*.csv"), key=lambda path: int(path.stem.split("-")[1])):
            batch = int(file.stem.split("-")[1])
            iterations = float(read(file)[-1]["iteration"])
            for gpus in sorted(set(GPUS) & set(steps)):
                sizes, seconds = np.array(sorted(steps[gpus])).T
                parts = math.ceil(batch / gpus / sizes[-1])  # passes that are added up to a large batch
                local = batch / gpus / parts
                if local >= sizes[0]:
                    spent = iterations * parts * float(np.interp(local, sizes, seconds))
                    times = "placements" if gpus in known else "scalability"
                    source = f"pollux/{place.name}/{file.name} and {times}.csv"
                    yield "pollux", place.name, str(batch), gpus, f"{spent:.6g}", source


def read(path: Path) -> list[dict[str, str]]:
    with path.open() as file:
        return list(csv.DictReader(file))


if __name__ == "__main__":
    data = Path(sys.argv[1])
    with TARGET.open("w", encoding="utf-8", newline="") as written:
        table = csv.writer(written, lineterminator="\n")
        table.writerow(("trace", "kind", "batch", "gpus", "seconds", "source"))
        table.writerows(of_gavel(data / "gavel"))
        table.writerows(of_pollux(data / "pollux"))
