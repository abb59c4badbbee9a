"""What a job is: from its comment, from a file of rules, or by defaults that are told."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from gpusched_env.errors import InputError
from gpusched_env.model import Configuration
from gpusched_env.workload import OwnGpuType, Prices, Scenario
from gpusched_env.workload.catalogue import Catalogue
from gpusched_env.workload.power_limits import limited_time_s
from gpusched_env.workload.tables.applications import Application
from gpusched_operations.live.comment import JobSpec, seconds_of_due, spec_of_comment
from gpusched_operations.live.rules_file import RulesFile
from gpusched_operations.live.state import Clock, LiveCluster, LiveJob
from gpusched_operations.service.fields import default_policy
from gpusched_operations.service.gpu_names import built_in_gpu_type

UNIFORM = "part of the time limit"
"""Name of the distribution of jobs of which only a time limit is known: each tenth of it is equally likely."""

DISTRIBUTIONS: dict[str, Any] = {UNIFORM: {"masses": [0.1] * 10}}
ANY = "any"


@dataclass(frozen=True, slots=True)
class JobRequest:
    """What is asked for a job.

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
        distribution: Name in `DISTRIBUTIONS` of its epochs needed; empty: that of its application, else the maximum.
        defaults: What nobody said, and what was taken, as phrases.
        fields: Its entry in a request, with its own times (`job_requests`); empty: it is in none yet.
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
    fields: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class JobRules:
    """What jobs are.

    Args:
        file: The rules.
        present: GPU types of the cluster, by the model's names; None: all that there are.

    Raises:
        InputError: The rules name what is not there.
    """

    file: RulesFile = field(default_factory=RulesFile)
    present: frozenset[str] | None = None

    def __post_init__(self) -> None:
        self.file.check(self.catalogue)

    @classmethod
    def load(cls, path: Path | None) -> JobRules:
        """Read a file of rules (TOML); None: the defaults alone."""
        return cls(RulesFile.load(path))

    @classmethod
    def of(cls, fields: dict[str, Any]) -> JobRules:
        return cls(RulesFile.of(fields))

    def on(self, cluster: LiveCluster) -> JobRules:
        types = {self.gpu_type(node.gpu_type) for node in cluster.nodes if node.gpus}
        present = frozenset(each for each in types if each is not None)
        return self if present == self.present else replace(self, present=present)  # what is looked up is kept

    @property
    def clock(self) -> Clock:
        return Clock(self.file.clock.speed, self.file.clock.origin_s)

    @property
    def default_policy(self) -> str:
        return default_policy(self.file.prices.series)

    @cached_property
    def catalogue(self) -> Catalogue:
        prices = Prices(energy_price_eur_per_kwh=self.file.prices.energy_eur_per_kwh, pue=self.file.prices.pue)
        return Scenario(gpu_types=self.file.own_gpu_types, prices=prices).catalogue()

    @cached_property
    def _seconds(self) -> dict[tuple[str, Configuration], float]:
        return {}

    def gpu_type(self, name: str) -> str | None:
        given = self.file.gpu_types.get(name)
        if given is None:
            return built_in_gpu_type(name)
        return given.name if isinstance(given, OwnGpuType) else given

    def built_in(self, application: str) -> Application | None:
        own = self.file.applications.get(application)
        return self.catalogue.applications.get(application if own is None or own.like is None else own.like)

    def seconds(self, application: str, configuration: Configuration) -> float:
        """Return the seconds per epoch of an application [s of the model]; inf: none is known, or it has no room."""
        key = application, configuration
        if key not in self._seconds:
            self._seconds[key] = self._looked_up(*key)
        return self._seconds[key]

    def _looked_up(self, application: str, configuration: Configuration) -> float:
        own, built_in = self.file.applications.get(application), self.built_in(application)
        gpu_type = self.catalogue.gpu_types.get(configuration.gpu_type)
        sources = (each for each in (own, built_in) if each is not None and each.memory_gib is not None)
        if gpu_type is None or next((each.memory_gib or 0.0 for each in sources), 0.0) > gpu_type.memory_gib:
            return math.inf
        if own is not None and isinstance(own.seconds_per_epoch, dict):
            return own.seconds_per_epoch.get(configuration.name, math.inf)
        return math.inf if built_in is None else limited_time_s(built_in, configuration)

    def restart_s(self, what: JobRequest) -> float:
        """Return the seconds without progress of a job after a change [s of the model], ≥ 0."""
        own, built_in = self.file.applications.get(what.application), self.built_in(what.application)
        if what.restart_s is not None:
            return what.restart_s
        if own is not None and own.restart_s is not None:
            return own.restart_s
        return 0.0 if built_in is None else built_in.restart_s

    def describe(self, job: LiveJob) -> JobRequest:
        return _Describing(self, job).made()


