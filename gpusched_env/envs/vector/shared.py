"""What never changes in a run and many environments have in common, kept once, so that it stays in the cache."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gpusched_env.observation.fixed import OFFER_COLUMNS, TYPE_COLUMNS, write_fixed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from numpy.typing import NDArray

    from gpusched_env.arrays import Floats, Ints
    from gpusched_env.simulator import View


class Site(NamedTuple):
    """Configurations, cost rates, and what observations say of them; with one more axis in front, those of several.

    The first four are those of `View`, the others of `gpusched_env.observation.fixed`.
    """

    configs: Ints
    node_rate: Floats
    planning_rate: Floats
    least_rate: Floats
    types: Floats
    offers: Floats


class Bins(NamedTuple):
    """Edges of the distributions' bins, float64 (D, B + 1); with one more axis in front, those of several instances."""

    edges: Floats


class Shared:
    """What instances have in common, each different one once.

    Args:
        of: Takes from a new view what may be shared: a named tuple of arrays.

    Attributes:
        arrays: The arrays, with what is different as their first axis; smaller ones are padded with ones.
    """

    def __init__(self, of: Callable[[View], Any]) -> None:
        self.arrays: Any
        self._of = of
        self._rows: dict[bytes, int] = {}
        self._different: list[Any] = []

    def __len__(self) -> int:
        return len(self._different)

    def rows(self, views: Iterable[View]) -> list[int]:
        """Give the row of each view in the arrays; what is new is added to them."""
        known, rows = len(self), []
        for view in views:
            one = self._of(view)
            key = b"".join(array.tobytes() for array in one)
            if key not in self._rows:
                self._rows[key] = len(self)
                self._different.append(one)
            rows.append(self._rows[key])
        if len(self) > known:
            self.arrays = self._different[0]._make(_stacked(each) for each in zip(*self._different, strict=True))
        return rows


def site_of(view: View) -> Site:
    """Give the site of an instance."""
    types = np.empty((len(view.room), TYPE_COLUMNS))
    offers = np.empty((len(view.configs), OFFER_COLUMNS))
    write_fixed(view.nodes, view.configs, view.room, view.planning_rate, view.node_rate, types, offers)
    return Site(view.configs, view.node_rate, view.planning_rate, view.least_rate, types, offers)


def bins_of(view: View) -> Bins:
    """Give the edges of an instance's distributions."""
    return Bins(view.distributions.edges)


def _stacked(arrays: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """Put arrays side by side, each padded with ones to the largest, as the edges of bins are."""
    shape = np.max([array.shape for array in arrays], axis=0)
    stacked = np.ones((len(arrays), *shape), arrays[0].dtype)
    for place, array in zip(stacked, arrays, strict=True):
        place[tuple(slice(length) for length in array.shape)] = array
    return stacked
