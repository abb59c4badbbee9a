"""What a command runs: the instances of a scenario, or one instance from a file."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gpusched_env.envs.source import Replay
from gpusched_env.model import Instance
from gpusched_env.workload import InstanceMaker, Scenario


@dataclass(frozen=True, slots=True)
class Workload:
    """A scenario, or one instance.

    Attributes:
        scenario: The scenario; None where one instance is run.
        instance: That instance; seeds decide the policies' own randomness alone.
        file: The file it comes from.
    """

    scenario: Scenario | None
    instance: Instance | None = None
    file: str = ""

    @property
    def title(self) -> str:
        """Say what it is."""
        return Path(self.file).name if self.scenario is None else self.scenario.name

    def maker(self) -> Callable[[int], Instance]:
        """Give what makes the instance of a seed.

        Raises:
            InputError: The scenario makes none (`InstanceMaker`).
        """
        if self.instance is not None:
            return Replay(self.instance).make
        return InstanceMaker(self.scenario or Scenario()).make

    def facts(self) -> dict[str, Any]:
        """Say where the instances come from, for the provenance of files."""
        if self.scenario is not None:
            return {"scenario": self.scenario.model_dump(mode="json")}
        return {"instance_file": self.file}
