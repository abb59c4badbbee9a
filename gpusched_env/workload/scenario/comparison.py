"""The sections `compare`, `track`, `trace`, `mixture` and `job_classes` of a scenario, and seeds as text."""

from __future__ import annotations

import re
from contextlib import suppress
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from gpusched_env.errors import InputError
from gpusched_env.workload.scenario.settings import (
    Count,
    CountFromZero,
    Many,
    Positive,
    Seconds,
    Settings,
    as_tuple,
    check_each_once,
    setting,
)
from gpusched_env.workload.traces import FORMATS, TRACE_FIELDS, UTF_8, TraceFormat

MOST_SEEDS = 100_000
ALLOWED = "whole numbers >= 0 and ranges of them, each once: 0-19, or 0,3,5"


def parse_seeds(text: str, field: str = "seeds") -> tuple[int, ...]:
    """Read `0-19` (both ends included), `0,3,5`, or a mixture.

    Args:
        text: The seeds.
        field: Where they stand, for the error.

    Raises:
        InputError: It is not of that form, a range runs backwards, or a seed stands twice.
    """
    seeds: list[int] = []
    for part in text.split(","):
        match = re.fullmatch(r"\s*([0-9]{1,18})\s*(?:-\s*([0-9]{1,18})\s*)?", part)
        if match is None:
            raise InputError(field, text, ALLOWED)
        first, last = int(match[1]), int(match[2] or match[1])
        if last < first or last - first >= MOST_SEEDS:
            raise InputError(field, text, f"{ALLOWED}; ranges run upwards and hold at most {MOST_SEEDS} seeds")
        seeds += range(first, last + 1)
    if len(set(seeds)) != len(seeds):
        raise InputError(field, text, ALLOWED)
    return tuple(seeds)


GpuDemand = Literal["elastic", "at-most", "exact"]
"""Rule for the numbers of GPUs that a job of a trace is offered, by its demand."""


def seeds_text(value: object) -> str:
    text = ",".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
    try:
        parse_seeds(text)
    except InputError as error:
        raise InputError("", value, error.allowed) from None
    return text.strip()


class ComparisonSettings(Settings):
    """Settings of `gpusched compare`; its options take precedence, and nothing else reads them.

    The names of policies are checked where they are used, since policies are not part of a workload.
    """

    policies: Many[str] | None = setting(
        None, "Names of the policies, a list. By default those that `gpusched policies` marks."
    )
    seeds: Annotated[str, BeforeValidator(seeds_text)] | None = setting(
        None, 'Seeds of the workloads. By default "0-39", with a trace "0-4".'
    )
    reference: str | None = setting(None, 'Policy that savings are measured against. By default "edf", else the first.')
    gpu_demands: Many[GpuDemand] | None = setting(
        None, 'Rules for the GPU demand of a trace, a list, each a comparison. By default trace.gpu_demand and "exact".'
    )
    workers: Count | None = setting(None, "Processes. By default one for each core, at most 4.")

    @model_validator(mode="after")
    def _check(self) -> Self:
        check_each_once(self, "gpu_demands", "policies")
        if self.policies is not None and self.reference not in {None, *self.policies}:
            raise InputError("reference", self.reference, f"one of the policies compared: {', '.join(self.policies)}")
        return self


Seeds = Annotated[str, BeforeValidator(seeds_text)]


class TrackHeader(Settings):
    """The facts of a track in addition to its scenario.

    Raises:
        InputError: A value is not allowed, or a seed is among those of two purposes.
    """

    version: Count = setting(1, "Rises when anything changes that its results depend on.")
    training: Seeds = setting("100000-109999", "Seeds that policies and agents may learn from.")
    validation: Seeds = setting("20000-20019", "Seeds to choose by: settings, checkpoints.")
    test: Seeds = setting("30000-30019", "Seeds of the figures that are published.")
    reward_scale_eur: Positive = setting(
        1.0, "Cost that counts as a reward of -1 [€]: a tenth of EDF's on the validation seeds."
    )
    max_episode_steps: Count | None = setting(
        None, "Steps that end an episode: three times the most that random decisions took."
    )
    environments: Literal["all", "adaptation", "none"] = setting(
        "all",
        "Which environments it has: adaptation where configurations of its workloads differ, none where GPU types do.",
    )
    hard: str = Field(description="Why it is hard, a line.")
    weights: str = Field(description="The reason for its tardiness weights, a line.")

    @model_validator(mode="after")
    def _check_seeds(self) -> Self:
        seen: dict[int, str] = {}
        for name in ("training", "validation", "test"):
            text = getattr(self, name)
            for seed in parse_seeds(text, name):
                if seen.setdefault(seed, name) != name:
                    raise InputError(name, text, f"seeds that are not among those for {seen[seed]}")
        return self


