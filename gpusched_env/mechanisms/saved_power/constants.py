"""The constants of the power that held GPUs save."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import numpy as np

from gpusched_env.arrays import Floats
from gpusched_env.mechanisms.saved_power.model import saved_kilowatts
from gpusched_env.mechanisms.shares.model import UtilisationModel
from gpusched_env.simulator.run import Facts

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from gpusched_env.model import Instance


class SavedPowerFacts(Facts):
    """Adds what held GPUs draw less than full busy ones.

    Attributes:
        idle_saving: Idle-power saving of a held GPU [kW], (V,); (0,): none.
        saved_kw: What the GPUs of a configuration draw less than full busy ones [kW], by application, on a share as
            whole GPUs, (A, C); (0, 0): nothing.
    """

    idle_saving: Annotated[Floats, 1]
    saved_kw: Annotated[Floats, 2]


def constants(instance: Instance) -> dict[str, NDArray[np.float64]]:
    """Return the constants of the runs of an instance."""
    return {"idle_saving": idle_saving_kilowatts(instance), "saved_kw": saved_kilowatts(instance)}


def idle_saving_kilowatts(instance: Instance) -> NDArray[np.float64]:
    """Return the idle-power saving of a held GPU of each type [kW], (V,).

    (0,) if GPUs that are held draw the power of busy ones.
    """
    model = instance.of(UtilisationModel)
    if model is None or model.idle_power_w is None:
        return np.zeros(0)
    return (np.array([v.gpu_power_w for v in instance.gpu_types]) - model.idle_power_w) / 1000.0
