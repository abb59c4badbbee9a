"""Pure changes of an instance, for the experiments on sensitivity."""

from gpusched_experiments.published.changes.speed_up import SpeedUp
from gpusched_experiments.published.changes.told import WAYS, Told

__all__ = ["WAYS", "SpeedUp", "Told"]
