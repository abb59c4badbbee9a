"""The states of all environments, side by side: one array of every kind."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from gpusched_env.envs.vector.arrays import Arrays, arrays_of, point_to
from gpusched_env.envs.vector.shared import Shared, bins_of, site_of
from gpusched_env.simulator import layout as at

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from gpusched_env.simulator import State

    Shapes: TypeAlias = Mapping[str, tuple[int, ...]]

# sizes: int64 (N, SIZE_COLUMNS). The true lengths of the axes whose length kernels read.
JOBS = 0
NODES = 1
SLOWDOWN = 2  # 0: the instance has no interference model
SITE = 3  # no length: the environment's row in `sites`
BINS = 4  # nor this: its row in `bins`
SIZE_COLUMNS = 5


class Batch:
    """States of N environments whose arrays are slices of the batch's, padded to the largest.

    Padding stands behind the true values and changes none of them: a kernel that gets `jobs[i, :J]` computes what it
    computes for the environment alone.

    Args:
        states: The states, one for each environment; from now on they live in the batch's arrays.
        shapes: Least shapes of arrays, by name, without the axis of the environments.

    Attributes:
        sizes: The true lengths, (N, SIZE_COLUMNS).
        arrays: The arrays, each with the environments as its first axis.
        sites: What never changes and many environments share, each different one once.
        bins: The edges of the distributions' bins, likewise.
    """

    def __init__(self, states: Sequence[State], shapes: Shapes | None = None) -> None:
        self.states = list(states)
        self.sizes = np.zeros((len(states), SIZE_COLUMNS), dtype=np.int64)
        own = arrays_of(states[0])._asdict()
        least = {name: (0,) * array.ndim for name, array in own.items()} | dict(shapes or {})
        self.arrays = Arrays._make(np.zeros((len(states), *least[name]), array.dtype) for name, array in own.items())
        self.sites = Shared(site_of)
        self.bins = Shared(bins_of)
        self.put(dict(enumerate(states)))

    def put(self, states: Mapping[int, State]) -> None:
        """Put new states in the places of the environments that they come with, and make room if they need it."""
        for i, state in states.items():
            self.states[i] = state
        if self.make_room([tuple(a.shape for a in arrays_of(state)) for state in states.values()]):
            states = dict(enumerate(self.states))
        for i, state in states.items():
            self._move(i, state)
        self._share(states)

    def make_room(self, shapes: Sequence[Sequence[tuple[int, ...]]]) -> bool:
        """Take larger arrays if states with arrays of these shapes need them, and say so: then all states must move."""
        present = [array.shape[1:] for array in self.arrays]
        needed = [tuple(np.max(each, axis=0).tolist()) for each in zip(present, *shapes, strict=True)]
        if needed == present:
            return False
        size = len(self.states)
        self.arrays = Arrays._make(np.zeros((size, *s), a.dtype) for s, a in zip(needed, self.arrays, strict=True))
        return True

    def _share(self, states: Mapping[int, State]) -> None:
        """Note which rows of `sites` and `bins` are those of environments."""
        if max(len(self.sites), len(self.bins)) > 2 * len(self.states):  # most of them nobody's any more
            self.sites, self.bins, states = Shared(site_of), Shared(bins_of), dict(enumerate(self.states))
        views = [state.view for state in states.values()]
        self.sizes[list(states), SITE] = self.sites.rows(views)
        self.sizes[list(states), BINS] = self.bins.rows(views)

    def _move(self, i: int, state: State) -> None:
        """Copy a state to its place in the arrays, and let it live there."""
        own = arrays_of(state)
        places = Arrays._make(batch[i, : len(array)] for batch, array in zip(self.arrays, own, strict=True))
        for array, place in zip(own, places, strict=True):
            place[...] = 0.0
            if array is own.nodes:
                _copy_nodes(own.nodes, places.nodes)
            else:
                place[tuple(slice(length) for length in array.shape)] = array
        self.sizes[i, :SITE] = len(own.jobs), len(own.nodes), len(own.slowdown)
        point_to(state, places)


def _copy_nodes(nodes: NDArray[np.int64], place: NDArray[np.int64]) -> None:
    """Copy the nodes to rows that are as long or longer: the columns of shared GPUs come in two halves."""
    mine, most = ((array.shape[1] - at.NODE_COLUMNS) // 2 for array in (nodes, place))
    place[:, : at.NODE_COLUMNS + mine] = nodes[:, : at.NODE_COLUMNS + mine]
    place[:, at.NODE_COLUMNS + most :][:, :mine] = nodes[:, at.NODE_COLUMNS + mine :]
