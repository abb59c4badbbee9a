"""What jobs of a cluster have done, and what was seen of them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Progress:
    """What a job reported last.

    Attributes:
        epochs: Epochs done, ≥ 0.
        at_s: When it said so, a Unix time [s].
    """

    epochs: float
    at_s: float


@dataclass(frozen=True, slots=True)
class Seen:
    """What a driver saw of a job, as Unix times [s]; None: nothing.

    Attributes:
        submit_s: When it was submitted: Slurm's own time of it moves whenever it is put back into the queue.
        first_start_s: When it first started.
        since_s: Since when it has held what it holds.
        ready_s: From when on it makes progress with it.
        last_nodes: Nodes where it was last ready before what it holds now.
    """

    submit_s: float | None = None
    first_start_s: float | None = None
    since_s: float | None = None
    ready_s: float | None = None
    last_nodes: tuple[str, ...] = ()
