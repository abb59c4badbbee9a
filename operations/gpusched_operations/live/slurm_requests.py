"""What a job of Slurm asked for when it was submitted, and the changes that put it elsewhere and back."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Self

from gpusched_env.errors import InputError
from gpusched_operations.live.slurm_commands import PLAIN
from gpusched_operations.live.slurm_text import number_of

PLACE = "ReqNodeList"
GPU_FIELDS = {"tres_per_node": "TresPerNode", "tres_per_job": "TresPerJob"}
"""The fields of `squeue --json` that may ask for GPUs so that their number can be changed, as `scontrol` names them."""
FIXED_FIELDS = {"tres_per_task": "--gpus-per-task", "tres_per_socket": "--gpus-per-socket"}
POWER = "gpusched-power="
"""Begins the word of AdminComment that tells a prolog the power limit, as a part of that of a full busy GPU."""
_GPU = re.compile(r"(?<![^,])((?:gres[:/])?gpu)(?::([A-Za-z_][\w.\-]*))?(?:[:=](\d+))?(?![^,])")


@dataclass(frozen=True, slots=True)
class SubmittedRequest:
    """What a job asks for.

    Attributes:
        gpu_field: The field that asks for GPUs: `tres_per_node` or `tres_per_job`; empty: none does.
        tres: Its value.
        places: Nodes that it must be on, as Slurm writes them.
        nodes: Number of nodes.
        admin_comment: The comment of the administrator.
        why_not: Why its place and GPUs are not to be changed; empty: they may be.
        waits_for: What it waits for besides GPUs: other jobs, a time; empty: nothing.
        folder: Its working folder.
        user: Its user.
        eligible_s: From when on Slurm may start it [s], Unix time; 0: not known.
        reason: Why it waits, by Slurm's name for it.
        priority: Its priority; 0: it is held, or would be if it went back into the queue.
    """

    gpu_field: str = ""
    tres: str = ""
    places: str = ""
    nodes: int = 1
    admin_comment: str = ""
    why_not: str = ""
    waits_for: str = ""
    folder: str = ""
    user: str = ""
    eligible_s: float = 0.0
    reason: str = ""
    priority: float = 1.0

    @classmethod
    def of(cls, job: dict[str, Any]) -> Self:
        """Read an entry of `jobs` of `squeue --json`."""
        asked = {name: str(job.get(name) or "") for name in GPU_FIELDS}
        having = [name for name, value in asked.items() if "gpu" in value]
        name = having[0] if having else ""
        return cls(
            gpu_field=name,
            tres=asked.get(name, ""),
            places=_text(job.get("required_nodes")),
            nodes=int(_number(job.get("node_count"), 1.0)) or 1,
            admin_comment=_text(job.get("admin_comment")),
            why_not=_why_not(job, asked, having),
            waits_for="other jobs" if job.get("dependency") else "",
            folder=_text(job.get("current_working_directory")),
            user=_text(job.get("user_name")),
            eligible_s=_number(job.get("eligible_time")),
            reason=_text(job.get("state_reason")),
            priority=_number(job.get("priority", 1), 1.0),
        )

    def elsewhere(
        self, gpu_type: str, gpus_per_node: int, nodes: list[str], power_limit: float = 1.0, was: str | None = None
    ) -> dict[str, str]:
        """Return the changes that place the job; it keeps the form of its request: with or without a type.

        Args:
            power_limit: The power limit, as a part of that of a full busy GPU.
            was: The comment of the administrator now; by default that of the submission.
        """
        if len(nodes) != self.nodes:
            raise InputError("nodes", ",".join(nodes), f"{self.nodes}, as the job asks for: scripts depend on it")
        count = gpus_per_node * (len(nodes) if self.gpu_field == "tres_per_job" else 1)

        def replaced(found: re.Match[str]) -> str:
            return f"{found[1]}:{gpu_type}:{count}" if found[2] else f"{found[1]}:{count}"

        changes = {GPU_FIELDS[self.gpu_field]: _GPU.sub(replaced, self.tres), PLACE: ",".join(nodes)}
        comment = self.admin_comment
        if power_limit < 1.0:
            comment = f"{comment}{',' if comment else ''}{POWER}{power_limit:g}"
        if comment != (self.admin_comment if was is None else was):
            changes["AdminComment"] = comment
        return changes

    def restored(self, now: SubmittedRequest | None = None) -> dict[str, str]:
        """Return the changes that restore the request; where it is known what it is `now`, only what differs."""
        changes = {PLACE: self.places, "AdminComment": self.admin_comment}
        if self.gpu_field:
            changes[GPU_FIELDS[self.gpu_field]] = self.tres
        if now is None:
            return changes
        same = {PLACE: now.places, "AdminComment": now.admin_comment, GPU_FIELDS.get(now.gpu_field, ""): now.tres}
        return {name: value for name, value in changes.items() if same.get(name) != value}


def _why_not(job: dict[str, Any], asked: dict[str, str], having: list[str]) -> str:
    other = [option for name, option in FIXED_FIELDS.items() if "gpu" in str(job.get(name) or "")]
    words = (_text(job.get("required_nodes")), _text(job.get("admin_comment")), *asked.values())
    unread = _unread(job)
    found = {
        f"Slurm gives no number for {unread}": unread,
        "it is a job array: submit its tasks as jobs of their own": _number(job.get("array_job_id"))
        or _text(job.get("array_task_string")),
        "it is a part of a heterogeneous job": _number(job.get("het_job_id")),
        f"it asks for GPUs by {' and '.join(other)}: use --gres, --gpus-per-node or --gpus": other,
        "it asks for no GPUs": not having,
        "it asks for GPUs more than once": len(having) > 1 or len(_GPU.findall(asked[having[0]] if having else "")) > 1,
        "it belongs to a reservation": job.get("resv_name"),
        "its AdminComment, list of nodes or GPUs have spaces or quotes": not all(map(PLAIN.fullmatch, words)),
    }
    return next((why for why, true in found.items() if true), "")


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _number(value: Any, otherwise: float = 0.0) -> float:
    try:
        return number_of(value, "a field of a job") or 0.0
    except InputError:
        return otherwise


def _unread(job: dict[str, Any]) -> str:
    found = []
    for name in ("job_id", "node_count", "eligible_time", "priority", "array_job_id", "het_job_id"):
        try:
            number_of(job.get(name), name)
        except InputError:
            found.append(name)
    return ", ".join(found)
