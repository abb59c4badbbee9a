"""Pure changes of an instance, for the experiments on what the saving depends on."""

from gpusched_reproductions.published.changes.hardware import BasePower, Slower
from gpusched_reproductions.published.changes.reference import Reference
from gpusched_reproductions.published.changes.speed_up import SpeedUp
from gpusched_reproductions.published.changes.told import WAYS, Told

__all__ = ["WAYS", "BasePower", "Reference", "Slower", "SpeedUp", "Told"]
