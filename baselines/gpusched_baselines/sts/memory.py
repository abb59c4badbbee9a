"""What STS remembers of a job between rounds: the same for every solver."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpusched_env.kernel import kernel
from gpusched_env.simulator.placement.placement import fits
from gpusched_env.simulator.view import FREE_COLUMNS

if TYPE_CHECKING:
    from gpusched_env.arrays import Floats, Ints

# Columns of the policy's memory of a job.
BETTER = (
    FREE_COLUMNS  # and on, one for each GPU type: 1 + the configuration it would have begun with, if it was cheaper
)


@kernel
def better_type_has_room(configs: Ints, room: Ints, memory: Floats, job: int) -> bool:
    """Say whether what `job` would have begun with on a GPU type that it ranked above its own fits now."""
    for v in range(room.shape[0]):
        config = int(memory[job, BETTER + v]) - 1
        if config >= 0 and fits(configs, room, config):
            return True
    return False
