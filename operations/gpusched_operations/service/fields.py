"""The fields of a request as pydantic models, the sizes that a service takes, and what it says is wrong with one."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    Tag,
    ValidationError,
    ValidationInfo,
    create_model,
    field_validator,
    model_validator,
)

from gpusched_env.errors import SHOWN, InputError
from gpusched_env.formats.instance_file import JOB_LABELS, NODE_LABELS
from gpusched_env.model import checks
from gpusched_env.model.checks import LONGEST_S
from gpusched_env.model.configuration import MOST_GPUS
from gpusched_env.workload import OwnGpuType
from gpusched_env.workload.scenario.settings import dotted
from gpusched_operations.service.gpu_names import built_in_gpu_type, known_type

MOST_JOBS, MOST_NODES, MOST_CONFIGURATIONS, MOST_GPU_TYPES, MOST_BINS = 4_000, 4_000, 1_000, 100, 1_000
"""Sizes that requests may have, which the page of the interface names; `RequestLimits` may only say less."""

MOST_CELLS = 4_000_000
"""Most jobs times configurations: a request may name times once and refer to them thousands of times."""


WAITING, NO_WAITING = "sts-x", "sts-x:no-waiting"
"""The policies of live decisions where none is named."""


MOST_RECEIVING = 8
"""Most bytes of bodies that are being received at one time, in largest requests."""


@dataclass(frozen=True, slots=True)
class RequestLimits:
    """Limits that the operator sets.

    Args:
        request_bytes: Largest request [bytes], ≥ 1.
        jobs: Most jobs of a request, from 1 to `MOST_JOBS`.
        nodes: Most nodes of a request, from 1 to `MOST_NODES`.
        decision_s: Longest time from the request to its answer, once a worker has it [s], > 0.
        waiting: Requests that may wait for a worker, ≥ 0; more are turned away.
        receiving_s: Longest time to receive the header of a request, its body, and to send its answer, each [s], > 0.
        waiting_s: Longest time that a request waits for a worker [s], > 0.
        connections: Most open connections, ≥ 1; beyond, those without a request are ended, and requests turned away.

    Raises:
        InputError: One of them is out of its range.
    """

    request_bytes: int = 16 * 2**20
    jobs: int = MOST_JOBS
    nodes: int = MOST_NODES
    decision_s: float = 10.0
    waiting: int = 64
    receiving_s: float = 30.0
    waiting_s: float = 10.0
    connections: int = 256

    def __post_init__(self) -> None:
        checks.whole("--max-bytes", self.request_bytes)
        for name, value, most in (("--max-jobs", self.jobs, MOST_JOBS), ("--max-nodes", self.nodes, MOST_NODES)):
            if checks.whole(name, value) > most:
                raise InputError(name, value, f"a whole number from 1 to {most:,}")
        checks.duration("--timeout", self.decision_s)
        checks.whole("--max-waiting", self.waiting, 0)
        checks.duration("--receive-timeout", self.receiving_s)
        checks.duration("waiting_s", self.waiting_s)
        checks.whole("--max-connections", self.connections)

    @property
    def answered_s(self) -> float:
        """Longest time from the header of a request until its answer is sent [s]."""
        return 2.0 * self.receiving_s + self.waiting_s + self.decision_s


DEFAULT = RequestLimits()


MARK = "~"
"""Begins the tags of unions: they are no part of a field's path."""

LARGEST = 1e12
"""Largest number of anything: sums and products of a few are still finite."""

Name = Annotated[str, Field(min_length=1, max_length=200)]
NotNegative = Annotated[float, Field(ge=0.0, le=LARGEST, allow_inf_nan=False)]
Positive = Annotated[float, Field(gt=0.0, le=LARGEST, allow_inf_nan=False)]
Share = Annotated[float, Field(ge=0.0, le=1.0, allow_inf_nan=False)]
Gpus = Annotated[int, Field(ge=1, le=MOST_GPUS)]
Time = Annotated[float, Field(ge=0.0, le=LONGEST_S, allow_inf_nan=False)]


LISTED = Field(strict=False)
"""Of a tuple: it may be a list, as in JSON; what it holds is checked as strictly."""


def _kind(value: Any) -> str | None:
    if isinstance(value, str):
        return f"{MARK}name"
    if isinstance(value, list | tuple):
        return f"{MARK}list"
    return f"{MARK}object" if isinstance(value, dict | BaseModel) else None


