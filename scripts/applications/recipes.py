"""The built-in applications: which public rows each is made of."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from applications.measurements import (
    GAVEL_COUNTS,
    WISR,
    ElasticFlowDiagonal,
    ElasticFlowRow,
    GavelRow,
    Measurement,
    PolluxNodes,
    PolluxRows,
    ZeusRow,
)

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class Network:
    """What the modelled memory needs to know of a network.

    Args:
        parameters_millions: Trained parameters [millions].
        bytes_per_parameter: 12 for weights, gradients and momentum in single precision; 16 with Adam's two moments.
        activation_gib_per_sample: Activations kept for the backward pass, single precision [GiB]; a rough figure.
    """

    parameters_millions: float
    bytes_per_parameter: int
    activation_gib_per_sample: float


@dataclass(frozen=True, slots=True)
class Recipe:
    """One application.

    Args:
        name: Model, data set and batch; `bs` is a batch per GPU, `global` one over all GPUs.
        samples_per_epoch: Samples of one pass over the training data.
        samples_source: What is counted.
        batch_size: Batch per GPU (`bs`) or over all GPUs (`global`).
        usual_epochs: Epochs of a customary recipe, before the run is brought into the allowed range.
        network: For the modelled memory.
        rows: Public row by GPU type; a row with one count only fixes the single-GPU speed.
        shapes: Public row by GPU type of which only the speed-ups are used.
        whole_nodes: Public row by GPU type for several whole nodes, where the one in `rows` does not go so far.
    """

    name: str
    samples_per_epoch: int
    samples_source: str
    batch_size: int
    usual_epochs: int
    network: Network
    rows: Mapping[str, Measurement]
    shapes: Mapping[str, Measurement] = field(default_factory=dict)
    whole_nodes: Mapping[str, Measurement] = field(default_factory=dict)


IMAGENET = (1_281_167, "ImageNet-1k (ILSVRC 2012) training images")
CIFAR10 = (50_000, "CIFAR-10 training images")
MULTI30K = (29_000, "Multi30k training sentence pairs")
WIKITEXT2 = (59_675, "WikiText-2 training tokens (2,088,628) in sequences of 35, rounded down")
COLA = (8_551, "CoLA training sentences")
IMDB = (25_000, "Large Movie Review (IMDb) training reviews")
LIBRISPEECH = (281_241, "LibriSpeech utterances of the three training sets")
SQUAD = (87_599, "SQuAD v1.1 training questions")
VOC = (16_551, "PASCAL VOC 2007 and 2012 trainval images")

RESNET50 = Network(25.6, 12, 0.085)
BERT = Network(110.0, 16, 0.7)


def _gavel(model: str, batch: int) -> dict[str, Measurement]:
    key = f"{model} (batch size {batch})"
    return {
        "K80": GavelRow("k80", key, batch),
        "P100": GavelRow("p100", key, batch),
        "V100": GavelRow("v100", key, batch, WISR),
    }


def _gavel_with_wisr_shape(model: str, batch: int) -> dict[str, dict[str, Measurement]]:
    """Take Gavel's single V100 and Shockwave's speed-ups, where Shockwave's V100 is slower than Gavel's P100."""
    key = f"{model} (batch size {batch})"
    rows = _gavel(model, batch)
    return {
        "rows": rows | {"V100": GavelRow("v100", key, batch, counts=GAVEL_COUNTS[:1])},
        "shapes": {"V100": rows["V100"]},
    }


def _zeus(dataset: str, network: str, samples: int, **batches: int) -> dict[str, Measurement]:
    return {gpu.upper(): ZeusRow(gpu, dataset, network, batch, samples) for gpu, batch in batches.items()}


_RESNET18_CIFAR10 = _gavel_with_wisr_shape("ResNet-18", 128)
_TRANSFORMER = _gavel_with_wisr_shape("Transformer", 128)

RECIPES = (
    Recipe(
        "bert-cola-global64",
        *COLA,
        64,
        3,
        Network(110.0, 16, 0.25),
        {"A100": ElasticFlowRow("throughputs_A100/bert.csv", 64)},
    ),
    Recipe(
        "bert-squad-global384",
        *SQUAD,
        384,
        3,
        BERT,
        {"T4": ElasticFlowRow("throughputs_T4/bert.csv", 384)}
        | _zeus("squad", "bert_base_uncased", SQUAD[0], v100=12, p100=12),
    ),
    Recipe(
        "deepspeech2-librispeech-global64",
        *LIBRISPEECH,
        64,
        15,
        Network(41.0, 16, 0.15),
        {"A100": ElasticFlowRow("throughputs_A100/deepspeech2.csv", 64)}
        | _zeus("librispeech", "deepspeech2", LIBRISPEECH[0], v100=64, p100=64),
    ),
    Recipe(
        "gpt2-imdb-global128",
        *IMDB,
        128,
        3,
        Network(124.0, 16, 0.15),
        {"A100": ElasticFlowRow("throughputs_A100/gpt2.csv", 128)},
    ),
    Recipe(
        "inception3-imagenet-global128",
        *IMAGENET,
        128,
        100,
        Network(27.2, 12, 0.1),
        {"A100": ElasticFlowRow("throughputs_A100/inception3.csv", 128)},
    ),
    Recipe("lm-wikitext2-bs5", *WIKITEXT2, 5, 40, Network(13.9, 12, 0.015), _gavel("LM", 5)),
    Recipe("lm-wikitext2-bs80", *WIKITEXT2, 80, 40, Network(13.9, 12, 0.015), _gavel("LM", 80)),
    Recipe(
        "resnet18-cifar10-bs128",
        *CIFAR10,
        128,
        200,
        Network(11.2, 12, 0.012),
        _RESNET18_CIFAR10["rows"] | {"T4": PolluxRows("cifar10", 129)},
        _RESNET18_CIFAR10["shapes"],
        {"T4": PolluxNodes("cifar10", 129)},
    ),
    Recipe(
        "resnet50-cifar10-global256",
        *CIFAR10,
        256,
        200,
        Network(23.5, 12, 0.05),
        {"A100": ElasticFlowRow("throughputs_A100/resnet50_cifar10.csv", 256)},
    ),
    Recipe(
        "resnet50-imagenet-bs64",
        *IMAGENET,
        64,
        90,
        RESNET50,
        _gavel("ResNet-50", 64)
        | {"A100": ElasticFlowDiagonal("throughputs_A100/resnet50.csv", 64), "T4": PolluxRows("imagenet", 57)},
        whole_nodes={"T4": PolluxNodes("imagenet", 57)},
    ),
    Recipe(
        "resnet50-imagenet-global256",
        *IMAGENET,
        256,
        90,
        RESNET50,
        {"A100": ElasticFlowRow("throughputs_A100/resnet50.csv", 256)}
        | _zeus("imagenet", "resnet50", IMAGENET[0], v100=256, p100=128),
    ),
    Recipe(
        "transformer-multi30k-bs128",
        *MULTI30K,
        128,
        400,
        Network(52.0, 16, 0.02),
        _TRANSFORMER["rows"],
        _TRANSFORMER["shapes"],
    ),
    Recipe(
        "vgg16-imagenet-global256",
        *IMAGENET,
        256,
        74,
        Network(138.4, 12, 0.1),
        {"A100": ElasticFlowRow("throughputs_A100/vgg16.csv", 256)},
    ),
    Recipe(
        "yolov3-voc-global64",
        *VOC,
        64,
        200,
        Network(61.9, 12, 0.45),
        {"T4": ElasticFlowRow("throughputs_T4/yolov3.csv", 64)},
    ),
)