class _Describing:
    """One job that is being described: what was said of it, and what was taken because nobody said it."""

    def __init__(self, rules: JobRules, job: LiveJob) -> None:
        self.rules, self.job, self.usual = rules, job, rules.file.defaults
        self.opted_in, spec = spec_of_comment(job.comment, f"comment of job {job.id}")
        sources = (spec, *(rule for rule in rules.file.rules if rule.matches(job)))
        self.said = {
            name: next((value for each in sources if (value := getattr(each, name)) is not None), None)
            for name in JobSpec.model_fields
        }
        self.defaults: list[str] = []

    def made(self) -> JobRequest:
        said, usual = self.said, self.usual
        application = self._application()
        configurations = self._configurations(application)
        max_epochs, distribution = self._epochs(application, configurations)
        shortest_s = max_epochs * min(self.rules.seconds(application, each) for each in configurations)
        due_s = self._due_s(shortest_s)
        checkpoints = self._taken(
            "checkpoint", usual.checkpoint, "checkpoints: " + ("yes" if usual.checkpoint else "no")
        )
        resize = usual.resize if said["resize"] is None else said["resize"]
        return JobRequest(
            self.opted_in,
            application,
            max_epochs,
            due_s,
            self._taken("weight", usual.weight, f"weight: {usual.weight:g} €/s"),
            tuple(each.name for each in configurations),
            checkpoints,
            checkpoints and len(configurations) > 1 and resize is not False,
            usual.restart if said["restart"] is None else said["restart"],
            distribution,
            tuple(self.defaults),
        )

    def _taken(self, name: str, usual: Any, shown: str) -> Any:
        if self.said[name] is not None:
            return self.said[name]
        self.defaults.append(shown)
        return usual

    def _application(self) -> str:
        name: str = self._taken("app", self.usual.app, f"application: {self.usual.app}")
        if name not in self.rules.file.applications and name not in self.rules.catalogue.applications:
            there = ", ".join([*self.rules.file.applications, *self.rules.catalogue.applications])
            raise InputError(f"application of job {self.job.id}", name, f"one of {there}")
        return name

    def _due_s(self, shortest_s: float) -> float:
        job, speed = self.job, self.rules.clock.speed
        due, usual = self.said["due"], self.usual.due
        if due is None and usual is None:
            self.defaults.append(f"due date: submission + {self.usual.slack:g} times its shortest time")
            return job.submit_s + self.usual.slack * shortest_s / speed
        if due is None:
            self.defaults.append(f"due date: {usual}")
        return seconds_of_due(due or usual or "", job.submit_s, speed, f"due date of job {job.id}")

    def _configurations(self, application: str) -> list[Configuration]:
        job, rules = self.job, self.rules
        known = sorted(rules.catalogue.gpu_types if rules.present is None else rules.present)
        types = [v for v in self._types(known) if v in known]
        made = [Configuration(v, gpus, nodes) for v in types for nodes, gpus in self._sizes()]
        able = [each for each in made if math.isfinite(rules.seconds(application, each))]
        if not able:
            shown = (
                ", ".join(each.name for each in made)
                or ", ".join(self.said["types"] or ())
                or job.gpu_type
                or "any type"
            )
            raise InputError(f"GPUs of job {job.id}", shown, f"some that are there and {application} has times for")
        return able

    def _sizes(self) -> tuple[tuple[int, int], ...]:
        job, sizes = self.job, self.said["gpus"] or self.usual.gpus
        if sizes is not None:
            return tuple(sizes)
        if job.gpus < 1 or job.gpus % job.nodes:
            allowed = "at least one GPU, and the same number on every node"
            raise InputError(f"GPUs of job {job.id}", f"{job.gpus} on {job.nodes} nodes", allowed)
        return ((job.nodes, job.gpus // job.nodes),)

    def _types(self, known: list[str]) -> list[str]:
        """Return the GPU types that the job may use, by the model's names."""
        said = self.said["types"]
        if said is None and self.job.gpu_type is None:
            said = self.usual.types
            shown = "any that its application has times for" if said is None else ", ".join(said)
            self.defaults.append(f"GPU types: {shown}")
        asked = None if self.job.gpu_type is None else self._named(self.job.gpu_type.split("|"))
        if said is None or ANY in said:
            return known if asked is None else asked
        found = self._named(said)
        if asked is None:
            return found
        both = [name for name in found if name in asked]  # Slurm cannot change the type of a request that names one
        if not both:
            allowed = f"some of what it asked for, {self.job.gpu_type}; or submit it without a type"
            raise InputError(f"GPU types of job {self.job.id}", ", ".join(said), allowed)
        return both

    def _named(self, names: Iterable[str]) -> list[str]:
        found = []
        for name in names:
            gpu_type = self.rules.gpu_type(name)
            if gpu_type is None:
                allowed = "a built-in type, or one that [gpu_types] of the rules names"
                raise InputError(f"GPU type of job {self.job.id}", name, allowed)
            found.append(gpu_type)
        return list(dict.fromkeys(found))

    def _epochs(self, application: str, configurations: list[Configuration]) -> tuple[float, str]:
        """Return the most epochs that the job needs, and the name of their distribution."""
        job, rules = self.job, self.rules
        own, built_in = rules.file.applications.get(application), rules.built_in(application)
        known = self.said["epochs"] or (None if own is None else own.max_epochs)
        if known is not None:
            return known, ""
        if job.time_limit_s and (self.said["app"] is None or built_in is None):
            asked = [each for each in configurations if each.gpus_per_node * each.nodes == job.gpus] or configurations
            slowest_s = max(rules.seconds(application, each) for each in asked)
            self.defaults.append("epochs: each tenth of the time limit is equally likely")
            return job.time_limit_s * rules.clock.speed / slowest_s, UNIFORM
        most = self.usual.epochs or (None if built_in is None else built_in.max_epochs)
        if most is None:
            allowed = "a number: neither the job, its application nor a time limit tells"
            raise InputError(f"epochs of job {job.id}", None, allowed)
        self.defaults.append(f"most epochs: {most:g}")
        return most, ""