class Fields(BaseModel):
    """Fields of a JSON object; unknown ones are refused, and so is a number that is written as a text."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


_LABEL_TYPES: dict[type, Any] = {
    bool: bool,
    int: Annotated[int, Field(ge=0, le=2**63 - 1)],
    float: NotNegative,
    str: Annotated[str, Field(max_length=200)],
}


def _labels(of: dict[str, tuple[type, str]]) -> Any:
    """Make the model of the labels that the instance file has too: of each its kind and description."""
    made: dict[str, Any] = {
        name: (_LABEL_TYPES[kind], Field(default=kind(), description=said)) for name, (kind, said) in of.items()
    }
    return create_model("Labels", __base__=Fields, **made)


if TYPE_CHECKING:
    _JobLabels: TypeAlias = Fields
    _NodeLabels: TypeAlias = Fields
else:
    _JobLabels, _NodeLabels = _labels(JOB_LABELS), _labels(NODE_LABELS)


class NodeFields(_NodeLabels):
    """A node that can be used now: leave out those that are down or drained."""

    name: Name = Field(description="Name of the node; answers use it.")
    gpu_type: Name = Field(description="Name of its GPU type.")
    gpus: Gpus = Field(description="Number of its GPUs.")


_WAYS, _LIST, _OBJECT = Discriminator(_kind), Tag(f"{MARK}list"), Tag(f"{MARK}object")
ByName = Annotated[Name, Tag(f"{MARK}name")]
GpuTypeFields = Annotated[ByName | Annotated[OwnGpuType, _OBJECT], _WAYS]


class TenantFields(Fields):
    """A tenant and what it was promised."""

    name: Name
    cells: list[Annotated[tuple[Name, Gpus, Gpus], LISTED]] = Field(
        default=[],
        max_length=1000,
        description="GPU type, GPUs and number of its cells; they add up to its quota. Without tenancy, none.",
    )


class ClusterFields(Fields):
    """The cluster as it is now."""

    gpu_types: list[GpuTypeFields] = Field(
        min_length=1,
        max_length=MOST_GPU_TYPES,
        description="GPU types: names of built-in ones (such as V100), or with figures of your own. A name that has a "
        "built-in one as a word, such as NVIDIA-A100-SXM4-80GB, is a type like that one.",
    )
    nodes: list[NodeFields] = Field(min_length=1, max_length=MOST_NODES)
    tenants: list[TenantFields] = Field(default=[], max_length=1000, description="Who shares the cluster.")
    tenancy: Literal["none", "quota", "private"] = Field(
        default="none", description="What tenants are to the cluster: names only, a quota each, or nodes of their own."
    )

    @field_validator("gpu_types")
    @classmethod
    def _like_built_in(cls, given: list[str | OwnGpuType]) -> list[str | OwnGpuType]:
        like = [built_in_gpu_type(each) if isinstance(each, str) else None for each in given]
        return [
            each if isinstance(each, OwnGpuType) or source in {None, each} else OwnGpuType(name=each, like=source)
            for each, source in zip(given, like, strict=True)
        ]

    @field_validator("nodes")
    @classmethod
    def _of_these_types(cls, given: list[NodeFields], info: ValidationInfo) -> list[NodeFields]:
        known = names_of(info.data.get("gpu_types", ()))
        return [
            node if node.gpu_type in known else node.model_copy(update={"gpu_type": known_type(node.gpu_type, known)})
            for node in given
        ]


def names_of(gpu_types: Iterable[str | OwnGpuType]) -> tuple[str, ...]:
    return tuple(each if isinstance(each, str) else each.name for each in gpu_types)


class ConfigurationFields(Fields):
    """A configuration that jobs may be given."""

    gpu_type: Name
    gpus_per_node: Gpus = 1
    nodes: Gpus = 1
    share: float = Field(default=1.0, gt=0.0, le=1.0)
    priority: int = Field(default=0, ge=0)
    spread: bool = Field(default=False, description="Whether `nodes` is a number of GPUs, on any nodes.")
    power_limit: float = Field(default=1.0, gt=0.0, le=1.0, description="Most power, as a part of that of a busy GPU.")


TimesList: TypeAlias = Annotated[list[Positive | None], Field(max_length=MOST_CONFIGURATIONS)]


def _by_configuration(value: Any) -> Any:
    """Return times by GPU type and GPUs, as scenarios have them, as times by name of the configuration."""
    if not isinstance(value, dict):
        return value
    found: dict[str, Any] = {}
    for name, times in value.items():
        sizes = dict(enumerate(times, start=1)) if isinstance(times, list) else times
        for size, seconds in sizes.items() if isinstance(sizes, dict) else [(None, times)]:
            nodes, star, gpus = str(size).rpartition("*")
            whole = name if size is None else f"{nodes}{star}{name}x{gpus}"
            if whole in found:
                raise InputError(whole, seconds, "each configuration once")
            found[whole] = seconds
    return found


TimesObject: TypeAlias = Annotated[
    dict[str, Positive], BeforeValidator(_by_configuration), Field(max_length=MOST_CONFIGURATIONS)
]
OwnTimes = Annotated[Annotated[TimesList, _LIST] | Annotated[TimesObject, _OBJECT], _WAYS]
Times = Annotated[ByName | Annotated[TimesList, _LIST] | Annotated[TimesObject, _OBJECT], _WAYS]


class DistributionFields(Fields):
    """The distribution of the epochs that a job needs, in one of four ways."""

    masses: list[NotNegative] | None = Field(
        default=None, max_length=MOST_BINS, description="Weights of ending in each bin of (0, max_epochs]."
    )
    survival: list[Share] | None = Field(
        default=None, max_length=MOST_BINS, description="Probability of needing more, on each bin; from 1 downwards."
    )
    edges: list[Share] | None = Field(
        default=None,
        max_length=MOST_BINS + 1,
        description="Edges of the bins as fractions of the maximum epochs, from 0 to 1; by default equal bins.",
    )
    quantiles: list[Annotated[tuple[Share, Share], LISTED]] | None = Field(
        default=None,
        max_length=MOST_BINS,
        description="Pairs (probability, fraction of the maximum epochs that is enough with it), both rising, the "
        "last (1, 1) or added; the probability between two is spread over the end of that piece.",
    )
    history_epochs: list[Positive] | None = Field(
        default=None, max_length=100_000, description="Epochs that former runs needed: their histogram is taken."
    )
    max_epochs: Positive | None = Field(
        default=None, description="Maximum epochs that the history is of; by default the job's, else the application's."
    )
    bins: int = Field(default=100, ge=1, le=MOST_BINS, description="Equal bins for the history.")


Distribution = Annotated[ByName | Annotated[DistributionFields, _OBJECT], _WAYS]


class ApplicationFields(Fields):
    """What jobs of one application have in common; a job's own fields come first."""

    seconds_per_epoch: Times | None = Field(
        default=None, description="As that of a job; by default those of the built-in application of this name."
    )
    like: Name | None = Field(default=None, description="Name of the built-in application whose figures it has.")
    max_epochs: Positive | None = None
    memory_gib: NotNegative | None = None
    distribution: Distribution | None = None
    restart_s: Time | None = None
    saved_kw: list[NotNegative] | None = Field(
        default=None,
        max_length=MOST_CONFIGURATIONS,
        description="What the GPUs of each of `configurations` draw less than full busy ones [kW], on a share as whole "
        "GPUs; by default what their power limit takes.",
    )


