"""A small request, as the pages show it."""

from __future__ import annotations

from typing import Any

EXAMPLE: dict[str, Any] = {
    "policy": "sts-x",
    "now_s": 7200.0,
    "cluster": {
        "gpu_types": ["V100", {"name": "H100", "like": "A100", "speed": 1.9, "gpu_power_w": 700.0}],
        "nodes": [
            {"name": "v1", "gpu_type": "V100", "gpus": 4},
            {"name": "h1", "gpu_type": "H100", "gpus": 2},
        ],
    },
    "prices": {"energy_eur_per_kwh": 0.25, "pue": 1.3},
    "restart_s": 60.0,
    "applications": {
        "our-model": {
            "seconds_per_epoch": {"V100x1": 900.0, "V100x2": 480.0, "V100x4": 260.0, "H100x1": 300.0, "H100x2": 165.0},
            "max_epochs": 60.0,
            "distribution": {"history_epochs": [18.0, 22.0, 25.0, 31.0, 40.0, 60.0]},
        }
    },
    "jobs": [
        {
            "id": "4711",
            "application": "our-model",
            "submission_s": 0.0,
            "due_s": 36000.0,
            "tardiness_weight_eur_per_s": 0.002,
            "epochs_done": 12.0,
            "running": {"configuration": "V100x2", "nodes": ["v1"], "since_s": 60.0},
        },
        {
            "id": "4712",
            "application": "our-model",
            "submission_s": 7200.0,
            "due_s": 18000.0,
            "tardiness_weight_eur_per_s": 0.002,
        },
    ],
}
