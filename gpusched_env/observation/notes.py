"""What observations keep from one decision to the next, and their scratch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import numpy as np

from gpusched_env.arrays import Floats, Ints
from gpusched_env.named_arrays import NamedArrays
from gpusched_env.observation.fixed import OFFER_COLUMNS, TYPE_COLUMNS, write_fixed
from gpusched_env.observation.spare import SPARE_COLUMNS
from gpusched_env.observation.tallies import ROUND, SUM_COLUMNS, TALLY_COLUMNS

if TYPE_CHECKING:
    from gpusched_env.simulator.run import Board
    from gpusched_env.simulator.state import Common


class Notes(NamedArrays):
    """What the observations of one run remember.

    Attributes:
        types: What never changes of the GPU types (`fixed`), (V, TYPE_COLUMNS).
        offers: What never changes of the configurations (`fixed`), (C, OFFER_COLUMNS).
        tallies: Counts of the round (`tallies`), (TALLY_COLUMNS + V,).
        sums: Sums of the round (`tallies`), (SUM_COLUMNS,).
        spare: What is free now (`spare`), (V, SPARE_COLUMNS + G + 1).
    """

    together = ("tallies", "sums", "spare")

    types: Annotated[Floats, 2]
    offers: Annotated[Floats, 2]
    tallies: Annotated[Ints, 1]
    sums: Annotated[Floats, 1]
    spare: Annotated[Ints, 2]

    @classmethod
    def of(cls, board: Board, common: Common | None = None) -> Notes:
        """Begin the notes of a run; what never changes is kept once in `common`."""
        types, busy = board.node_rate.shape
        fixed = np.empty((types, TYPE_COLUMNS)), np.empty((len(board.facts.configs), OFFER_COLUMNS))
        write_fixed(board, *fixed)
        kept = [array if common is None else common.once(array) for array in fixed]
        return cls(
            types=kept[0],
            offers=kept[1],
            tallies=np.full(TALLY_COLUMNS + types, -1),
            sums=np.empty(SUM_COLUMNS),
            spare=np.empty((types, SPARE_COLUMNS + busy), dtype=np.int64),
        )

    def forget(self) -> None:
        """Let the next observation count anew, as it must when a round was changed from outside."""
        self.tallies[ROUND] = -1
