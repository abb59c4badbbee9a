"""The action mask: what can be placed now."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gpusched_env.kernel import lean_kernel
from gpusched_env.simulator.placement.placement import fits

if TYPE_CHECKING:
    from gpusched_env.arrays import Mask
    from gpusched_env.simulator.run import Board


@lean_kernel
def write_mask(board: Board, job: int, mask: Mask) -> None:
    """Write what can be placed now: `mask[0]` (wait) is 1, `mask[c + 1]` is 1 if configuration c can be."""
    configs, tau = board.facts.configs, board.tau
    mask[0] = 1
    for c in range(configs.shape[0]):
        mask[c + 1] = (tau[job, c] < np.inf) & fits(board, c)