class MixtureScenario(Settings):
    """A scenario of a mixture."""

    scenario: str | None = setting(
        None, "Its scenario: a name or a .toml file. By default the one that has the mixture, without it."
    )
    settings: dict[str, Any] = Field(default_factory=dict, description="Settings that differ, by dotted name.")


OF_CLASSES = ("jobs.count", "jobs.applications", "jobs.opportunistic", "arrivals", "epochs", "due_dates", "weights")
"""Settings, and sections of settings, in which job classes may differ."""


class JobClass(Settings):
    """A class of jobs."""

    begins_s: Seconds = setting(0.0, "The time at which its arrivals begin [s].")
    settings: dict[str, Any] = Field(
        default_factory=dict, description=f"Settings that differ, by dotted name: of {', '.join(OF_CLASSES)}."
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        for name in self.settings:
            if name not in OF_CLASSES and name.split(".")[0] not in OF_CLASSES:
                raise InputError(f"settings.{name}", self.settings[name], f"one of {', '.join(OF_CLASSES)}")
        return self


def _conditions(value: object) -> object:
    from gpusched_env.workload.traces.columns import Condition  # noqa: PLC0415 - for polars

    given = as_tuple(value)
    for text in given if isinstance(given, tuple) else ():
        try:
            Condition.parse(text)
        except InputError as error:
            raise InputError("", text, error.allowed) from None
    return given


class TraceReplay(Settings):
    """A trace with arrivals, GPU demand and durations; missing columns are modelled (`docs/traces.md`)."""

    path: str = Field(description="The file; in a scenario file relative to its folder.")
    format: TraceFormat = setting("generic", f"{', '.join(FORMATS[:-1])} or {FORMATS[-1]}.")
    columns: dict[str, str] = Field(
        default_factory=dict, description="Columns whose names differ from the format's: field = column."
    )
    encoding: str = setting(UTF_8, "Encoding of the file, such as cp1252.")
    sort: bool | None = setting(None, "Sort by submission? By default all formats but generic.")
    where: Annotated[tuple[str, ...], BeforeValidator(_conditions)] = setting(
        (), 'Conditions that jobs must meet, such as "gpus > 0" or "state = COMPLETED".'
    )
    skip_invalid: bool | None = setting(
        None,
        "Leave invalid rows out, and count them? By default only jobs without GPUs or that never ran, in all formats "
        "but generic.",
    )
    first: CountFromZero = setting(0, "Jobs to skip, in order of submission.")
    processors_per_gpu: Positive = setting(1.0, "Processors of a trace in SWF that count as one GPU.")
    gpu_demand: GpuDemand = setting(
        "elastic", "What the GPUs that a job asked for mean: elastic (any count), at-most (up to them), exact."
    )
    reference_gpu_type: str | None = setting(None, "GPU type of rows that name none. By default the cluster's first.")
    gpu_types: dict[str, str] = Field(
        default_factory=dict, description="GPU types that the trace calls otherwise: its name = the cluster's type."
    )
    resolution_s: Positive = setting(
        1.0, "Unit of the trace's durations [s]: each is blurred within it, so that none tells more."
    )
    time_scale: Positive | None = setting(None, "Factor on times between submissions: 2 halves the load. By default 1.")
    load: Positive | None = setting(
        None, "Or the load to scale them to: GPU-seconds of the trace / (GPUs x span of submissions)."
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        for field in self.columns:
            if field not in TRACE_FIELDS:
                raise InputError("columns", field, f"the fields {', '.join(TRACE_FIELDS)}")
        try:
            with suppress(UnicodeError):  # two bytes are no text in every encoding
                b"  ".decode(self.encoding)
        except LookupError:  # also of those that encode no text, such as base64
            raise InputError("encoding", self.encoding, "an encoding by its name in Python, such as cp1252") from None
        if self.time_scale is not None and self.load is not None:
            raise InputError("load", self.load, "either load or time_scale")
        return self

    @property
    def selection(self) -> dict[str, Any]:
        """Return the arguments of `read_trace` that select jobs of the file."""
        return {
            name: getattr(self, name)
            for name in ("sort", "first", "where", "skip_invalid", "encoding", "processors_per_gpu")
        }
