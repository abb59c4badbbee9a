"""Memory that the models of Muri's traces take of a GPU: derived from their sizes, since no trace says it.

A job keeps 1 GiB for the framework, and its state: weights, gradients and the optimiser, 12 bytes a parameter with
momentum and 16 with Adam (Muri trains images with SGD and texts with AdamW). That is its working minimum. Activations
of a mini-batch come on top: what layers put out, four bytes each, where convolutions are followed by batch
normalisation twice; for transformers 2 · s · h · (34 + 5 · a · s / h) bytes a layer and sequence, twice the figure of
Korthikanti et al. (MLSys 2023) for half precision, and the logits of a language model, twice.
"""

from __future__ import annotations

GIB = 2**30
FRAMEWORK_GIB = 1.0
_SGD, _ADAM = 12, 16  # bytes a parameter
_STATE_BYTES = {
    "vgg16": 138.4e6 * _SGD,
    "vgg19": 143.7e6 * _SGD,
    "resnet18": 11.7e6 * _SGD,
    "shufflenet_v2_x1_0": 2.3e6 * _SGD,
    "bert": 110e6 * _ADAM,
    "gpt2": 124e6 * _ADAM,
    "a2c": 1.7e6 * _ADAM,
    "dqn": 1.7e6 * _ADAM,
}


def _transformer(length: int, width: int, heads: int, layers: int) -> float:
    return layers * 2.0 * length * width * (34.0 + 5.0 * heads * length / width)


_ACTIVATION_BYTES = {
    "vgg16": 4 * 15.1e6,
    "vgg19": 4 * 16.4e6,
    "resnet18": 4 * 2 * 2.6e6,
    "shufflenet_v2_x1_0": 4 * 2 * 2.0e6,
    "bert": _transformer(512, 768, 12, 12),
    "gpt2": _transformer(1024, 768, 12, 12) + 2 * 4 * 1024 * 50257,
    "a2c": 4 * 0.022e6,
    "dqn": 4 * 0.022e6,
}
"""Bytes of the activations of one image of 224 pixels, one sequence, or four frames of 84 pixels."""


def least_gib(model: str) -> float:
    return FRAMEWORK_GIB + _STATE_BYTES[model] / GIB


def need_gib(model: str, batch: int) -> float:
    """Return what a model takes of each of its GPUs at most, with so many samples on each [GiB]."""
    return least_gib(model) + batch * _ACTIVATION_BYTES[model] / GIB
