"""Pure changes of an instance, for the experiments on sensitivity."""

from gpusched_env.report.reproduce.changes.speed_up import SpeedUp
from gpusched_env.report.reproduce.changes.told import WAYS, Told

__all__ = ["WAYS", "SpeedUp", "Told"]
