"""What is to be known of a shipped policy beside its rounds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Callable

    from gpusched_env.simulator import Policy

Origin = Literal["published", "ours"]


@dataclass(frozen=True, slots=True)
class ShippedPolicy:
    """A policy that has a name, and what those who list policies ask of it.

    Attributes:
        make: Makes it with its defaults.
        line: Says what it does.
        origin: "published" if it does what the authors of the STS method published under that name, but for what its
            line says; else "ours".
        usual: Whether a comparison that names no policies has it.
        slow: Whether it tries a thousand constructions a round: it runs on fewer seeds where clusters are large.
        compiled: Whether its rounds are compiled as a whole; else they take minutes where clusters are large.
        teacher: Its place among the teachers of an agent's warm start, from 1, the best first; None if it is none.
        style: Its place among the colours and marks of figures, from 0; with None it gets what is left.
        ablation_of: The policy that it is but for one part; no list of policies has such a one.
        replays: Whether it replays what really ran: only traces with start times have that, so no list that is run on
            any workload has it.
        worst_case: The policy that it is but for planning on mean or expected instead of worst-case times.
    """

    make: Callable[[], Policy]
    line: str
    origin: Origin = "published"
    usual: bool = True
    slow: bool = False
    compiled: bool = True
    teacher: int | None = None
    style: int | None = None
    replays: bool = False
    ablation_of: str | None = None
    worst_case: str | None = None
