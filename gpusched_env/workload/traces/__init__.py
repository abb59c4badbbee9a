"""Traces of clusters: their columns, what their jobs demand, and how they are replayed.

Here is what scenarios name of their files: formats, the fields of a job, and the usual encoding.
"""

from __future__ import annotations

from typing import Literal, get_args

TraceFormat = Literal[
    "philly", "itp", "helios", "acme", "pai", "openb", "dlrm", "gavel", "pollux", "swf", "sacct", "slurmdbd", "journal",
    "generic",
]  # fmt: skip
FORMATS: tuple[TraceFormat, ...] = get_args(TraceFormat)
UTF_8 = "utf-8"

TRACE_FIELDS = (
    "submission_s",
    "timestamp",
    "duration_s",
    "gpus",
    "due_s",
    "tardiness_weight_eur_per_s",
    "application",
    "start_s",
    "end_s",
    "tenant",
    "user",
    "gpu_type",
)
"""Fields of a job in a trace; submission_s and timestamp are two names of one."""
