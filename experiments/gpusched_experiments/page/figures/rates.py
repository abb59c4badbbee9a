"""What the nodes of a run cost over time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gpusched_env.model.rates import cost_rate_eur_per_h

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from gpusched_env.rendering.timeline import Timeline

TOLERANCE = 1e-6  # share of the energy cost that the rate over time may differ from it


def cost_rate(timeline: Timeline) -> tuple[NDArray[np.float64], NDArray[np.float64]] | None:
    """Give times [s] and from each time on the cost rate of all nodes [€/h], both (T,).

    A node's rate is r_v(u) of its busy GPUs. Where a run is billed otherwise (what GPUs draw at rest, hosts of cells, a
    price that changes), its sum over time is not the run's energy cost: then there is no rate to give, and it is None.
    """
    rates, instance = cost_rate_eur_per_h(timeline.instance), timeline.instance
    changes = sorted(_changes(timeline))
    busy, changed = dict.fromkeys(range(len(instance.nodes)), 0), []
    for time, node, gpus in changes:
        of_type = rates[instance.type_of_node[node]]
        before, busy[node] = busy[node], busy[node] + gpus
        changed.append((time, of_type[busy[node]] - of_type[before]))
    table = np.array(changed).reshape(-1, 2)
    times, first = np.unique(table[:, 0], return_index=True)
    rate = np.maximum(0.0, np.cumsum(table[:, 1])[np.append(first[1:], len(table)) - 1])
    total = float(np.sum(rate[:-1] * np.diff(times))) / 3600.0
    return (times, rate) if abs(total - timeline.energy_eur) <= TOLERANCE * max(total, timeline.energy_eur) else None


def _changes(timeline: Timeline) -> Iterator[tuple[float, int, int]]:
    """Give time, node and by how many its busy GPUs change: of a moment first those let go."""
    until: dict[tuple[int, int], float] = {}
    for bar in timeline.bars:
        start_s, gpus = bar.start_s, round(sum(height for _, height in bar.runs)) if bar.gpu < 0 else 1
        if bar.gpu >= 0:
            # Of a share, what others on the GPU have not covered yet.
            start_s = max(start_s, until.get((bar.node, bar.gpu), -np.inf))
            until[bar.node, bar.gpu] = max(bar.end_s, start_s)
        if start_s < bar.end_s:
            yield start_s, bar.node, gpus
            yield bar.end_s, bar.node, -gpus
