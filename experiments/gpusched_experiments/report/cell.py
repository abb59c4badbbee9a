"""A cell of a report: one run, defined so that it is the same in whatever process and order it happens."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from gpusched_agents.any_policy import is_agent, make_any_policy
from gpusched_env.workload import Scenario, make_instance
from gpusched_experiments.report.code_version import agent_version, code_version, machine
from gpusched_experiments.report.measure import WHOLE_RUN, Measure

if TYPE_CHECKING:
    from dataclasses import Field

    from gpusched_env.model import Instance
    from gpusched_experiments.report.run import Label, Values

SAYS_NOTHING = {"name", "description", "compare"}
"""Settings of a scenario that decide nothing about its instances."""


class Change(Protocol):
    """A pure change of an instance: a frozen dataclass whose fields are numbers and texts."""

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]

    def __call__(self, instance: Instance) -> Instance:
        """Give the changed instance."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One policy on one workload.

    Args:
        labels: Where the cell stands in its report; decides nothing about the run.
        scenario: The scenario of the workload.
        policy: Name of a registered policy, or of an agent: `agent:NAME`, `agent:DIR`.
        seed: Seed of the workload and of the policy's randomness.
        change: Change of the instance, if any.
        measure: What is measured.
    """

    labels: tuple[tuple[str, Label], ...]
    scenario: Scenario
    policy: str
    seed: int
    change: Change | None = None
    measure: Measure = WHOLE_RUN

    def key(self, origin: str) -> str:
        """Give what identifies the run: equal keys mean equal definitions, made by the same code.

        Args:
            origin: What made it: the version of the code, for agents also theirs, for times also the machine.
        """
        definition = {
            "origin": origin,
            "scenario": self.scenario.model_dump(mode="json", exclude=SAYS_NOTHING),
            "change": None if self.change is None else [type(self.change).__name__, asdict(self.change)],
            "policy": self.policy,
            "seed": self.seed,
            "measure": self.measure.name,
        }
        text = json.dumps(definition, sort_keys=True, ensure_ascii=False)
        return hashlib.sha256(text.encode("utf-8")).hexdigest()[:20]

    def run(self) -> Values:
        """Make the instance, run the policy, and give what was measured, by name."""
        return self.measure.of(self.instance(), make_any_policy(self.policy), self.seed)

    def instance(self) -> Instance:
        """Make the instance."""
        instance = make_instance(self.scenario, self.seed)
        return instance if self.change is None else self.change(instance)


def origin(policy: str, measure: Measure = WHOLE_RUN) -> str:
    """Say what makes a cell: the version of the code, and of an agent; for times also the machine."""
    parts = [code_version()]
    if is_agent(policy):
        parts.append(agent_version(policy))
    if measure.timing:
        parts.append(machine())
    return ", ".join(parts)
