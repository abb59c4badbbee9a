"""The values of a scenario's names: GPU types and applications."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from gpusched_env.errors import InputError
from gpusched_env.workload.tables import read_table
from gpusched_env.workload.tables.applications import Application, builtin_applications, builtin_gpu_types

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Literal

    from gpusched_env.model.configuration import GpuType
    from gpusched_env.workload.scenario.cluster import OwnGpuType
    from gpusched_env.workload.scenario.epochs import OwnApplication
    from gpusched_env.workload.scenario.sharing import Switching, SwitchingCosts

APPLICATION_TABLES = {
    "published": "published_applications.csv",
    "published-inhouse": "published_inhouse_applications.csv",
    "mlperf": "mlperf_applications.csv",
}
NAMED_TABLES = ("measured", *APPLICATION_TABLES)
"""Tables of the package that a scenario's `applications` may name; any other text is the path of a CSV file."""


@dataclass(frozen=True, slots=True)
class Catalogue:
    """The values of a scenario's names.

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
    def of(
        cls,
        gpu_types: Mapping[str, GpuType],
        own_types: Sequence[OwnGpuType],
        applications: str | Sequence[OwnApplication] | None,
        names: Sequence[str] | None,
        switching: Switching,
        restart_s: float | Literal["measured"] | None,
        restart_by_application: Mapping[str, float],
    ) -> Catalogue:
        """Look up the names of a scenario, whose settings these are; a file of applications is read here.

        Args:
            gpu_types: All GPU types, by name.
            own_types: Those of the scenario.
            applications: Its applications.
            names: Names of the applications that jobs draw from; None for all.
            switching: How jobs are switched.
            restart_s: Seconds of a restart.
            restart_by_application: The same for single applications.

        Raises:
            InputError: There is no such name, or the file is not valid.
        """
        built_in, own = builtin_applications(), _own_applications(applications)
        if not (isinstance(applications, str) and applications in APPLICATION_TABLES):
            _check_gpu_types(own, gpu_types)
        for v in own_types:
            built_in = {name: _like(application, v, replaces=True) for name, application in built_in.items()}
        known = built_in | {name: _added(built_in.get(name), application) for name, application in own.items()}
        for v in own_types:
            known = {name: _like(application, v, replaces=False) for name, application in known.items()}
        names = tuple(names or own or built_in)
        for index, name in enumerate(names):
            if name not in known:
                raise InputError(f"jobs.applications[{index}]", name, f"one of the applications {', '.join(known)}")
        for name in restart_by_application:
            if name not in known:
                raise InputError(f"restart_by_application.{name}", name, f"one of the applications {', '.join(known)}")
        each_s = {name: _restart_s(known[name], restart_s, name in own) for name in names}
        each_s |= restart_by_application
        return cls(gpu_types, known, names, _costs(switching, [known[name] for name in names], each_s))

    def chosen(self) -> tuple[Application, ...]:
        return tuple(self.applications[name] for name in self.names)


def gpu_types_of(own_types: Sequence[OwnGpuType], eur_per_kwh: float) -> dict[str, GpuType]:
    """Return all GPU types that a scenario may name: its own, and the built-in ones.

    Args:
        own_types: Its own.
        eur_per_kwh: Energy price · PUE, which turns €/h to W.
    """
    known = builtin_gpu_types()
    own: dict[str, GpuType] = {}
    for index, given in enumerate(own_types):
        try:
            own[given.name] = given.gpu_type(known, eur_per_kwh)
        except InputError as error:
            field = error.field.removeprefix(f"gpu_types.{given.name}.")
            raise InputError(f"gpu_types[{index}].{field}", error.value, error.allowed) from None
    return known | own


@cache
def _table(name: str) -> Mapping[str, Application]:
    from gpusched_env.workload.tables.own_applications import applications_of  # noqa: PLC0415 - few need it

    file = APPLICATION_TABLES[name]
    return MappingProxyType(applications_of(list(enumerate(read_table(file), start=2)), file))


def _own_applications(given: str | Sequence[OwnApplication] | None) -> dict[str, Application]:
    """Return the applications of the scenario or of the table that it names; none with `measured`."""
    if given is None or given == "measured":
        return {}
    from gpusched_env.workload.tables.own_applications import read_applications  # noqa: PLC0415 - few need it

    if isinstance(given, str):
        return dict(_table(given)) if given in APPLICATION_TABLES else read_applications(given, names=NAMED_TABLES)
    made = {}
    for index, application in enumerate(given):
        if application.name in made:
            raise InputError(f"applications[{index}].name", application.name, "each name once")
        made[application.name] = application.application()
    return made


def _added(built_in: Application | None, own: Application) -> Application:
    """Add the times of a user's application to those of the built-in application of the same name."""
    if built_in is None:
        return own
    return replace(
        own,
        memory_gib=own.memory_gib or built_in.memory_gib,
        restart_s=own.restart_s or built_in.restart_s,
        state_gib=own.state_gib or built_in.state_gib,
        batches_per_epoch=own.batches_per_epoch or built_in.batches_per_epoch,
        seconds_per_epoch=dict(built_in.seconds_per_epoch) | dict(own.seconds_per_epoch),
        whole_nodes_s=dict(built_in.whole_nodes_s) | dict(own.whole_nodes_s),
        spread_factor=dict(built_in.spread_factor) | dict(own.spread_factor),
    )


def _like(application: Application, own: OwnGpuType, *, replaces: bool) -> Application:
    """Copy to a GPU type the times of the type that it is `like`: in place of its own, or where it has none.

    Of a type that it is `part_of` it has the times on one GPU: a job cannot use several parts together.
    """
    if own.source is None:
        return application

    def moved(table: Mapping[Any, float]) -> dict[Any, float]:
        times = {key: seconds for key, seconds in table.items() if key[0] == own.source}
        times = {key: seconds for key, seconds in times.items() if own.part_of is None or key[1:] == (1,)}
        alike = {(own.name, *key[1:]): seconds / own.factor for key, seconds in times.items()}
        return alike | {key: seconds for key, seconds in table.items() if not replaces or key[0] != own.name}

    times, whole_nodes = moved(application.seconds_per_epoch), moved(application.whole_nodes_s)
    slower = {(own.name, gpus): factor for (v, gpus), factor in application.spread_factor.items() if v == own.like}
    return replace(
        application,
        seconds_per_epoch=times,
        whole_nodes_s=whole_nodes,
        spread_factor=dict(application.spread_factor) | slower,
    )


def _check_gpu_types(own: Mapping[str, Application], known: Mapping[str, GpuType]) -> None:
    """Check that users' applications have times on known GPU types: a misspelt name would leave them out."""
    for application in own.values():
        for gpu_type, *_ in (*application.seconds_per_epoch, *application.whole_nodes_s):
            if gpu_type not in known:
                allowed = f"one of the GPU types {', '.join(known)}; [[gpu_types]] adds others"
                raise InputError(f"applications.{application.name}: gpu_type", gpu_type, allowed)


def _restart_s(application: Application, given: float | Literal["measured"] | None, own: bool) -> float | None:
    if given == "measured":
        return application.restart_s
    return application.restart_s or None if given is None and own else given


def _costs(
    switching: Switching, applications: Sequence[Application], restart_s: Mapping[str, float | None]
) -> dict[str, SwitchingCosts]:
    if switching.model is None:
        return {each.name: switching.given_costs(restart_s[each.name] or 0.0) for each in applications}
    from gpusched_env.workload.switching import switching_costs  # noqa: PLC0415 - few need it

    return {each.name: switching_costs(switching, each, restart_s[each.name]) for each in applications}
