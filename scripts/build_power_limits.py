"""Make the tables of what power limits take and save, from fits of public sweeps of limits.

Writes `power_curves.csv` and `application_power.csv`, always the same bytes for the same files.
`gpusched_env/workload/tables/data/README.md` explains them.
"""

from __future__ import annotations

import csv
from pathlib import Path
from statistics import median

from applications.arguments import parse
from applications.mlperf_tables import power_rows
from applications.modern_power import GPUS, node_powers
from applications.tables import write_table

FITS = "zeus_power_fits/power_curve_fits.csv"
MEASURED = {"P100": "p100", "V100": "v100", "RTX6000": "rtx6000", "A40": "a40"}
AS_V100 = ("A100", "H100", "H200", "H100-air", "B200", "GB200")
LEAST = {"A40": 0.7, "GB200": 0.75}
"""Least limits: the pooled error of A40's curve is large below, and the optimum of GB200 is above V100's curve."""
WAITING = dict.fromkeys(("H100", "H200", "H100-air", "B200", "GB200"), 0.48)
"""Power of a node whose GPUs wait for other nodes, over that of a full one: H100's by MLPerf Training 4.0, four
benchmarks (R1 of `tests/workload/test_mlperf.py`); the others' are assumed to be H100's."""
BOARD_W = {"V100": 210.6, "P100": 157.4}
"""Power of a busy board in `gpu_types.csv` [W]: the mean of five workloads of the same sweeps."""
SAME_WORKLOAD = {
    "bert-squad-global384": ("squad", {"V100": 12, "P100": 12}),
    "deepspeech2-librispeech-global64": ("librispeech", {"V100": 64, "P100": 64}),
    "resnet50-imagenet-bs64": ("imagenet", {"V100": 64, "P100": 64}),
    "resnet50-imagenet-global256": ("imagenet", {"V100": 256, "P100": 128}),
}
"""Data set and batches of the sweeps; where times per epoch come from the same sweeps, the same batches."""


def curves(fits: list[dict[str, str]]) -> list[dict[str, object]]:
    """Return a row for each GPU type with the medians of its sweeps, or those of V100."""
    rows = []
    for name in (*MEASURED, *AS_V100):
        own = [row for row in fits if row["gpu"] == MEASURED.get(name, "v100") and row["a"]]
        method = "measured" if name in MEASURED else "assumed"
        source = f"{FITS}: medians of a and b over {len(own)} sweeps of {MEASURED.get(name, 'v100')}"
        a, b = (f"{median(float(row[key]) for row in own):.4f}" for key in ("a", "b"))
        least, waiting = LEAST.get(name, 0.0), WAITING.get(name, 1.0)
        keys = ("gpu_type", "a", "b", "least_limit", "waiting_part", "method", "source")
        rows.append(dict(zip(keys, (name, a, b, f"{least:g}", f"{waiting:g}", method, source), strict=True)))
    return rows


def applications(fits: list[dict[str, str]]) -> list[dict[str, object]]:
    """Return a row for each application and GPU type of which the same workload was swept."""
    rows: list[dict[str, object]] = []
    for name, (dataset, batches) in SAME_WORKLOAD.items():
        for gpu_type, batch in batches.items():
            wanted = (MEASURED[gpu_type], dataset, str(batch))
            own = next(row for row in fits if (row["gpu"], row["dataset"], row["batch_size"]) == wanted)
            drawn = min(1.0, float(own["uncapped_power_w"]) / BOARD_W[gpu_type])
            rows.append(
                {
                    "application": name, "gpu_type": gpu_type, "drawn": f"{drawn:.4f}", "a": own["a"], "b": own["b"],
                    "source": f"{FITS}: {' '.join(wanted)}",
                }
            )  # fmt: skip
    return rows


def mlperf_applications(data: Path, of_type: list[dict[str, object]]) -> list[dict[str, object]]:
    """Return a row for each of MLPerf's applications whose power was measured on one node, with the type's curve."""
    nodes, curve = node_powers(data), {str(row["gpu_type"]): row for row in of_type}
    rows: list[dict[str, object]] = []
    for power in power_rows(data):
        if power.nodes == 1:
            node = nodes[power.gpu_type]
            drawn = (power.node_w - node.base_w) / (GPUS * node.busy_gpu_w)
            a, b = curve[power.gpu_type]["a"], curve[power.gpu_type]["b"]
            rows.append(
                {
                    "application": power.application, "gpu_type": power.gpu_type, "drawn": f"{min(1.0, drawn):.4f}",
                    "a": a, "b": b, "source": f"mlperf_power.csv: {power.node_w:.0f} W a node; a and b are the type's",
                }
            )  # fmt: skip
    return rows


def main() -> None:
    """Read the fits and write the tables."""
    arguments = parse(__doc__, "../shared/data")
    with Path(arguments.data / FITS).open(encoding="utf-8") as file:
        fits = list(csv.DictReader(file))
    of_type = curves(fits)
    of_application = applications(fits) + mlperf_applications(arguments.data, of_type)
    for name, rows in (("power_curves.csv", of_type), ("application_power.csv", of_application)):
        write_table(arguments.out / name, [list(rows[0]), *(row.values() for row in rows)])


if __name__ == "__main__":
    main()
