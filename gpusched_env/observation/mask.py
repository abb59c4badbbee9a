"""The action mask: what can be placed now."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gpusched_env.simulator import layout as at
from gpusched_env.simulator.kernel import kernel

if TYPE_CHECKING:
    from gpusched_env.simulator.arrays import Floats, Ints, Mask


@kernel
def write_mask(configs: Ints, gaps: Ints, tau: Floats, job: int, mask: Mask) -> None:
    """Write what can be placed now: `mask[0]` (wait) is 1, `mask[c + 1]` is 1 if configuration c can be."""
    mask[0] = 1
    for c in range(configs.shape[0]):
        fits = configs[c, at.CONFIG_GPUS] <= gaps[configs[c, at.CONFIG_TYPE]]
        mask[c + 1] = 1 if fits and tau[job, c] < np.inf else 0