class RunningFields(Fields):
    """What a job holds now."""

    configuration: Name = Field(description="Name of the configuration, such as V100x4.")
    nodes: list[Name] = Field(min_length=1, max_length=MOST_NODES, description="The node, or all of several.")
    gpu: int | None = Field(default=None, ge=0, description="Number of the shared GPU on the node; else none.")
    since_s: Time = Field(description="Since when it has held this, unchanged [s].")
    ready_s: Time | None = Field(
        default=None, description="From when on it makes progress with it [s]; by default `since_s`."
    )


class JobFields(_JobLabels):
    """A job that is submitted and not complete."""

    id: Name = Field(description="Its name; answers use it.")
    submission_s: Time = Field(description="When it was submitted [s], on the clock of `now_s`.")
    due_s: Time = Field(description="Due date [s].")
    tardiness_weight_eur_per_s: NotNegative = Field(description="What a second of delay costs [€/s].")
    application: Name | None = Field(
        default=None, description="Name of an entry of `applications`, or of a built-in application."
    )
    max_epochs: Positive | None = Field(default=None, description="Most epochs that it needs.")
    epochs_done: NotNegative | None = Field(default=None, description="Epochs done until now.")
    share_done: Share | None = Field(default=None, description="Or the part of `max_epochs` done until now.")
    seconds_per_epoch: Times | None = Field(
        default=None,
        description="Seconds per epoch: by name of the configuration (V100x4), or by GPU type as in a scenario (a list "
        'for 1, 2, ... GPUs, or { "4": 90, "2*8": 7 }), or one for each of `configurations` (null where it may not use '
        "it), or the name of an entry of `times`.",
    )
    distribution: Distribution | None = Field(
        default=None, description="How many epochs it may need: given here, or the name of an entry of `distributions`."
    )
    memory_gib: NotNegative | None = Field(default=None, description="Memory that it needs on each GPU [GiB].")
    restart_s: Time | None = Field(default=None, description="Seconds without progress after a change.")
    start_s: Time = Field(default=0.0, description="Seconds without progress at its first start.")
    resume_s: Time | None = Field(
        default=None,
        description="Seconds without progress where it goes on on the nodes where it was last ready. If any job has "
        "it, all changes are told apart by distance.",
    )
    tenant: Name | None = Field(default=None, description="Name of its tenant.")
    running: RunningFields | None = Field(default=None, description="What it holds now; null: it waits.")
    started_s: Time | None = Field(
        default=None, description="When it first started [s]. By default: never, unless it runs or has epochs done."
    )
    state_on: list[Name] | None = Field(
        default=None,
        max_length=MOST_NODES,
        description="Nodes where it was last ready before what it holds now: there its state lies.",
    )


