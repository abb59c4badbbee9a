"""How fast one GPU of each type is against one V100, from what was measured on both."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from applications.measurements import ElasticFlowRow, GavelRow, PolluxRows, ZeusRow, at_highest_limit, read_json

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from applications.measurements import Measurement

IMAGENET, LIBRISPEECH, SQUAD = 1_281_167, 281_241, 87_599
GAVEL_FAMILIES = ("CycleGAN", "LM", "Recommendation", "ResNet-18", "ResNet-50", "Transformer")
ZEUS_WORKLOADS = (
    ("cifar100", "shufflenetv2"),
    ("imagenet", "resnet50"),
    ("librispeech", "deepspeech2"),
    ("sentiment140", "bert_base_uncased"),
    ("squad", "bert_base_uncased"),
)
"""Without movielens-1m/ncf: its board power of 34 to 40 W says that the GPU waits for the host."""


def speed_factors(data: Path) -> dict[str, dict[str, float]]:
    """Return, by GPU type, the single-GPU speed against a V100 of every application measured on both.

    Args:
        data: Folder of the public measurements.
    """
    return {
        "K80": _gavel_ratios(data, "k80"),
        "P100": _gavel_ratios(data, "p100") | _zeus_ratios(data, "p100"),
        "V100": {"itself": 1.0},
        "T4": {
            "pollux resnet50 against zeus": _ratio(
                data, PolluxRows("imagenet", 57), ZeusRow("v100", "imagenet", "resnet50", 64, IMAGENET)
            ),
            "pollux resnet18 against gavel": _ratio(
                data, PolluxRows("cifar10", 129), GavelRow("v100", "ResNet-18 (batch size 128)", 128)
            ),
            "elasticflow bert-squad against zeus": _ratio(
                data,
                ElasticFlowRow("throughputs_T4/bert.csv", 384),
                ZeusRow("v100", "squad", "bert_base_uncased", 12, SQUAD),
            ),
        },
        "A100": {
            "elasticflow resnet50 against zeus": _ratio(
                data,
                ElasticFlowRow("throughputs_A100/resnet50.csv", 64),
                ZeusRow("v100", "imagenet", "resnet50", 64, IMAGENET),
            ),
            "elasticflow deepspeech2 against zeus": _ratio(
                data,
                ElasticFlowRow("throughputs_A100/deepspeech2.csv", 64),
                ZeusRow("v100", "librispeech", "deepspeech2", 64, LIBRISPEECH),
            ),
        },
    }


def mean_factors(factors: dict[str, dict[str, float]]) -> dict[str, float]:
    """Return the geometric mean of each type's factors."""
    return {gpu: geometric_mean(ratios.values()) for gpu, ratios in factors.items()}


def geometric_mean(values: Iterable[float]) -> float:
    """Return the geometric mean of positive numbers."""
    logs = [math.log(value) for value in values]
    return math.exp(sum(logs) / len(logs))


def _ratio(data: Path, measured: Measurement, on_v100: Measurement) -> float:
    return measured.read(data)[0].samples_per_s / on_v100.read(data)[0].samples_per_s


def _gavel_ratios(data: Path, worker: str) -> dict[str, float]:
    table = read_json(data / "gavel/physical_cluster_throughputs.json")
    ratios: dict[str, float] = {}
    for family in GAVEL_FAMILIES:
        keys = [key for key in table["v100"] if key.startswith(f"('{family}") and key.endswith(", 1)")]
        speeds = [(float(table[worker][key]["null"]), float(table["v100"][key]["null"])) for key in keys]
        ratios[f"gavel {family}"] = geometric_mean(ours / theirs for ours, theirs in speeds if ours > 0 and theirs > 0)
    return ratios


def _zeus_ratios(data: Path, gpu: str) -> dict[str, float]:
    best, best_v100 = _shortest_epochs(data, gpu), _shortest_epochs(data, "v100")
    return {
        f"zeus {network} {dataset}": best_v100[dataset, network] / best[dataset, network]
        for dataset, network in ZEUS_WORKLOADS
    }


def _shortest_epochs(data: Path, gpu: str) -> dict[tuple[str, str], float]:
    best: dict[tuple[str, str], float] = {}
    for row in at_highest_limit(data, gpu):
        key, time_s = (row["dataset"], row["network"]), float(row["time_per_epoch"])
        best[key] = min(time_s, best.get(key, math.inf))
    return best
