"""The formats of traces as they are published: where each says what."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, get_args

from gpusched_env.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

TraceFormat = Literal["philly", "itp", "helios", "acme", "pai", "openb", "sacct", "generic"]
FORMATS: tuple[TraceFormat, ...] = get_args(TraceFormat)


@dataclass(frozen=True, slots=True)
class Preset:
    """Where a format says what.

    Attributes:
        format: Name of the format.
        columns: Column of each field.
        told_by: Columns by which a file of it is known.
        factors: Columns whose product, times `unit`, is the number of GPUs; those that a file lacks count as 1, but
            for the last. None: the field has a column of its own.
        ones: Factors of which an empty cell counts as 1.
        unit: GPUs that a product of 1 stands for.
        sorts: Whether its jobs are sorted by submission, since files are in another order.
        skips: Whether jobs without GPUs, and jobs that never ran, are left out.
        own_names: Whether fields stand in columns of their own name.
        hint: What makes a file with all columns, for errors.
    """

    format: TraceFormat
    columns: Mapping[str, str] = field(default_factory=dict)
    told_by: frozenset[str] = frozenset()
    factors: tuple[str, ...] = ()
    ones: tuple[str, ...] = ()
    unit: float = 1.0
    sorts: bool = True
    skips: bool = True
    own_names: bool = False
    hint: str = ""

    @property
    def product(self) -> str:
        """Name the column that is made of `factors`."""
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
PAI = Preset(
    "pai",
    {**dict.fromkeys(("submission_s", "start_s"), "start_time"), "end_s": "end_time"}
    | {name: name for name in ("user", "gpu_type")},
    frozenset({"plan_gpu", "start_time", "end_time"}),
    factors=("inst_num", "plan_gpu"),
    ones=("inst_num",),
    unit=0.01,
)
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
    PAI,
    Preset("acme", _SLURM, frozenset({"submit_time", "gpu_num", "type"})),
    Preset("helios", _SLURM | {"tenant": "vc"}, frozenset({"submit_time", "gpu_num"})),
    SACCT,
    GENERIC,
)
"""The formats that are tables with a header, in the order in which they are tried; the last one fits all."""


def check_format(name: object) -> None:
    """Check that there is such a format.

    Raises:
        InputError: There is none.
    """
    if not isinstance(name, str) or name not in FORMATS:
        raise InputError("trace.format", name, f"one of {', '.join(FORMATS)}")


def table_preset(name: str) -> Preset:
    """Give the format of this name as a table with a header."""
    return next(preset for preset in TABLES if preset.format == name)


def preset_of_columns(names: Collection[str]) -> Preset:
    """Tell a format by the columns of a table."""
    return next(preset for preset in TABLES if preset.told_by <= set(names) and (preset.told_by or preset is GENERIC))
