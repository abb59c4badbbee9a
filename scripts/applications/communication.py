"""How long an iteration computes and synchronises, fitted to what was measured on one and several whole nodes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from applications.power import GPUS_PER_NODE
from applications.screening import screen

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from applications.recipes import Recipe

WORST = 0.1
"""A fit that is further off than this for any measured number of nodes is no use, and left out."""
FEWEST = 4
"""Measured numbers of nodes that two parameters need, to be more than a line through them."""
NETWORK_GB_PER_S = {"A100": 200.0}
"""Network of a node in one direction [GB/s]: eight HDR InfiniBand adapters, as the artifact's README says."""
BYTES_PER_PARAMETER = 4


@dataclass(frozen=True, slots=True)
class CommunicationRow:
    """One line of `communication.csv`."""

    application: str
    gpu_type: str
    compute_s: float
    sync_s: float
    model_gb: float
    nic_gb_per_s: float
    worst_error: float
    source: str


@dataclass(frozen=True, slots=True)
class Fit:
    """Times of an iteration: `compute_s` / n + `sync_s` · 2(n - 1)/n on n nodes, as all-reduce takes.

    `worst_error` is the largest relative error for a measured number of nodes, and `most` the largest such number.
    """

    compute_s: float
    sync_s: float
    worst_error: float
    most: int

    def iteration_s(self, nodes: int) -> float:
        """Return the time of an iteration on so many nodes [s]."""
        return self.compute_s / nodes + self.sync_s * 2.0 * (nodes - 1) / nodes


def fit(measured_s: Mapping[int, float]) -> Fit:
    """Fit times of an iteration by least squares in relative error.

    Args:
        measured_s: Time of an iteration of a fixed batch [s] by number of nodes, at least two.
    """
    nodes, seconds = np.array(list(measured_s)), np.array(list(measured_s.values()))
    terms = np.stack([1.0 / nodes, 2.0 * (nodes - 1) / nodes], axis=1) / seconds[:, None]
    found = np.linalg.lstsq(terms, np.ones(len(nodes)))[0]
    return Fit(float(found[0]), float(found[1]), float(np.abs(terms @ found - 1.0).max()), int(nodes.max()))


def fitted(recipe: Recipe, gpu: str, data: Path) -> Fit | None:
    """Fit what was measured of an application on whole nodes of a type.

    None where the batch grows with the GPUs, too little was measured, its network is not known, or the fit is bad.
    """
    row = (recipe.rows | recipe.whole_nodes).get(gpu)
    if row is None or gpu not in NETWORK_GB_PER_S or "-global" not in recipe.name:
        return None
    points = [(divmod(point.gpus, GPUS_PER_NODE[gpu]), point) for point in screen(row.read(data))[0]]
    measured = {nodes: recipe.batch_size / point.samples_per_s for (nodes, rest), point in points if nodes and not rest}
    if len(measured) < FEWEST:
        return None
    found = fit(measured)
    return found if found.worst_error <= WORST and min(found.compute_s, found.sync_s) > 0.0 else None


def communication_rows(recipe: Recipe, data: Path) -> Iterator[CommunicationRow]:
    """Yield a line for every GPU type on which the application was measured on enough numbers of nodes.

    Args:
        recipe: The application.
        data: Folder of the public measurements.
    """
    for gpu, row in (recipe.rows | recipe.whole_nodes).items():
        found = fitted(recipe, gpu, data)
        if found is not None:
            where = row.read(data)[0].source.partition(" column")[0]
            yield CommunicationRow(
                recipe.name,
                gpu,
                found.compute_s,
                found.sync_s,
                recipe.network.parameters_millions * BYTES_PER_PARAMETER / 1000.0,
                NETWORK_GB_PER_S[gpu],
                found.worst_error,
                f"{where}: least squares over 1 to {found.most} nodes; {recipe.network.parameters_millions:g} million "
                f"parameters x {BYTES_PER_PARAMETER} B; eight adapters of 200 Gb/s a node (ElasticFlow's README)",
            )