def default_policy(series: Any) -> str:
    """Return the policy of live decisions where none is named: one in which jobs wait where the price changes.

    Args:
        series: The field `prices.series`, not checked yet; None: one price.
    """
    prices = series.get("eur_per_kwh") if isinstance(series, dict) else None
    return WAITING if isinstance(prices, list) and any(each != prices[0] for each in prices) else NO_WAITING


class PriceFields(Fields):
    """What energy costs."""

    energy_eur_per_kwh: NotNegative = 0.172
    pue: float = Field(
        default=1.58, ge=1.0, le=LARGEST, allow_inf_nan=False, description="Power usage effectiveness of the site."
    )
    gpu_hour_eur: NotNegative = Field(default=0.0, description="Price of a GPU for an hour for which it is held [€/h].")
    series: dict[str, Any] | None = Field(
        default=None,
        description="Prices by period, as the field `prices` of an instance file, on the clock of `now_s`: {start_s, "
        "eur_per_kwh} and the optional g_per_kwh, pue, published_s, demand, monday_s. Policies see what is published "
        "by then; other values are not read. Costs in answers are at energy_eur_per_kwh, the reference.",
    )
    peak_kw: NotNegative = Field(
        default=0.0, description="Largest mean power of an interval of the demand charge in this month so far [kW]."
    )


class SiteFields(Fields):
    """The cap on the power of all nodes now, without what the PUE adds, and the next one if it is known."""

    cap_kw: Positive
    next_cap_s: Time | None = Field(default=None, description="When the cap changes next, on the clock of `now_s`.")
    next_cap_kw: Positive | None = Field(default=None, description="The cap from then on.")
    soft_eur_per_kwh: Positive | None = Field(
        default=None, description="What a kWh above the cap costs in addition [€/kWh]; null: never above it."
    )


