"""One of the reference instances of the published generator, in place of what a scenario makes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from gpusched_reproductions.published.reference_instances import reference_instance

if TYPE_CHECKING:
    from gpusched_env.model import Instance


@dataclass(frozen=True, slots=True)
class Reference:
    """Put a reference instance in place of another one.

    Args:
        folder: Folder of the reference instances.
        name: Name of the instance, KIND-NODES-SEED.
        digest: What tells its content from another one of this name.
    """

    folder: str
    name: str
    digest: str

    def __call__(self, instance: Instance) -> Instance:  # noqa: ARG002 - nothing of it is kept
        """Give the reference instance."""
        return reference_instance(Path(self.folder), self.name)
