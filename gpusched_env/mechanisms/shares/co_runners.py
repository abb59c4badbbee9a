"""What the models of co-runners on one GPU have in common."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import numpy as np

from gpusched_env.errors import InputError
from gpusched_env.model import checks
from gpusched_env.model.mechanism import Mechanism

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from gpusched_env.model.instance import Instance


class CoRunners(Mechanism):
    """Base of the models of how co-runners on one GPU affect one another: by pairs, or by utilisation.

    Attributes:
        table: Name of its table, by GPU type and application.
        fastest: Whether a share goes to the open GPU on which it is fastest; else to the fullest.
    """

    __slots__ = ()

    mechanism: ClassVar[str] = "shares"
    constants_from = "jobs"
    table: ClassVar[str]
    fastest: bool

    def most_slowdown(self, least_share: float) -> float:
        """Return the greatest possible factor on a time, where no share is smaller than `least_share`."""
        raise NotImplementedError

    def check(self, instance: Instance) -> None:
        """Check that tables are those of the instance's types and applications, and that no job takes too long.

        Raises:
            InputError: They are not, or a job may take longer than `checks.LONGEST_S` beside another one.
        """
        self.check_tables(len(instance.gpu_types), len(instance.jobs.applications))
        shared = [configuration.kind == "shared" for configuration in instance.configurations]
        full_s = instance.jobs.seconds_per_epoch[:, shared] * instance.jobs.max_epochs[:, None]
        longest_s = float(np.max(full_s, initial=0.0, where=np.isfinite(full_s)))
        slowest = self.most_slowdown(min(c.share for c in instance.configurations))
        if longest_s * slowest > checks.LONGEST_S:
            allowed = f"factors by which no job takes longer than {checks.LONGEST} beside another one"
            raise InputError(f"interference.{self.table}", slowest, allowed)

    def check_tables(self, types: int, applications: int) -> None:
        """Check that the table is one of so many GPU types and applications."""
        shape = getattr(self, self.table).shape
        wanted = (types, applications, applications)[: len(shape)]
        if shape != wanted:
            axes = "GPU types, applications" + (", applications" if len(shape) == 3 else "")
            raise InputError(f"interference.{self.table}", shape, f"({', '.join(map(str, wanted))}): {axes}")


def checked_factors(field: str, given: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return a read-only copy of factors; raise InputError unless they are numbers >= 1, (V, A, A)."""
    factors = checks.frozen_array(given)
    if factors.ndim != 3 or factors.shape[1] != factors.shape[2]:
        raise InputError(field, factors.shape, "an array (GPU types, applications, applications)")
    good = np.isfinite(factors) & (factors >= 1.0)
    if not np.all(good):
        v, a, b = (int(i) for i in np.argwhere(~good)[0])
        raise InputError(f"{field}[{v}, {a}, {b}]", float(factors[v, a, b]), "a finite number >= 1")
    return factors
