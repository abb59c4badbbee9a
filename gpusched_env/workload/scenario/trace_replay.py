"""The `trace` section of a scenario: which trace is replayed, and how it is read."""

from __future__ import annotations

from contextlib import suppress
from typing import Annotated, Self

from pydantic import BeforeValidator, Field, model_validator

from gpusched_env.errors import InputError
from gpusched_env.workload.scenario.comparison import GpuDemand
from gpusched_env.workload.scenario.settings import CountFromZero, Positive, Settings, as_tuple
from gpusched_env.workload.traces.columns import TRACE_FIELDS
from gpusched_env.workload.traces.presets import FORMATS, TraceFormat
from gpusched_env.workload.traces.read import Selection
from gpusched_env.workload.traces.rows import UTF_8
from gpusched_env.workload.traces.where import Condition


def _conditions(value: object) -> object:
    """Turn a list of conditions into a tuple; each must be one."""
    given = as_tuple(value)
    for text in given if isinstance(given, tuple) else ():
        try:
            Condition.parse(text)
        except InputError as error:
            raise InputError("", text, error.allowed) from None
    return given


class TraceReplay(Settings):
    """A trace that gives arrivals, GPU demand and durations; what it lacks is modelled (`docs/traces.md`)."""

    path: str = Field(description="The file; in a scenario file relative to its folder.")
    format: TraceFormat = Field(default="generic", description=f"{', '.join(FORMATS[:-1])} or {FORMATS[-1]}.")
    columns: dict[str, str] = Field(
        default_factory=dict, description="Columns whose names differ from the format's: field = column."
    )
    encoding: str = Field(default=UTF_8, description="Encoding of the file, such as cp1252.")
    sort: bool | None = Field(default=None, description="Sort by submission? By default all formats but generic.")
    where: Annotated[tuple[str, ...], BeforeValidator(_conditions)] = Field(
        default=(), description='Conditions that jobs must meet, such as "gpus > 0" or "state = COMPLETED".'
    )
    skip_invalid: bool | None = Field(
        default=None,
        description="Leave invalid rows out, and count them? By default only jobs without GPUs or that never ran, in "
        "all formats but generic.",
    )
    first: CountFromZero = Field(default=0, description="Jobs to skip, in order of submission.")
    gpu_demand: GpuDemand = Field(
        default="elastic",
        description="What the GPUs that a job asked for mean: elastic (any count), at-most (up to them), exact.",
    )
    reference_gpu_type: str | None = Field(
        default=None, description="GPU type of rows that name none. By default the cluster's first."
    )
    gpu_types: dict[str, str] = Field(
        default_factory=dict, description="GPU types that the trace calls otherwise: its name = the cluster's type."
    )
    resolution_s: Positive = Field(
        default=1.0,
        description="Unit of the trace's durations [s]: each is blurred within it, so that none tells more.",
    )
    time_scale: Positive | None = Field(
        default=None, description="Factor on times between submissions: 2 halves the load. By default 1."
    )
    load: Positive | None = Field(
        default=None,
        description="Or the load to scale them to: GPU-seconds of the trace / (GPUs x span of submissions).",
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
    def selection(self) -> Selection:
        """Say which jobs of the file are taken."""
        return Selection(self.sort, self.first, self.where, self.skip_invalid, self.encoding)
