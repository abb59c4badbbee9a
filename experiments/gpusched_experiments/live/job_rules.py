"""What a job is: from its comment, from a file of rules, or by defaults that are told."""

from __future__ import annotations

import math
import tomllib
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, ValidationError

from gpusched_env.errors import InputError
from gpusched_env.model import Configuration
from gpusched_env.workload import OwnGpuType, Prices, Scenario
from gpusched_env.workload.catalogue import Catalogue
from gpusched_env.workload.power_limits import limited_time_s
from gpusched_experiments.live.comment import JobSpec, seconds_of_due, spec_of_comment
from gpusched_experiments.live.gpu_names import built_in_gpu_type
from gpusched_experiments.live.state import Clock, LiveCluster, LiveJob
from gpusched_experiments.service.cluster import configuration_of
from gpusched_experiments.service.fields import ApplicationFields, Fields, Name, PriceFields, input_error

ORIGIN_S = 1_767_225_600.0
"""The start of 2026 (UTC), where by default the clock of the model and that of the cluster agree."""

USUAL_APPLICATION = "resnet50-imagenet-global256"
UNIFORM = "time limit"
"""Name of the distribution of jobs of which only a time limit is known: each tenth of it is equally likely."""

DISTRIBUTIONS: dict[str, Any] = {UNIFORM: {"masses": [0.1] * 10}}


class RuleFields(JobSpec):
    """What jobs are that match all patterns of a rule (`*` and `?` as in names of files)."""

    account: str = "*"
    user: str = "*"
    name: str = "*"
    script: str = "*"
    partition: str = "*"

    def matches(self, job: LiveJob) -> bool:
        """Return whether the rule is about a job."""
        return all(
            fnmatchcase(getattr(job, where), getattr(self, where))
            for where in ("account", "user", "name", "script", "partition")
        )


class DefaultFields(JobSpec):
    """What jobs are of which neither their comment nor a rule says it."""

    app: Name = USUAL_APPLICATION
    weight: float = Field(default=0.00035, ge=0.0, allow_inf_nan=False)
    checkpoint: bool = False
    slack: float = Field(default=2.0, gt=0.0, allow_inf_nan=False)


class ClockFields(Fields):
    """The clock of policies beside that of the cluster."""

    speed: float = Field(default=1.0, gt=0.0, allow_inf_nan=False)
    origin_s: float = Field(default=ORIGIN_S, ge=0.0, allow_inf_nan=False)


class RulesFile(Fields):
    """The file of rules."""

    gpu_types: dict[str, Annotated[str | OwnGpuType, Field()]] = {}
    prices: PriceFields = PriceFields()
    applications: dict[Name, ApplicationFields] = {}
    rules: list[RuleFields] = []
    defaults: DefaultFields = DefaultFields()
    clock: ClockFields = ClockFields()


@dataclass(frozen=True, slots=True)
class JobDescription:
    """What a policy is told of a job.

    Attributes:
        opted_in: Whether its comment has the word `gpusched`.
        application: Name of its application.
        max_epochs: Most epochs that it needs, > 0.
        due_s: Its due date, a Unix time [s].
        weight_eur_per_s: What a second of delay costs [€/s of the model].
        configurations: Names of the configurations that it may be given, such as V100x1.
        checkpoints: Whether it may be stopped and continued.
        resizes: Whether it may continue on another configuration.
        restart_s: Seconds of the model without progress after a change; None: those of its application.
        distribution: Name in `DISTRIBUTIONS` of its epochs needed; empty: that of its application, or the maximum.
        defaults: What nobody said, and what was taken, as phrases.
    """

    opted_in: bool
    application: str
    max_epochs: float
    due_s: float
    weight_eur_per_s: float
    configurations: tuple[str, ...]
    checkpoints: bool
    resizes: bool
    restart_s: float | None
    distribution: str = ""
    defaults: tuple[str, ...] = ()


