"""The file of rules (TOML): GPU types, prices, applications, and what jobs are by account, user, name or script."""

from __future__ import annotations

from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BeforeValidator, Field, ValidationError

from gpusched_env.errors import InputError
from gpusched_env.parsing import parse_toml
from gpusched_env.workload import OwnGpuType
from gpusched_operations.live.comment import JobSpec, NotBelowZero, Number, YesNo
from gpusched_operations.service.cluster import configuration_of
from gpusched_operations.service.fields import ApplicationFields, Fields, Name, PriceFields, input_error

if TYPE_CHECKING:
    from gpusched_env.workload.catalogue import Catalogue
    from gpusched_operations.live.state import LiveJob

ORIGIN_S = 1_767_225_600.0
"""The start of 2026 (UTC), where by default the clock of the model and that of the cluster agree."""

USUAL_APPLICATION = "resnet50-imagenet-global256"
"""Application of jobs of which nobody names one: it has measured times on every built-in GPU type."""

USUAL_WEIGHT_EUR_PER_S = 0.00035
"""Weight of jobs of which nobody says one: the middle of those that scenarios draw."""

PATTERNS = ("account", "user", "name", "script", "partition")


def _own_type(value: Any) -> Any:
    return OwnGpuType(**value) if isinstance(value, dict) else value


GpuTypeName = Annotated[str | OwnGpuType, BeforeValidator(_own_type)]


class RuleFields(JobSpec):
    """What jobs are that match all patterns of a rule; `*` and `?` as in names of files."""

    account: str = "*"
    user: str = "*"
    name: str = "*"
    script: str = "*"
    partition: str = "*"

    def matches(self, job: LiveJob) -> bool:
        return all(fnmatchcase(getattr(job, where), getattr(self, where)) for where in PATTERNS)


class DefaultFields(JobSpec):
    """What jobs are of which neither their comment nor a rule says it."""

    app: Name = USUAL_APPLICATION
    weight: NotBelowZero = USUAL_WEIGHT_EUR_PER_S
    checkpoint: YesNo = False
    slack: Number = Field(default=2.0, description="Without a due date: it is so many times the shortest time later.")


class ClockFields(Fields):
    """The clock of policies beside that of the cluster."""

    speed: Number = Field(default=1.0, description="Seconds of the model in a second of the cluster.")
    origin_s: NotBelowZero = Field(default=ORIGIN_S, description="The Unix time at which both agree [s].")


class RulesFile(Fields):
    """The file of rules."""

    gpu_types: dict[Name, GpuTypeName] = Field(
        default={}, description="By the manager's name: a built-in type, or one with figures of its own."
    )
    prices: PriceFields = PriceFields()
    applications: dict[Name, ApplicationFields] = Field(default={}, description="As in requests of the service.")
    rules: list[RuleFields] = Field(default=[], description="The first that says a field counts.")
    defaults: DefaultFields = DefaultFields()
    clock: ClockFields = ClockFields()

    @classmethod
    def of(cls, fields: dict[str, Any]) -> RulesFile:
        try:
            return cls.model_validate(fields)
        except ValidationError as error:
            raise input_error(error) from None

    @classmethod
    def load(cls, path: Path | None) -> RulesFile:
        """Read a file; None: all is as by default."""
        if path is None:
            return cls()
        try:
            fields = parse_toml(path.read_text("utf-8"))
        except OSError as error:
            raise InputError("--rules", str(path), f"a file that can be read ({error.strerror})") from None
        except ValueError as error:
            raise InputError("--rules", str(path), f"a TOML file ({error})") from None
        return cls.of(fields)

    @property
    def own_gpu_types(self) -> tuple[OwnGpuType, ...]:
        given = {each.name: each for each in self.gpu_types.values() if isinstance(each, OwnGpuType)}
        return tuple(given.values())

    def check(self, catalogue: Catalogue) -> None:
        for name, given in self.gpu_types.items():
            if isinstance(given, str):
                _one_of(f"gpu_types.{name}", given, catalogue.gpu_types)
        for name, own in self.applications.items():
            _check_application(name, own, catalogue)
        there = {**self.applications, **catalogue.applications}
        _one_of("defaults.app", self.defaults.app, there)
        for index, rule in enumerate(self.rules):
            if rule.app is not None:
                _one_of(f"rules[{index}].app", rule.app, there)


def _one_of(field: str, value: str, names: Any) -> None:
    if value not in names:
        raise InputError(field, value, f"one of {', '.join(names)}")


def _check_application(name: str, own: ApplicationFields, catalogue: Catalogue) -> None:
    where, times = f"applications.{name}", own.seconds_per_epoch
    if own.like is not None:
        _one_of(f"{where}.like", own.like, catalogue.applications)
    if isinstance(own.distribution, str):
        raise InputError(f"{where}.distribution", own.distribution, "the distribution itself")
    if isinstance(times, dict):
        for each in times:
            if configuration_of(each).gpu_type not in catalogue.gpu_types:
                raise InputError(f"{where}.seconds_per_epoch", each, f"one of {', '.join(catalogue.gpu_types)}")
    elif times is not None:
        raise InputError(f"{where}.seconds_per_epoch", times, "times by name of the configuration, or by GPU type")
    elif own.like is None and name not in catalogue.applications:
        raise InputError(f"{where}.seconds_per_epoch", None, "a value; or `like`, a built-in application")