class DecideRequest(Fields):
    """All that a decision depends on: the service keeps nothing between two requests."""

    policy: Name = Field(
        default=NO_WAITING,
        description="Name of a policy of `GET /v1/policies`. By default sts-x where prices change, else STS-X in which "
        "no job waits.",
    )
    now_s: Time = Field(description="The present time [s], on any clock that all times of the request have.")
    cluster: ClusterFields
    jobs: list[JobFields] = Field(max_length=MOST_JOBS, description="The jobs submitted and not complete.")
    configurations: list[Annotated[ByName | Annotated[ConfigurationFields, _OBJECT], _WAYS]] = Field(
        default=[],
        max_length=MOST_CONFIGURATIONS,
        description="What jobs may be given, by name (V100x4, 2*V100x8 for whole nodes, V100x0.5 for a share, "
        "V100x0.6! for one with priority, V100x4@0.7 for a power limit) or fields. By default every "
        "number of GPUs of a node.",
    )
    prices: PriceFields = PriceFields()
    site: SiteFields | None = Field(default=None, description="The cap on the power of all nodes; null: none.")
    restart_s: Time = Field(default=0.0, description="Seconds without progress after a change, of jobs that say none.")
    applications: dict[Name, ApplicationFields] = Field(default={}, max_length=MOST_JOBS)
    times: dict[Name, OwnTimes] = Field(
        default={}, max_length=MOST_JOBS, description="Seconds per epoch by name: said once, for many jobs."
    )
    distributions: dict[Name, DistributionFields] = Field(default={}, max_length=MOST_JOBS)
    interference: dict[str, Any] | None = Field(
        default=None,
        description="How jobs on one GPU slow each other: {slowdown} or {utilisation, overhead, filled, least_speed, "
        "idle_power_w, fastest}, as in an instance file without profile_s; rows are GPU types, columns `applications`.",
    )
    synchronisation: dict[str, Any] | None = Field(
        default=None,
        description="How jobs on several nodes synchronise: {compute_s, sync_s, cpu_machines} and the optional fields "
        "of an instance file.",
    )
    mechanisms: dict[Name, dict[str, Any]] = Field(
        default={},
        max_length=MOST_CONFIGURATIONS,
        description="Fields of mechanisms of other packages, by their names, as in an instance file; the service must "
        "have imported them.",
    )
    seed: int = Field(default=0, ge=0, lt=2**63, description="Seed of a policy that draws, where `memory` is null.")
    idle_rounds: int = Field(
        default=0, ge=0, lt=2**31, description="Decisions in a row after which nothing ran; agents then stop waiting."
    )
    memory: str | None = Field(
        default=None, description="`memory` of the answer before, as it is; null for the first, or to begin again."
    )
    as_simulated: bool = Field(
        default=False,
        description="Whether STS-X may defer jobs while GPUs are idle though that saves nothing, as in the simulator.",
    )

    @model_validator(mode="before")
    @classmethod
    def _with_policy(cls, data: Any) -> Any:
        if not isinstance(data, dict) or "policy" in data:
            return data
        prices = data.get("prices")
        return data | {"policy": default_policy(prices.get("series") if isinstance(prices, dict) else None)}


WAYS = "a name, or a JSON object (or list) as the field takes it"
_PHRASES = {
    "bool_type": "true or false",
    "dict_type": "a JSON object",
    "float_type": "a finite number",
    "finite_number": "a finite number",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "list_type": "a JSON list",
    "missing": "a value: the field is missing",
    "model_attributes_type": "a JSON object",
    "model_type": "a JSON object",
    "string_type": "a text",
    "tuple_type": "a JSON list",
    "extra_forbidden": "no such field",
    "union_tag_invalid": WAYS,
    "union_tag_not_found": WAYS,
    "greater_than": "a number > {gt:g}",
    "greater_than_equal": "a number >= {ge:g}",
    "less_than_equal": "a number <= {le:g}",
    "too_long": "at most {max_length:,} entries",
    "too_short": "at least {min_length} entries",
    "string_too_long": "a text of at most {max_length} characters",
    "string_too_short": "a text that is not empty",
}
"""What is allowed, by the kind of error and with the figures that pydantic gives."""


def input_error(error: ValidationError) -> InputError:
    """Translate the first thing that pydantic found into the project's own error."""
    first = error.errors(include_url=False)[0]
    place = tuple(part for part in first["loc"] if part != "[key]" and not str(part).startswith(MARK))
    cause = first.get("ctx", {}).get("error")
    if isinstance(cause, InputError):
        return InputError(dotted((*place, cause.field)), cause.value, cause.allowed)
    if first["type"] == "json_invalid":
        return InputError("body", first["ctx"]["error"], "one whole JSON object, in UTF-8")
    value = None if first["type"] == "missing" else first["input"]
    allowed = _PHRASES.get(first["type"], "{said}").format(said=first["msg"], **first.get("ctx", {}))
    if first["type"] == "literal_error":
        allowed = f"one of {first['ctx']['expected'].replace(' or ', ', ')}"
    return InputError(dotted(place) or "body", value, allowed)


def error_body(field: str | None, value: Any, allowed: str) -> bytes:
    """Return the JSON of an error: a line to read, and its parts; a long value is cut."""
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        text = value = str(value)
    shown = value if len(text) <= SHOWN else f"{text[: SHOWN // 2]}…{text[-(SHOWN // 2 - 1) :]}"
    line = f"{field} = {json.dumps(shown, ensure_ascii=False)}; allowed: {allowed}" if field else allowed
    document = {"error": line, "field": field, "value": shown, "allowed": allowed}
    return json.dumps(document, ensure_ascii=False, allow_nan=False).encode()