@dataclass(frozen=True)
class JobRules:
    """What jobs are.

    Args:
        file: The rules.
        present: GPU types of the cluster, by the model's names; None: any.
    """

    file: RulesFile = field(default_factory=RulesFile)
    present: frozenset[str] | None = None

    @classmethod
    def load(cls, path: Path | None) -> JobRules:
        """Read a file of rules (TOML); None: the defaults alone.

        Raises:
            InputError: The file cannot be read, or a field is not allowed.
        """
        if path is None:
            return cls()
        try:
            found = tomllib.loads(path.read_text("utf-8"))
        except OSError as error:
            raise InputError("--rules", str(path), f"a file that can be read ({error.strerror})") from None
        except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
            raise InputError("--rules", str(path), f"a TOML file ({error})") from None
        return cls.of(found)

    @classmethod
    def of(cls, fields: dict[str, Any]) -> JobRules:
        """Take rules as the file has them.

        Raises:
            InputError: A field is not allowed.
        """
        try:
            made = cls(RulesFile.model_validate(fields))
        except ValidationError as error:
            raise input_error(error) from None
        made._check()
        return made

    def on(self, cluster: LiveCluster) -> JobRules:
        """Return the rules for the GPU types that a cluster has."""
        types = (self.gpu_type(node.gpu_type) for node in cluster.nodes if node.gpus)
        return replace(self, present=frozenset(each for each in types if each is not None))

    @property
    def clock(self) -> Clock:
        """Return the clock of policies."""
        return Clock(self.file.clock.speed, self.file.clock.origin_s)

    @cached_property
    def own_gpu_types(self) -> tuple[OwnGpuType, ...]:
        """Return the GPU types with figures of the user's own."""
        given = [each for each in self.file.gpu_types.values() if isinstance(each, OwnGpuType)]
        return tuple({each.name: each for each in given}.values())

    @cached_property
    def catalogue(self) -> Catalogue:
        """Return the built-in GPU types and applications, with the user's own types."""
        prices = Prices(energy_price_eur_per_kwh=self.file.prices.energy_eur_per_kwh, pue=self.file.prices.pue)
        return Catalogue.of(Scenario(gpu_types=self.own_gpu_types, prices=prices))

    def gpu_type(self, name: str) -> str | None:
        """Return the model's name of a GPU type of the manager; None: it has none."""
        given = self.file.gpu_types.get(name)
        if given is None:
            return built_in_gpu_type(name)
        return given.name if isinstance(given, OwnGpuType) else given

    def seconds(self, application: str, configuration: Configuration) -> float:
        """Return the seconds per epoch of an application [s of the model]; inf: it has none there."""
        own = self.file.applications.get(application)
        if own is not None and isinstance(own.seconds_per_epoch, dict):
            return own.seconds_per_epoch.get(configuration.name, math.inf)
        name = application if own is None or own.like is None else own.like
        built_in = self.catalogue.applications.get(name)
        return math.inf if built_in is None else limited_time_s(built_in, configuration)

    def describe(self, job: LiveJob) -> JobDescription:
        """Return what a policy is told of a job.

        Raises:
            InputError: Its comment is none, it names what is not there, or no configuration fits it.
        """
        opted_in, spec = spec_of_comment(job.comment, f"comment of job {job.id}")
        sources = (spec, *(rule for rule in self.file.rules if rule.matches(job)))
        said = {
            name: next((value for each in sources if (value := getattr(each, name)) is not None), None)
            for name in JobSpec.model_fields
        }
        defaults: list[str] = []
        usual = self.file.defaults

        def taken(name: str, value: Any, shown: str) -> Any:
            if said[name] is not None:
                return said[name]
            defaults.append(shown)
            return value

        application = taken("app", usual.app, f"application: {usual.app}")
        if application not in self.file.applications and application not in self.catalogue.applications:
            there = ", ".join([*self.file.applications, *self.catalogue.applications])
            raise InputError(f"application of job {job.id}", application, f"one of {there}")
        configurations = self._configurations(job, application, said, defaults)
        fastest_s = min(self.seconds(application, each) for each in configurations)
        max_epochs, distribution = self._epochs(job, application, configurations, said, defaults)
        clock = self.clock
        if said["due"] is None and usual.due is None:
            defaults.append(f"due date: submission + {usual.slack:g} x its shortest time")
            due_s = job.submit_s + usual.slack * max_epochs * fastest_s / clock.speed
        else:
            due = taken("due", usual.due, f"due date: {usual.due}")
            due_s = seconds_of_due(due, job.submit_s, clock.speed, f"due date of job {job.id}")
        checkpoints = bool(taken("checkpoint", usual.checkpoint, f"checkpoints: {'yes' if usual.checkpoint else 'no'}"))
        resizes = checkpoints and len(configurations) > 1 and said["resize"] is not False
        return JobDescription(
            opted_in,
            application,
            max_epochs,
            due_s,
            taken("weight", usual.weight, f"weight: {usual.weight:g} EUR/s"),
            tuple(each.name for each in configurations),
            checkpoints,
            resizes,
            said["restart"] if said["restart"] is not None else usual.restart,
            distribution,
            tuple(defaults),
        )

    def _configurations(
        self, job: LiveJob, application: str, said: dict[str, Any], defaults: list[str]
    ) -> list[Configuration]:
        """Return what a job may be given: numbers of GPUs, on GPU types, for which its application has times."""
        where = f"GPUs of job {job.id}"
        if job.unfit:
            raise InputError(where, job.gpus, f"what a policy can be told of, not {job.unfit}")
        sizes, types = said["gpus"], said["types"]
        if sizes is None:
            if job.gpus < 1 or job.gpus % job.nodes:
                raise InputError(where, f"{job.gpus} on {job.nodes} nodes", "at least one, the same on every node")
            sizes = ((job.nodes, job.gpus // job.nodes),)
        known = sorted(self.present if self.present is not None else self.catalogue.gpu_types)
        if types is None and job.gpu_type is None:
            defaults.append("GPU types: any that its application has times for")
        if types is not None and "any" not in types:
            named = list(types)
        else:
            named = [] if job.gpu_type is None or types is not None else [job.gpu_type]
        mapped = [self.gpu_type(name) for name in named]
        if None in mapped:
            allowed = "built-in types, or types that [gpu_types] of the rules names"
            raise InputError(f"GPU type of job {job.id}", named[mapped.index(None)], allowed)
        offered = list(dict.fromkeys(each for each in mapped if each is not None)) if named else known
        made = [Configuration(v, each, nodes) for v in offered for nodes, each in sizes if v in known]
        able = [each for each in made if math.isfinite(self.seconds(application, each))]
        if not able:
            shown = ", ".join(each.name for each in made) or ", ".join(offered)
            raise InputError(where, shown, f"some that the cluster has and {application} has times for")
        return able

    def _epochs(
        self,
        job: LiveJob,
        application: str,
        configurations: list[Configuration],
        said: dict[str, Any],
        defaults: list[str],
    ) -> tuple[float, str]:
        """Return the most epochs that a job needs, and the name of their distribution."""
        own, built_in = self.file.applications.get(application), self.catalogue.applications.get(application)
        usual = self.file.defaults.epochs
        known = said["epochs"]
        if known is None and own is not None:
            known = own.max_epochs
        if known is not None:
            return known, ""
        like = None if own is None or own.like is None else self.catalogue.applications.get(own.like)
        of_name = built_in or like
        if said["app"] is not None and of_name is not None:
            defaults.append(f"most epochs: {of_name.max_epochs:g}, of {application}")
            return of_name.max_epochs, ""
        if job.time_limit_s is not None:
            asked = [each for each in configurations if each.gpus_per_node * each.nodes == job.gpus] or configurations
            slowest_s = max(self.seconds(application, each) for each in asked)
            defaults.append("epochs: any part of the time limit is equally likely")
            return job.time_limit_s * self.clock.speed / slowest_s, UNIFORM
        if usual is not None or of_name is not None:
            most = usual if usual is not None else of_name.max_epochs if of_name is not None else 0.0
            defaults.append(f"most epochs: {most:g}")
            return most, ""
        raise InputError(f"epochs of job {job.id}", None, "a number: neither its application nor a time limit tells")

    def _check(self) -> None:
        """Check names that the file uses."""
        for name, given in self.file.gpu_types.items():
            if isinstance(given, str) and given not in self.catalogue.gpu_types:
                raise InputError(f"gpu_types.{name}", given, f"one of {', '.join(self.catalogue.gpu_types)}")
        known = self.catalogue.applications
        for name, own in self.file.applications.items():
            where = f"applications.{name}"
            if own.like is not None and own.like not in known:
                raise InputError(f"{where}.like", own.like, f"one of {', '.join(known)}")
            if isinstance(own.seconds_per_epoch, dict):
                for each in own.seconds_per_epoch:
                    configuration_of(each)
            elif own.seconds_per_epoch is not None:
                raise InputError(f"{where}.seconds_per_epoch", "...", "times by name of the configuration or GPU type")
            elif own.like is None and name not in known:
                raise InputError(f"{where}.seconds_per_epoch", None, "a value, or `like`: a built-in application")
            if isinstance(own.distribution, str):
                raise InputError(f"{where}.distribution", own.distribution, "the distribution itself")
        there = {*self.file.applications, *known}
        for where, spec in [("defaults", self.file.defaults), *((f"rules[{i}]", r) for i, r in enumerate(self.file.rules))]:
            if spec.app is not None and spec.app not in there:
                raise InputError(f"{where}.app", spec.app, f"one of {', '.join(there)}")
