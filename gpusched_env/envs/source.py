"""Where the instances of an environment come from: a scenario and seeds, or one instance that is replayed."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from gpusched_env.errors import InputError
from gpusched_env.formats import instance_json
from gpusched_env.model import Instance
from gpusched_env.workload import InstanceMaker, Scenario, load_scenario

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping
    from pathlib import Path

USUAL = "default"
AnyScenario: TypeAlias = "str | Path | Scenario"


@dataclass(frozen=True, slots=True, eq=False)
class FromScenario:
    """Makes the instance of a seed from a scenario.

    Attributes:
        scenario: The scenario.
        maker: Makes its instances.
    """

    scenario: Scenario
    maker: InstanceMaker

    @property
    def name(self) -> str:
        """Give the name of the scenario."""
        return self.scenario.name

    def make(self, seed: int) -> Instance:
        """Make the instance of `seed`."""
        return self.maker.make(seed)

    def making(self, seed: int) -> Generator[None, None, Instance]:
        """Make it in parts: a generator that returns it."""
        return self.maker.making(seed)

    def identity(self) -> str:
        """Tell the scenario from others."""
        return self.scenario.model_dump_json()


@dataclass(frozen=True, slots=True, eq=False)
class Replay:
    """Gives one instance, whatever the seed.

    Attributes:
        instance: The instance.
    """

    instance: Instance
    scenario: None = None

    @property
    def name(self) -> str:
        """Give the name of the instance."""
        return self.instance.name

    def make(self, seed: int) -> Instance:  # noqa: ARG002 - as a scenario is asked
        """Give the instance."""
        return self.instance

    def making(self, seed: int) -> Generator[None, None, Instance]:  # noqa: ARG002
        """Give it as a generator does that has nothing to do."""
        yield from ()
        return self.instance

    def identity(self) -> str:
        """Tell the instance from others."""
        return hashlib.sha256(instance_json(self.instance).encode()).hexdigest()


Source: TypeAlias = FromScenario | Replay


def source_of(
    scenario: AnyScenario = USUAL, settings: Mapping[str, object] | None = None, instance: Instance | None = None
) -> Source:
    """Give what makes the instances of an environment.

    Args:
        scenario: Name of a built-in scenario, path of a scenario file, or a `Scenario`.
        settings: New values of its settings, by dotted name.
        instance: An instance to replay; then the scenario is left alone and there are no settings.

    Raises:
        InputError: A value is not allowed, or stands beside an instance.
    """
    if instance is None:
        chosen = scenario if isinstance(scenario, Scenario) else load_scenario(scenario)
        chosen = chosen if settings is None else chosen.replace(settings)
        return FromScenario(chosen, InstanceMaker(chosen))
    _check_alone(scenario, settings)
    if not isinstance(instance, Instance):
        raise InputError("instance", type(instance).__name__, "an Instance")
    return Replay(instance)


def arguments_of(scenario: Any, settings: Mapping[str, object] | None, instance: Any) -> list[dict[str, Any]]:
    """Give the arguments of each single environment: one, or as many as the sequence of scenarios or instances has.

    Raises:
        InputError: A sequence is empty, an instance is none, or scenario or settings stand beside it.
    """
    if instance is None:
        each = list(scenario) if isinstance(scenario, Sequence) and not isinstance(scenario, str) else [scenario]
        if not each:
            raise InputError("scenario", scenario, "at least one scenario")
        return [{"scenario": one, "settings": settings} for one in each]
    _check_alone(scenario, settings)
    if not isinstance(instance, Sequence) or isinstance(instance, str):
        return [{"instance": instance}]
    if not instance:
        raise InputError("instance", instance, "at least one instance")
    for k, one in enumerate(instance):
        if not isinstance(one, Instance):
            raise InputError(f"instance[{k}]", type(one).__name__, "an Instance")
    return [{"instance": one} for one in instance]


def _check_alone(scenario: Any, settings: Mapping[str, object] | None) -> None:
    if not isinstance(scenario, str) or scenario != USUAL:
        raise InputError("scenario", getattr(scenario, "name", scenario), f"{USUAL!r}, left alone beside an instance")
    if settings is not None:
        raise InputError("settings", settings, "none beside an instance: it is as it is")
