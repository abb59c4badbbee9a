"""Boards made by hand, for tests of kernels that need little of one."""

from typing import Any

import numpy as np

from gpusched_env.mechanisms import BUILDS
from gpusched_env.named_arrays import NamedArrays
from gpusched_env.named_arrays import build as built
from gpusched_env.simulator import Board, Facts
from gpusched_env.simulator import layout as at

LENGTHS = {"clock": at.CLOCK_COLUMNS, "count": at.COUNT_COLUMNS, "sharing": at.SHARING_COLUMNS}


def board_of(*, configs: np.ndarray | None = None, **arrays: np.ndarray) -> Board:
    """Make a board that holds copies of these arrays, and has 0 as its times and counts; the others have no rows."""
    given = {} if configs is None else {"configs": np.pad(configs, ((0, 0), (0, at.CONFIG_COLUMNS - configs.shape[1])))}
    kind, facts = (built(kind, BUILDS["everything"]) for kind in (Board, Facts))
    return kind(facts=facts(**_filled(facts, given)), **_filled(kind, arrays))


def _filled(kind: type[NamedArrays], arrays: dict[str, np.ndarray]) -> dict[str, Any]:
    fields = {name: field for name, field in kind._fields.items() if hasattr(field, "dtype")}
    empty = {
        name: np.zeros((LENGTHS.get(name, 0),) + (0,) * (field.ndim - 1), dtype=str(field.dtype))
        for name, field in fields.items()
    }
    return empty | {name: array.copy() for name, array in arrays.items()}
