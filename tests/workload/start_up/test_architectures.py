"""Layers of public models against their published sizes."""

from __future__ import annotations

import pytest

from gpusched_env.workload.start_up.architectures import ARCHITECTURES, Layer, layers_of

PARAMETERS = {
    "resnet18": 11_689_512,
    "resnet50": 25_557_032,
    "resnet152": 60_192_808,
    "vgg16": 138_357_544,
    "inception3": 23_834_568,
    "bert": 108_310_272,
    "gpt2": 124_439_808,
}
GIGA_MULTIPLICATIONS = {"resnet18": 1.82, "resnet50": 4.09, "resnet152": 11.51, "vgg16": 15.47, "inception3": 5.71}


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_every_model_has_its_published_number_of_parameters(name: str):
    assert sum(sum(layer.tensors) for layer in ARCHITECTURES[name]()) == PARAMETERS[name]


@pytest.mark.parametrize("name", GIGA_MULTIPLICATIONS)
def test_the_operations_are_those_that_torchvision_states(name: str):
    operations = sum(layer.operations for layer in layers_of(name)) / 2e9
    assert operations == pytest.approx(GIGA_MULTIPLICATIONS[name], rel=0.005)


def test_a_parameter_takes_four_bytes():
    assert Layer("fc", (6, 2), 12.0).size == 32


def test_applications_are_known_by_the_first_part_of_their_names():
    assert layers_of("resnet50-imagenet-bs64") == layers_of("resnet50")
    assert layers_of("deepspeech2-librispeech-global64") == ()
