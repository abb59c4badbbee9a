"""Which column may be which field, and which name which GPU type: for errors that can be pasted back corrected."""

from __future__ import annotations

import re
from difflib import SequenceMatcher
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

WORDS = {
    "submission_s": ("submission", "submit", "submittime", "arrival", "creation", "created", "queuedat", "timestamp"),
    "duration_s": ("duration", "runtime", "elapsed", "walltime", "joblength", "runseconds"),
    "gpus": ("gpus", "gpunum", "numgpus", "ngpu", "gpucount", "accelerators", "devices"),
    "start_s": ("start", "starttime", "began", "begin", "scheduledtime", "launched"),
    "end_s": ("end", "endtime", "finish", "finished", "completion", "deletiontime", "stop"),
}
"""Words by which columns call a field, without what stands between their parts."""

ALIKE = 0.75


def likely_column(field: str, names: Collection[str]) -> str | None:
    """Give the column that is called most like a field; None if none is.

    Args:
        field: A field of `WORDS`.
        names: The columns to choose from.
    """
    scores = [(max(_alike(name, word) for word in WORDS[field]), name) for name in names]
    best, name = max(scores, key=lambda item: item[0], default=(0.0, ""))
    return name if best >= ALIKE else None


def likely_gpu_type(spelling: str, gpu_types: Collection[str]) -> str | None:
    """Return the GPU type that a spelling of a trace has as one of its words, such as H100 in nvidia_h100_80gb.

    Names that are merely alike, such as H100 and V100, are different types; None if no word is a type.
    """
    words = re.split(r"[^a-z0-9]+", spelling.lower())
    return next((name for name in gpu_types if name.lower() in words), None)


def settings_for(fields: Sequence[str], names: Sequence[str]) -> str:
    """Write the options that name a column for each field: the likely one, or COLUMN.

    A duration that no column is called like is taken from start and end, where there are such columns.
    """
    left, said = list(names), []
    for field in fields:
        found = [(field, likely_column(field, left))]
        if field == "duration_s" and found[0][1] is None:
            ends = [(other, likely_column(other, left)) for other in ("start_s", "end_s")]
            found = ends if all(name for _, name in ends) else found
        for each, name in found:
            left = [other for other in left if other != name]
            said.append(f"--set trace.columns.{each}={shell_word(name or 'COLUMN')}")
    return " ".join(said)


def _alike(name: str, word: str) -> float:
    name = re.sub(r"[^a-z]", "", name.lower())
    if not name:
        return 0.0
    within = 0.8 if word in name else 0.0
    return max(within, SequenceMatcher(None, name, word).ratio())


def shell_word(name: str) -> str:
    """Return a name as a shell takes it: in quotes if there are signs in it."""
    return name if re.fullmatch(r"[\w.:=-]+", name) else f"'{name}'"
