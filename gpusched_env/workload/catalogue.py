"""What a scenario has to choose from: its GPU types and applications, built-in ones and its own."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING

from gpusched_env.errors import InputError
from gpusched_env.workload.network import SwitchingCosts, switching_costs
from gpusched_env.workload.tables.applications import Application, builtin_applications, builtin_gpu_types, read_table
from gpusched_env.workload.tables.own_applications import applications_of, read_applications

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpusched_env.model import GpuType
    from gpusched_env.workload.scenario.cluster import OwnGpuType
    from gpusched_env.workload.scenario.scenario import Scenario

APPLICATION_TABLES = {
    "published": "published_applications.csv",
    "published-inhouse": "published_inhouse_applications.csv",
}
NAMED_TABLES = ("measured", *APPLICATION_TABLES)
"""Tables of the package that a scenario's `applications` may name; any other text is the path of a CSV file."""


@dataclass(frozen=True, slots=True)
class Catalogue:
    """What the names of a scenario stand for.

    Attributes:
        gpu_types: GPU types, by name.
        applications: Applications, by name.
        names: Names of the applications that jobs draw from.
        switching: Seconds without progress at a start and after changes, by application.
    """

    gpu_types: Mapping[str, GpuType]
    applications: Mapping[str, Application]
    names: tuple[str, ...]
    switching: Mapping[str, SwitchingCosts]

    @classmethod
    def of(cls, scenario: Scenario) -> Catalogue:
        """Look up what a scenario names; a file of applications is read here.

        Raises:
            InputError: A name stands for nothing, or a file or a value is not allowed.
        """
        gpu_types = gpu_types_of(scenario)
        built_in, own = builtin_applications(), _own_applications(scenario)
        _check_gpu_types(scenario, own, gpu_types)
        for v in scenario.gpu_types:
            built_in = {name: _like(application, v, replaces=True) for name, application in built_in.items()}
        known = built_in | {name: _added(built_in.get(name), application) for name, application in own.items()}
        for v in scenario.gpu_types:
            known = {name: _like(application, v, replaces=False) for name, application in known.items()}
        names = scenario.jobs.applications or tuple(own or built_in)
        for index, name in enumerate(names):
            if name not in known:
                raise InputError(f"jobs.applications[{index}]", name, f"one of the applications {', '.join(known)}")
        for name in scenario.restart_by_application:
            if name not in known:
                raise InputError(f"restart_by_application.{name}", name, f"one of the applications {', '.join(known)}")
        costs = {name: _switching(scenario, known[name], name in own) for name in names}
        return cls(gpu_types, known, names, costs)

    def chosen(self) -> tuple[Application, ...]:
        """List the applications that jobs draw from."""
        return tuple(self.applications[name] for name in self.names)


def gpu_types_of(scenario: Scenario) -> dict[str, GpuType]:
    """Give all GPU types that a scenario may name: its own, and the built-in ones.

    Raises:
        InputError: A type of its own is not whole.
    """
    known = builtin_gpu_types()
    eur_per_kwh = scenario.prices.energy_price_eur_per_kwh * scenario.prices.pue
    own: dict[str, GpuType] = {}
    for index, given in enumerate(scenario.gpu_types):
        try:
            own[given.name] = given.gpu_type(known, eur_per_kwh)
        except InputError as error:
            field = error.field.removeprefix(f"gpu_types.{given.name}.")
            raise InputError(f"gpu_types[{index}].{field}", error.value, error.allowed) from None
    return known | own


@cache
def _table(name: str) -> Mapping[str, Application]:
    file = APPLICATION_TABLES[name]
    return MappingProxyType(applications_of(list(enumerate(read_table(file), start=2)), file))


def _own_applications(scenario: Scenario) -> dict[str, Application]:
    """Give the applications that the scenario brings, or names a table of; none with `measured`."""
    given = scenario.applications
    if given is None or given == "measured":
        return {}
    if isinstance(given, str):
        return dict(_table(given)) if given in APPLICATION_TABLES else read_applications(given, names=NAMED_TABLES)
    made = {}
    for index, application in enumerate(given):
        if application.name in made:
            raise InputError(f"applications[{index}].name", application.name, "each name once")
        made[application.name] = application.application()
    return made


def _added(built_in: Application | None, own: Application) -> Application:
    """Put the times of one's own beside those of the built-in application with its name."""
    if built_in is None:
        return own
    return replace(
        own,
        memory_gib=own.memory_gib or built_in.memory_gib,
        restart_s=own.restart_s or built_in.restart_s,
        state_gib=own.state_gib or built_in.state_gib,
        seconds_per_epoch=dict(built_in.seconds_per_epoch) | dict(own.seconds_per_epoch),
        whole_nodes_s=dict(built_in.whole_nodes_s) | dict(own.whole_nodes_s),
    )


def _like(application: Application, own: OwnGpuType, *, replaces: bool) -> Application:
    """Let a GPU type have the times of the type that it is `like`: in place of its own, or where it has none."""
    if own.like is None:
        return application
    times, whole = dict(application.seconds_per_epoch), dict(application.whole_nodes_s)
    single = {(own.name, gpus): seconds / own.speed for (v, gpus), seconds in times.items() if v == own.like}
    several = {(own.name, nodes, gpus): s / own.speed for (v, nodes, gpus), s in whole.items() if v == own.like}
    if replaces:
        times = {key: seconds for key, seconds in times.items() if key[0] != own.name}
        whole = {key: seconds for key, seconds in whole.items() if key[0] != own.name}
    return replace(application, seconds_per_epoch=single | times, whole_nodes_s=several | whole)


def _check_gpu_types(scenario: Scenario, own: Mapping[str, Application], known: Mapping[str, GpuType]) -> None:
    """Check that applications of one's own ran on GPU types that there are: a slip of the pen would leave them out."""
    if isinstance(scenario.applications, str) and scenario.applications in APPLICATION_TABLES:
        return
    for application in own.values():
        for gpu_type, *_ in (*application.seconds_per_epoch, *application.whole_nodes_s):
            if gpu_type not in known:
                allowed = f"one of the GPU types {', '.join(known)}; [[gpu_types]] adds others"
                raise InputError(f"applications.{application.name}: gpu_type", gpu_type, allowed)


def _switching(scenario: Scenario, application: Application, own: bool) -> SwitchingCosts:
    """Give what switches cost an application, with the restart that the scenario, or the application, says."""
    restart_s = _restart_s(scenario, application, own)
    return switching_costs(scenario.switching, application.state_gib, restart_s)


def _restart_s(scenario: Scenario, application: Application, own: bool) -> float | None:
    """Give the seconds of a restart that the scenario, or the application itself, says; None if nobody does."""
    if application.name in scenario.restart_by_application:
        return scenario.restart_by_application[application.name]
    if scenario.restart_s == "measured":
        return application.restart_s
    if scenario.restart_s is None and own:
        return application.restart_s or None
    return scenario.restart_s
