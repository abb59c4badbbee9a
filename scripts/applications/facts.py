"""Epochs, samples and memory of an application; epochs and memory are modelled."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from applications.restarts import restart_s

if TYPE_CHECKING:
    from pathlib import Path

    from applications.recipes import Recipe

SHORTEST_RUN_S, LONGEST_RUN_S = 3600.0, 3 * 86400.0
BASE_GIB = 1.0
LIMIT_GIB = 11.0
"""A K80 chip has 12 GiB; one is left to the driver and the framework's reserve."""
BYTES_PER_GIB = 2.0**30


@dataclass(frozen=True, slots=True)
class FactsRow:
    """One line of `application_facts.csv`."""

    application: str
    max_epochs: int
    samples_per_epoch: int
    batch_size: int
    memory_gib: float
    restart_s: float
    state_gib: float
    source: str


def facts_row(recipe: Recipe, v100_seconds_per_epoch: float, data: Path) -> FactsRow:
    """Return the facts of an application.

    Args:
        recipe: The application.
        v100_seconds_per_epoch: Time of an epoch on one V100 [s].
        data: Folder of the public measurements.
    """
    epochs = max_epochs(recipe.usual_epochs, v100_seconds_per_epoch)
    memory, micro_batch = memory_gib(recipe)
    restart, restart_source = restart_s(recipe.name, data)
    network = recipe.network
    batch = "over all GPUs" if "-global" in recipe.name else "per GPU"
    source = (
        f"samples: {recipe.samples_source}; batch {batch}; max_epochs modelled: {recipe.usual_epochs} customary epochs "
        f"brought to between 1 h and 72 h on one V100; memory modelled: {BASE_GIB:g} GiB + "
        f"{network.parameters_millions:g} million parameters x {network.bytes_per_parameter} B + "
        f"{network.activation_gib_per_sample:g} GiB x {micro_batch} samples at a time; {restart_source}"
    )
    state, batch_size = state_gib(recipe), recipe.batch_size
    return FactsRow(recipe.name, epochs, recipe.samples_per_epoch, batch_size, memory, restart, state, source)


def max_epochs(usual: int, v100_seconds_per_epoch: float) -> int:
    """Return the customary epochs, raised to a run of 1 h or lowered to one of 72 h on one V100."""
    fewest = math.ceil(SHORTEST_RUN_S / v100_seconds_per_epoch)
    most = math.floor(LONGEST_RUN_S / v100_seconds_per_epoch)
    return min(max(usual, fewest), most)


def state_gib(recipe: Recipe) -> float:
    """Return weights, gradients and what the optimiser keeps [GiB]: the state that is moved when jobs are switched."""
    network = recipe.network
    return network.parameters_millions * 1e6 * network.bytes_per_parameter / BYTES_PER_GIB


def memory_gib(recipe: Recipe) -> tuple[float, int]:
    """Return the modelled memory per GPU [GiB] and the samples held at a time.

    The batch is halved (gradients accumulate) until it fits the smallest of the built-in GPUs.
    """
    network = recipe.network
    fixed = BASE_GIB + state_gib(recipe)
    samples = recipe.batch_size
    while samples > 1 and fixed + samples * network.activation_gib_per_sample > LIMIT_GIB:
        samples //= 2
    return fixed + samples * network.activation_gib_per_sample, samples
