"""Layers of public models: the tensors of parameters of each, and the operations of its forward pass for one sample."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType

BYTES = 4
"""Bytes of a parameter (float32)."""


@dataclass(frozen=True, slots=True)
class Layer:
    """A layer that has parameters.

    Attributes:
        name: Its name.
        tensors: Parameters of each of its tensors.
        operations: Floating-point operations of its forward pass for one sample; those of layers without parameters
            behind it (pooling, activations) are left out, those of attention are the value layer's.
    """

    name: str
    tensors: tuple[int, ...]
    operations: float

    @property
    def size(self) -> int:
        """Return its size [bytes]."""
        return BYTES * sum(self.tensors)


class _Layers(list[Layer]):
    """The layers of a model, in the order in which they compute."""

    def convolution(self, name: str, kernel: tuple[int, int], inputs: int, outputs: int, side: int) -> None:
        weights = kernel[0] * kernel[1] * inputs * outputs
        self.append(Layer(name, (weights,), 2.0 * weights * side**2))
        self.append(Layer(f"{name}.norm", (outputs, outputs), 2.0 * outputs * side**2))

    def linear(self, name: str, inputs: int, outputs: int, positions: int = 1, more: float = 0.0) -> None:
        weights = inputs * outputs
        self.append(Layer(name, (weights, outputs), 2.0 * weights * positions + more))

    def norm(self, name: str, width: int, positions: int) -> None:
        self.append(Layer(name, (width, width), 8.0 * width * positions))

    def embedding(self, name: str, rows: int, width: int, positions: int) -> None:
        self.append(Layer(name, (rows * width,), 1.0 * width * positions))


def resnet(blocks: tuple[int, int, int, int], *, bottleneck: bool) -> tuple[Layer, ...]:
    """Return the layers of a ResNet for images of 224 x 224 (He et al. 2016; torchvision strides in the 3 x 3)."""
    layers, inputs, side = _Layers(), 64, 56
    layers.convolution("conv1", (7, 7), 3, 64, 112)
    for stage, count in enumerate(blocks):
        width, before = 64 * 2**stage, side
        side = 56 // 2**stage
        outputs = width * 4 if bottleneck else width
        for block in range(count):
            name, first = f"layer{stage + 1}.{block}", before if block == 0 else side
            if bottleneck:
                layers.convolution(f"{name}.conv1", (1, 1), inputs, width, first)
                layers.convolution(f"{name}.conv2", (3, 3), width, width, side)
                layers.convolution(f"{name}.conv3", (1, 1), width, outputs, side)
            else:
                layers.convolution(f"{name}.conv1", (3, 3), inputs, width, side)
                layers.convolution(f"{name}.conv2", (3, 3), width, width, side)
            if inputs != outputs:
                layers.convolution(f"{name}.downsample", (1, 1), inputs, outputs, side)
            inputs = outputs
    layers.linear("fc", inputs, 1000)
    return tuple(layers)


def vgg16() -> tuple[Layer, ...]:
    """Return the layers of VGG-16 without batch normalisation for images of 224 x 224 (Simonyan and Zisserman 2015)."""
    layers, inputs, side = _Layers(), 3, 224
    for stage, (width, count) in enumerate(((64, 2), (128, 2), (256, 3), (512, 3), (512, 3))):
        for i in range(count):
            layers.linear(f"conv{stage + 1}.{i}", 9 * inputs, width, side**2)
            inputs = width
        side //= 2
    for i, (wide, out) in enumerate(((512 * 49, 4096), (4096, 4096), (4096, 1000))):
        layers.linear(f"fc{i + 1}", wide, out)
    return tuple(layers)


_STEM = (
    ((3, 3), 3, 32, 149),
    ((3, 3), 32, 32, 147),
    ((3, 3), 32, 64, 147),
    ((1, 1), 64, 80, 73),
    ((3, 3), 80, 192, 71),
)


def inception_v3() -> tuple[Layer, ...]:
    """Return the layers of Inception v3 for images of 299 x 299, without the auxiliary head (Szegedy et al. 2016)."""
    layers = _Layers()
    for i, convolution in enumerate(_STEM):
        layers.convolution(f"stem.{i}", *convolution)

    def branch(name: str, *steps: tuple[tuple[int, int], int, int], inputs: int) -> None:
        for i, (kernel, outputs, side) in enumerate(steps):
            layers.convolution(f"{name}.{i}", kernel, inputs, outputs, side)
            inputs = outputs

    one, three, five, wide, tall = (1, 1), (3, 3), (5, 5), (1, 7), (7, 1)
    for i, (inputs, pooled) in enumerate(((192, 32), (256, 64), (288, 64))):
        branch(f"a{i}.1x1", (one, 64, 35), inputs=inputs)
        branch(f"a{i}.5x5", (one, 48, 35), (five, 64, 35), inputs=inputs)
        branch(f"a{i}.3x3", (one, 64, 35), (three, 96, 35), (three, 96, 35), inputs=inputs)
        branch(f"a{i}.pool", (one, pooled, 35), inputs=inputs)
    branch("b.3x3", (three, 384, 17), inputs=288)
    branch("b.3x3x2", (one, 64, 35), (three, 96, 35), (three, 96, 17), inputs=288)
    for i, c in enumerate((128, 160, 160, 192)):
        branch(f"c{i}.1x1", (one, 192, 17), inputs=768)
        branch(f"c{i}.7x7", (one, c, 17), (wide, c, 17), (tall, 192, 17), inputs=768)
        twice = ((one, c, 17), (tall, c, 17), (wide, c, 17), (tall, c, 17), (wide, 192, 17))
        branch(f"c{i}.7x7x2", *twice, inputs=768)
        branch(f"c{i}.pool", (one, 192, 17), inputs=768)
    branch("d.3x3", (one, 192, 17), (three, 320, 8), inputs=768)
    branch("d.7x7x3", (one, 192, 17), (wide, 192, 17), (tall, 192, 17), (three, 192, 8), inputs=768)
    for i, inputs in enumerate((1280, 2048)):
        branch(f"e{i}.1x1", (one, 320, 8), inputs=inputs)
        branch(f"e{i}.3x3", (one, 384, 8), inputs=inputs)
        branch(f"e{i}.3x3a", ((1, 3), 384, 8), inputs=384)
        branch(f"e{i}.3x3b", ((3, 1), 384, 8), inputs=384)
        branch(f"e{i}.3x3x2", (one, 448, 8), (three, 384, 8), inputs=inputs)
        branch(f"e{i}.3x3x2a", ((1, 3), 384, 8), inputs=384)
        branch(f"e{i}.3x3x2b", ((3, 1), 384, 8), inputs=384)
        branch(f"e{i}.pool", (one, 192, 8), inputs=inputs)
    layers.linear("fc", 2048, 1000)
    return tuple(layers)


def bert_base(length: int = 251) -> tuple[Layer, ...]:
    """Return the layers of BERT-base, cased (Devlin et al. 2019), for sequences of `length` tokens."""
    layers, width = _Layers(), 768
    for name, rows in (("words", 28996), ("positions", 512), ("types", 2)):
        layers.embedding(f"embeddings.{name}", rows, width, length)
    layers.norm("embeddings.norm", width, length)
    for i in range(12):
        for name in ("query", "key"):
            layers.linear(f"{i}.{name}", width, width, length)
        layers.linear(f"{i}.value", width, width, length, more=4.0 * length**2 * width)
        layers.linear(f"{i}.output", width, width, length)
        layers.norm(f"{i}.norm", width, length)
        layers.linear(f"{i}.wide", width, 4 * width, length)
        layers.linear(f"{i}.narrow", 4 * width, width, length)
        layers.norm(f"{i}.norm2", width, length)
    layers.linear("pooler", width, width)
    return tuple(layers)


def gpt2(length: int = 1024) -> tuple[Layer, ...]:
    """Return the layers of GPT-2 small (Radford et al. 2019), whose output is its table of words again."""
    layers, width = _Layers(), 768
    layers.embedding("words", 50257, width, length)
    layers.embedding("positions", 1024, width, length)
    for i in range(12):
        layers.norm(f"{i}.norm", width, length)
        layers.linear(f"{i}.attention", width, 3 * width, length, more=4.0 * length**2 * width)
        layers.linear(f"{i}.projection", width, width, length)
        layers.norm(f"{i}.norm2", width, length)
        layers.linear(f"{i}.wide", width, 4 * width, length)
        layers.linear(f"{i}.narrow", 4 * width, width, length)
    layers.norm("norm", width, length)
    return tuple(layers)


ARCHITECTURES: Mapping[str, Callable[[], tuple[Layer, ...]]] = MappingProxyType({
    "resnet18": lambda: resnet((2, 2, 2, 2), bottleneck=False),
    "resnet50": lambda: resnet((3, 4, 6, 3), bottleneck=True),
    "resnet152": lambda: resnet((3, 8, 36, 3), bottleneck=True),
    "vgg16": vgg16,
    "inception3": inception_v3,
    "bert": bert_base,
    "gpt2": gpt2,
})  # fmt: skip
"""Models whose layers are known, by the first part of the names of applications."""


@cache
def layers_of(application: str) -> tuple[Layer, ...]:
    """Return the layers of the model of an application, such as `bert-squad-global384`; none where they are unknown."""
    make = ARCHITECTURES.get(application.partition("-")[0])
    return make() if make else ()
