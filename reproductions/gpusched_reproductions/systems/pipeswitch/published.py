"""PipeSwitch's published figures: the authors' log, and the figures of another run that their plot program keeps.

Both are from github.com/netx-repo/PipeSwitch (Apache-2.0): `log-1019.txt`, and comments of
`scripts/figures/figure5/host_run_figure.py`. V100 16 GB, batches of 8, inference in place of training.
"""

from __future__ import annotations

from gpusched_env.workload.start_up.pipeline import Method

LOG = "PipeSwitch's log of 2021-10-19"
OTHER_RUN = "PipeSwitch's scripts/figures/figure5"

MODELS = {"ResNet152": "resnet152", "Inception v3": "inception3", "BERT-base": "bert"}
"""The models, and their names as architectures."""

READY_MS = (37.06, 40.54, 39.33)  # figure 5: latency of a task whose model is on the GPU
START_UP_MS: dict[Method, tuple[str, tuple[float, float, float]]] = {
    "pipelined": ("7", (41.06, 39.51, 53.65)),
    "per-layer pipeline": ("7", (76.35, 53.66, 70.32)),
    "grouped, no pipeline": ("7", (60.06, 50.38, 83.16)),
    "per layer, no pipeline": ("7", (86.45, 58.10, 89.94)),
    "no memory management": ("8", (68.60, 62.01, 66.43)),
    "no IPC optimisation": ("8", (95.25, 65.75, 88.65)),
    "no pinned memory": ("8", (55.82, 39.99, 67.73)),
    "unified memory": ("8", (64.14, 60.88, 81.16)),
    "one process": ("9", (224.56, 189.56, 221.17)),
    "two processes": ("9", (5681.5, 6279.9, 7377.8)),
}
"""The figure and the latencies of every method [ms]; that of PipeSwitch is in figures 8 and 9 too, within 2.3 ms."""
LOG_NAMES: dict[Method, str] = {
    "pipelined": "pipeswitch",
    "per-layer pipeline": "per_layer",
    "grouped, no pipeline": "grouped",
    "per layer, no pipeline": "per_layer_no_pipeline",
    "no memory management": "no_memory_management",
    "no IPC optimisation": "no_ipc_optimization",
    "no pinned memory": "no_pin",
    "unified memory": "unified_memory",
    "one process": "stop_next (one process)",
    "two processes": "kill_restart",
}
"""The log's names of the methods."""

OTHER_READY_MS = (33.26, 30.04, 48.02)
OTHER_PIPELINED_MS = (39.28, 35.45, 58.29)
OTHER_MPS_MS = (340.28, 262.29, 252.53)

QUANTA_S = (1.0, 2.0, 5.0, 10.0, 30.0)  # figure 6: how often training and inference of ResNet152 alternate
READY_RATE = (26.10, 27.05, 25.94, 26.99, 26.36)  # batches a second
RATES = {"PipeSwitch": (26.75, 27.125, 26.40, 26.55, 26.233), "stop-start": (0.0, 0.0, 0.0, 11.35, 20.833)}
