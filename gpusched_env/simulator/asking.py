"""How rounds ask: who, in which order, when beside the events, and what a decision sets by itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypedDict

import numpy as np

from gpusched_env.errors import InputError
from gpusched_env.model import checks
from gpusched_env.simulator.ordering import NAMED_ORDERS


class AskingSettings(TypedDict, total=False):
    """The settings of `Asking` as keywords of an environment."""

    preemption: bool
    job_order: str
    milestones: int
    idle_review_s: float
    deadline_wake_ups: bool
    consolidation: bool


@dataclass(frozen=True, slots=True)
class Asking:
    """How an environment asks its agent.

    Args:
        preemption: Whether a round begins from an empty cluster and asks every active job; else running jobs keep their
            GPUs and only waiting ones are asked.
        job_order: Order in which a round asks its jobs: `pressure`, `submission`, `due` or `weight`.
        milestones: Each job wakes its round at so many equal fractions of its maximum epochs, ≥ 0 (0: never).
        idle_review_s: How far time moves when nothing runs and nothing is pending [s], > 0.
        deadline_wake_ups: Whether a job that would miss its due date as it runs, or waits, wakes its round just before
            the cheapest configuration that would still meet it no longer does (in place of `wake_up`).
        consolidation: Whether a job whose previous node is off in this round goes to one of the same GPU type that is
            on, if it has room and the move costs no restart; else jobs go back wherever they fit.

    Raises:
        InputError: One of them is of the wrong kind or out of its range.
    """

    preemption: bool = True
    job_order: str = "pressure"
    milestones: int = 4
    idle_review_s: float = 3600.0
    deadline_wake_ups: bool = False
    consolidation: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.job_order, str) or self.job_order not in NAMED_ORDERS:
            raise InputError("job_order", self.job_order, f"one of {', '.join(NAMED_ORDERS)}")
        checks.whole("milestones", self.milestones, 0)
        checks.duration("idle_review_s", self.idle_review_s)
        for name in ("preemption", "deadline_wake_ups", "consolidation"):
            flag = getattr(self, name)
            if not isinstance(flag, bool | np.bool_):
                raise InputError(name, flag, "True or False")
            object.__setattr__(self, name, bool(flag))


AS_A_POLICY = Asking(milestones=0)
"""How `simulate` asks: at events and wake-ups only. Order and preemption are then the policy's own."""
