"""The models of co-runners on shared GPUs, of which an instance has one at most."""

from __future__ import annotations

from typing import Any, ClassVar

from gpusched_env.formats.json_fields import checked
from gpusched_env.mechanisms.shares.co_runners import CoRunners
from gpusched_env.mechanisms.shares.pairs import Interference
from gpusched_env.mechanisms.shares.shared_memory import SharedMemory
from gpusched_env.mechanisms.shares.utilisation import UtilisationModel

__all__ = ["MODEL", "CoRunners", "Interference", "SharedMemory", "UtilisationModel"]


class Either(CoRunners):
    """What files have: one of the models, with `utilisation` that by utilisation."""

    __slots__ = ()

    schema: ClassVar[Any] = None

    @classmethod
    def of_fields(cls, fields: Any) -> Any:
        """Make the model from the fields of a file, which it checks."""
        by_utilisation = isinstance(fields, dict) and "utilisation" in fields
        kind: type[CoRunners] = UtilisationModel if by_utilisation else Interference
        return kind.of_fields(checked("interference", fields, kind.schema))


MODEL = Either
