"""How long an application takes to go on after a change of GPUs."""

from __future__ import annotations

import csv
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

MURI = "muri/muri_stage_times.csv"
SIA = "Sia's artifact (github.com/siasosp23/artifacts)"
OTHERS_S = 30.0
SIA_S = {
    "bert": (120.0, "BERT"),
    "deepspeech2": (25.0, "DeepSpeech2"),
    "resnet18-cifar10": (35.0, "CIFAR-10, the middle of 20 to 50 s"),
    "resnet50-cifar10": (35.0, "CIFAR-10, the middle of 20 to 50 s"),
    "resnet50-imagenet": (250.0, "ResNet-50 on ImageNet"),
    "yolov3": (80.0, "YOLOv3"),
}
"""By the beginning of the application's name."""


def restart_s(application: str, data: Path) -> tuple[float, str]:
    """Return the seconds of a restart, and where they are from.

    They are those of Sia, whose jobs save, stop, start and load. Muri's are of the same models where it has them; they
    count less of all that, and stand in the text only.

    Args:
        application: Its name.
        data: Folder of the public measurements.
    """
    known = next((value for prefix, value in SIA_S.items() if application.startswith(prefix)), None)
    seconds, what = known or (OTHERS_S, "its figure for models that it does not list")
    return seconds, f"restart: {SIA}, {what}{_muri(application.partition('-')[0], data)}"


def _muri(model: str, data: Path) -> str:
    with (data / MURI).open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(line for line in file if not line.startswith("#")))
    times = [float(row["restart_s"]) for row in rows if row["model"] == model and int(row["gpus"]) <= 8]
    return f" ({MURI} {model}: {min(times):g} to {max(times):g} s)" if times else ""
