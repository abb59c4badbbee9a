"""What a policy that nobody trusts may take of a machine."""

from __future__ import annotations

from dataclasses import dataclass

from gpusched_env.errors import InputError
from gpusched_env.model import checks

GIB = 2**30
LEAST_GIB, MOST_GIB = 2.0, 1024.0


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of every process in which such a policy decides.

    Args:
        memory_gib: Memory that the process may ask for, which is more than it uses: from 2 to 1,024 GiB.
        round_s: Longest time of a decision round [s], > 0.
        start_s: Longest time of the start, and of a run's first round, in which it may compile [s], > 0.
        run_s: Longest time of a run [s], > 0.
        all_s: Longest time of all runs [s], > 0; of each process also the processor time.

    Raises:
        InputError: One of them is out of its range.
    """

    memory_gib: float = 4.0
    round_s: float = 10.0
    start_s: float = 120.0
    run_s: float = 600.0
    all_s: float = 7200.0

    def __post_init__(self) -> None:
        if not LEAST_GIB <= self.memory_gib <= MOST_GIB:
            allowed = f"from {LEAST_GIB:g} to {MOST_GIB:,.0f} GiB: compilers ask for much that they do not use"
            raise InputError("--memory-gib", self.memory_gib, allowed)
        for name in ("round_s", "start_s", "run_s", "all_s"):
            checks.duration(f"--{name.replace('_', '-')}", getattr(self, name))


USUAL = Limits()
