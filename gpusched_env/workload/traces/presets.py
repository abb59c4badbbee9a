"""The formats of published traces: the column of each field, and words by which fields are recognised."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field

from gpusched_env.errors import InputError
from gpusched_env.workload.traces import FORMATS, TraceFormat

ROW = "row of the trace"
"""Column with the number of the row: 1 is the first below the header, or the first of a file without one."""


@dataclass(frozen=True, slots=True)
class Preset:
    """The columns of a format.

    Attributes:
        format: Name of the format.
        columns: Column of each field.
        key_columns: Columns by which a file of it is known.
        factors: Columns whose product, times `unit`, is the number of GPUs; those that a file lacks count as 1, but
            for the last. None: the field has a column of its own.
        ones: Factors of which an empty cell counts as 1.
        unit: GPUs that a product of 1 stands for.
        sorts: Whether its jobs are sorted by submission, since files are in another order.
        skips: Whether jobs without GPUs, and jobs that never ran, are left out.
        own_names: Whether fields stand in columns of their own name.
        hint: The command that makes a file with all columns, for errors.
    """

    format: TraceFormat
    columns: Mapping[str, str] = field(default_factory=dict)
    key_columns: frozenset[str] = frozenset()
    factors: tuple[str, ...] = ()
    ones: tuple[str, ...] = ()
    unit: float = 1.0
    sorts: bool = True
    skips: bool = True
    own_names: bool = False
    hint: str = ""

    @property
    def product(self) -> str:
        unit = "" if self.unit == 1.0 else f" / {1.0 / self.unit:g}"
        return f"{' x '.join(self.factors)}{unit}"


_SLURM = {
    "duration_s": "duration", "gpus": "gpu_num", "submission_s": "submit_time", "start_s": "start_time",
    "end_s": "end_time", "user": "user",
}  # fmt: skip

GENERIC = Preset("generic", sorts=False, skips=False, own_names=True)
PHILLY_JSON = Preset(
    "philly",
    {
        "submission_s": "submitted_time", "start_s": "start_time", "end_s": "end_time", "duration_s": "duration",
        "gpus": "gpus", "tenant": "vc", "user": "user",
    },
)  # fmt: skip
SACCT = Preset(
    "sacct",
    {
        "submission_s": "Submit", "start_s": "Start", "end_s": "End", "duration_s": "elapsed_s", "gpus": "gpus",
        "tenant": "Account", "user": "User", "gpu_type": "gpu_type",
    },
    hint="sacct -P -a -o JobID,Submit,Start,End,ElapsedRaw,AllocTRES,State,User,Account prints all",
)  # fmt: skip
JOURNAL = Preset(
    "journal",
    {name: name for name in (
        "submission_s", "start_s", "end_s", "duration_s", "gpus", "gpu_type", "application", "due_s",
        "tardiness_weight_eur_per_s", "tenant", "user",
    )},
)  # fmt: skip
PAI = Preset(
    "pai",
    {**dict.fromkeys(("submission_s", "start_s"), "start_time"), "end_s": "end_time"}
    | {name: name for name in ("user", "gpu_type")},
    frozenset({"plan_gpu", "start_time", "end_time"}),
    factors=("inst_num", "plan_gpu"),
    ones=("inst_num",),
    unit=0.01,
)
GAVEL = Preset("gavel", {"submission_s": "arrival", "duration_s": "duration", "gpus": "scale_factor"})
SWF = Preset(
    "swf",
    {"submission_s": "submit", "start_s": "start", "duration_s": "run", "user": "user", "tenant": "group"},
    factors=("processors",),
)
DLRM = Preset(
    "dlrm",
    {"submission_s": "creation_time", "start_s": "scheduled_time", "end_s": "deletion_time", "gpus": "gpu_request"}
    | {"tenant": "app_name"},
    frozenset({"creation_time", "deletion_time", "gpu_request", "role"}),
)
POLLUX = Preset(
    "pollux",
    {"submission_s": "time", "duration_s": "duration", "gpus": "num_replicas"},
    frozenset({"time", "application", "num_replicas", "batch_size"}),
)
SLURMDBD = Preset(
    "slurmdbd",
    {
        "submission_s": "time_submit", "start_s": "time_start", "end_s": "time_end", "gpus": "gpus", "user": "id_user",
        "tenant": "account", "gpu_type": "gpu_type",
    },
    frozenset({"id_job", "time_submit", "time_start", "time_end"}),
)  # fmt: skip
TABLES = (
    Preset(
        "philly",
        {"timestamp": "timestamp", "duration_s": "duration", "gpus": "num_gpus", "tenant": "cluster"},
        frozenset({"timestamp", "duration", "num_gpus"}),
    ),
    Preset(
        "itp",
        {"submission_s": "submission_time", "duration_s": "duration", "gpus": "num_gpu"},
        frozenset({"submission_time", "duration", "num_gpu"}),
    ),
    Preset(
        "openb",
        {"submission_s": "creation_time", "start_s": "scheduled_time", "end_s": "deletion_time"}
        | {"gpu_type": "gpu_spec"},
        frozenset({"creation_time", "deletion_time", "gpu_milli", "num_gpu"}),
        factors=("gpu_milli", "num_gpu"),
        unit=0.001,
    ),
    DLRM,
    POLLUX,
    SLURMDBD,
    PAI,
    Preset("acme", _SLURM, frozenset({"submit_time", "gpu_num", "type"})),
    Preset("helios", _SLURM | {"tenant": "vc"}, frozenset({"submit_time", "gpu_num"})),
    SACCT,
    GENERIC,
)
"""The formats that are tables with a header, in the order in which they are tried; the last one fits all."""


def check_format(name: object) -> None:
    if not isinstance(name, str) or name not in FORMATS:
        raise InputError("trace.format", name, f"one of {', '.join(FORMATS)}")


def table_preset(name: str) -> Preset:
    return next(preset for preset in (*TABLES, GAVEL, SWF) if preset.format == name)


def preset_of_columns(names: Collection[str]) -> Preset:
    return next(
        preset for preset in TABLES if preset.key_columns <= set(names) and (preset.key_columns or preset is GENERIC)
    )


_BESIDE = (
    "time|at|job|date|utc|unix|stamp|seconds|secs?|hours|num|number|no|count|of|total|req|requested|alloc|allocated|"
    "used|raw|the|s|n|cnt"
)
WORDS = {
    "submission_s": "submission|submit|submitted|arrival|arrived|creation|create|created|queued|enqueued|timestamp",
    "duration_s": "duration|runtime|runtimes|elapsed|walltime|joblength|run|length",
    "gpus": "gpus?|accelerators?|devices|ngpus?",
    "start_s": "start|started|began|begin|scheduled|launched",
    "end_s": "end|ended|finish|finished|completion|completed|deletion|deleted|stop|stopped",
}
"""Words by which columns call a field, as patterns; words beside them say nothing of it (`time_submit`)."""


def likely_column(field: str, names: Collection[str], fits: Callable[[str, str], bool] | None = None) -> str | None:
    """Return the first column whose whole name is one for a field; None if none is.

    Args:
        fits: Whether the values of a column (second) can be those of a field (first); by default all can.
    """
    named = re.compile(f"(?:{_BESIDE})*(?:{WORDS[field]})(?:{_BESIDE})*")
    alike = (name for name in names if named.fullmatch(re.sub(r"[^a-z]", "", name.lower())))
    return next((name for name in alike if fits is None or fits(field, name)), None)


def likely_gpu_type(spelling: str, gpu_types: Collection[str]) -> str | None:
    """Return the GPU type that a spelling of a trace has as one of its words, such as H100 in nvidia_h100_80gb.

    Names that are merely alike, such as H100 and V100, are different types; None if no word is a type.
    """
    words = re.split(r"[^a-z0-9]+", spelling.lower())
    return next((name for name in gpu_types if name.lower() in words), None)


def settings_for(fields: Sequence[str], names: Sequence[str], fits: Callable[[str, str], bool] | None = None) -> str:
    """Write the options that name a column for each field: the likely one, or COLUMN; `fits` as for `likely_column`.

    A duration that no column is called like is taken from start and end, where there are such columns.
    """
    left, said = list(names), []
    for needed in fields:
        found = [(needed, likely_column(needed, left, fits))]
        if needed == "duration_s" and found[0][1] is None:
            ends = [(other, likely_column(other, left, fits)) for other in ("start_s", "end_s")]
            found = ends if all(name for _, name in ends) else found
        for each, name in found:
            left = [other for other in left if other != name]
            said.append(f"--set trace.columns.{each}={shell_word(name or 'COLUMN')}")
    return " ".join(said)


def shell_word(name: str) -> str:
    """Return a name as a shell takes it: in quotes if there are signs in it."""
    return name if re.fullmatch(r"[\w.:=-]+", name) else f"'{name}'"
