"""What a job of Slurm that waits is waiting for besides GPUs, and how many tasks of an array may run at once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from gpusched_env.errors import InputError
from gpusched_operations.live.slurm_holdings import whole_number
from gpusched_operations.live.state import HeldBy, LiveJob


def words_in(record: Mapping[str, Any], field: str) -> list[str]:
    value = record.get(field) or ""
    return [str(each) for each in value] if isinstance(value, list) else str(value).split("+")


_CAN_START = ("", "None", "Priority", "Resources")
"""The reasons of Slurm with which a job starts as soon as there are GPUs for it; all others wait for something else."""


def waits_for(record: Mapping[str, Any], reason: str) -> str:
    code = str(record.get("state_reason") or "")
    if record.get("dependency"):
        return reason if code.startswith("Dependency") else "Dependency"
    put_back = code == "BeginTime" and bool(whole_number(record, "restart_cnt"))  # for two minutes
    return "" if code in _CAN_START or put_back or holder_of(record, reason) else reason


@dataclass
class Array:
    """Tasks of an array: those that run or end, those that wait, and how many may run at once; 0: all."""

    most: int = 0
    running: int = 0
    waiting: list[str] = field(default_factory=list)

    @staticmethod
    def add(arrays: dict[int, Array], record: Mapping[str, Any], own: list[LiveJob]) -> None:
        number = whole_number(record, "array_job_id")
        if not number:
            return
        array = arrays.setdefault(number, Array())
        limits = [array.most, whole_number(record, "array_max_tasks") or 0, at_once(record)]
        array.most = min((each for each in limits if each > 0), default=0)
        array.running += sum(job.phase in ("running", "ending") for job in own)
        array.waiting += [
            job.id for job in own if job.phase == "pending" and not (job.held or job.unfit or job.waits_for)
        ]

    def over(self) -> list[str]:
        """Return the tasks that may not start yet."""
        return self.waiting[max(0, self.most - self.running) :] if self.most else []


def at_once(record: Mapping[str, Any]) -> int:
    _, _, most = str(record.get("array_task_string") or "").partition("%")
    if most and not most.isdecimal():
        raise InputError("array_task_string", record["array_task_string"], "tasks, and % with a number, such as 1-6%2")
    return int(most or 0)


def holder_of(record: Mapping[str, Any], reason: str) -> HeldBy:
    words = set(words_in(record, "job_state")) | {str(record.get("state_reason"))}
    launch_failed = "launch failed" in reason.replace("_", " ")
    if "requeued" in reason and "held" in reason:
        return "admin" if launch_failed else "requeue"
    if "REQUEUE_HOLD" in words:
        return "requeue"
    if words & {"JobHeldAdmin", "JobHoldMaxRequeue", "SPECIAL_EXIT", "RESV_DEL_HOLD"}:
        return "admin"
    return "user" if "JobHeldUser" in words or record.get("hold") is True else ""
