"""The `[[tenants]]` of a scenario: who shares the cluster, and what each was promised."""

from __future__ import annotations

from collections import Counter
from typing import Annotated

from pydantic import BeforeValidator, Field

from gpusched_env.model import Cells, Tenant
from gpusched_env.workload.scenario.settings import Count, Positive, Settings, as_tuple

Sizes = Annotated[tuple[Count, ...], BeforeValidator(as_tuple)]


class OwnTenant(Settings):
    """A tenant of the cluster: its part of the jobs, and the cells that it was promised."""

    name: str = Field(description="Name.")
    share: Positive = Field(default=1.0, description="Its part of the jobs, relative to the other tenants'.")
    cells: dict[str, Sizes] = Field(description="GPUs of each of its cells, by GPU type: { V100 = [8, 8, 4] }.")

    def tenant(self) -> Tenant:
        """Make the model's value.

        Raises:
            InputError: The name is not allowed, or there are no cells.
        """
        counted = [(name, size, n) for name, sizes in self.cells.items() for size, n in Counter(sizes).items()]
        return Tenant(self.name, tuple(Cells(*cells) for cells in counted))
