"""An answer of a published program beside ours, and where each kind of them is read."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Protocol, cast

from gpusched_env.errors import InputError
from gpusched_reproductions.data_sources import where_from

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

NAMES: tuple[str, ...] = ("gpuspb", "hived", "gavel", "muri", "gaia", "slurm", "drive")
"""The kinds of answers; `NAME` is read by the module of this package with that name."""

MADE = ("slurm", "drive")
"""Kinds whose files need not exist: their answers are made then."""
TABLES = ("muri",)
"""Kinds of which another table of answers than that of the folder can be given."""


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer of the published program, and ours.

    Attributes:
        case: What was asked: file, instance or episode, and policy or step.
        published: The published answer, as a text.
        ours: Our answer, as a text.
        agrees: Whether they agree, within the tolerance that the kind of answers states.
    """

    case: str
    published: str
    ours: str
    agrees: bool


class _Kind(Protocol):
    def answers(self, paths: Sequence[Path], *table: Path) -> Iterator[Answer]: ...  # pragma: no cover


def answers(name: str, paths: Sequence[Path], table: Path | None = None) -> Iterator[Answer]:
    """Yield every published answer of some files beside ours.

    Args:
        name: The kind of answers, one of `NAMES`.
        paths: Files of that kind, or folders of them.
        table: Another table of answers than that of the folder, for a kind of `TABLES`.

    Raises:
        InputError: There is no such kind, or a file is not there, or not of this kind.
    """
    if name not in NAMES:
        raise InputError("name", name, f"one of {', '.join(NAMES)}")
    if table is not None and name not in TABLES:
        raise InputError("--answers", str(table), f"only with {', '.join(TABLES)}")
    for path in paths:
        if not path.exists() and name not in MADE:
            raise InputError("files", str(path), f"a file or folder that exists{where_from(path)}")
    kind = cast("_Kind", import_module(f"{__name__.rpartition('.')[0]}.{name}"))
    return kind.answers(paths) if table is None else kind.answers(paths, table)
