"""Undoing what a driver did to jobs: requests as they were submitted, and no job held."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

from gpusched_operations.live.drive_state import DriveState
from gpusched_operations.live.driven_job import DrivenJob
from gpusched_operations.live.following import OnEvent, is_held_by_user
from gpusched_operations.live.slurm_commands import SlurmControl, SlurmError
from gpusched_operations.live.slurm_state import read_cluster
from gpusched_operations.live.state import LiveCluster

LATER = "now+5"
"""When a job may start again that was stopped: not in the second in which it ended, see `acting.RELAUNCH_S`."""
ATTEMPTS, PAUSE_S, LONGEST_PAUSE_S = 9, 0.5, 8.0
"""Jobs that were just stopped may take as long as Slurm waits for them (KillWait, usually 30 s) until they are back."""


def release_jobs(
    names: Iterable[str], cluster: LiveCluster, state: DriveState, commands: SlurmControl, on_event: OnEvent
) -> list[str]:
    """Restore the requests of waiting jobs and release them: those first that the driver stopped, then by submission.

    What a user holds stays held. Nothing is saved here.

    Args:
        commands: Slurm's commands.
    """
    jobs = {job.id: job for job in cluster.jobs if job.phase in ("pending", "running")}
    changes: dict[str, dict[str, str]] = {}
    free: list[str] = []
    for name in sorted((name for name in names if name in jobs), key=lambda each: _order(state.jobs[each])):
        record, job = state.jobs[name], jobs[name]
        if job.phase == "pending":
            changes[name] = record.request.restored(job.request) if record.placed else {}
            if record.first_start_s is not None:  # it waits for the time that Slurm gave it when it was put back
                changes[name]["StartTime"] = LATER
        if not is_held_by_user(job, record) and (job.phase == "pending" or job.request.priority == 0.0):
            free.append(name)
    changes = {name: each for name, each in changes.items() if each}
    refused = commands.update(changes)
    for name, said in refused.items():
        on_event("refused", job=name, action="restore", said=said)
    for name in changes:
        if name not in refused:
            state.jobs[name].placed = ""
    refused = commands.release(free)
    for name, said in refused.items():
        on_event("refused", job=name, action="release", said=said)
    released = [name for name in free if name not in refused]
    for name in released:
        state.jobs[name].release()
    return released


def release_all(
    folder: Path,
    state: DriveState,
    commands: SlurmControl,
    on_event: OnEvent,
    *,
    clock: Callable[[], float],
    pause: Callable[[float], None],
    why: str,
) -> list[str]:
    """Undo all that a driver did, and look whether it is undone; jobs that run go on.

    Args:
        commands: Slurm's commands.
    """
    done: list[str] = []
    for attempt in range(ATTEMPTS):
        if attempt:
            pause(min(LONGEST_PAUSE_S, PAUSE_S * 2.0**attempt))
        cluster = read_cluster(commands, clock(), nodes="")
        state.check_cluster(cluster.names)
        left = _still_to_do(cluster, state)
        if not left:
            break
        try:
            done += release_jobs(left, cluster, state, commands, on_event)
        finally:
            state.save(folder)
    cluster = read_cluster(commands, clock(), nodes="")
    left = _still_to_do(cluster, state)
    for name, record in state.jobs.items():
        if name not in left and (cluster.names or not state.cluster):
            record.placed = ""
            record.release()
    state.save(folder)
    on_event("released", jobs=list(dict.fromkeys(done)), why=why, not_undone=left)
    if left:
        raise SlurmError("release", f"not undone: {', '.join(left)}", answered=True)
    return list(dict.fromkeys(done))


def _still_to_do(cluster: LiveCluster, state: DriveState) -> list[str]:
    found = []
    for job in cluster.jobs:
        record = state.jobs.get(job.id)
        if record is None or not record.must_be_undone or not record.is_of(job):
            continue
        if job.phase == "pending":
            differs = bool(record.placed) and bool(record.request.restored(job.request))
            held = bool(job.held) and not is_held_by_user(job, record)
            if differs or held or (job.request.priority == 0.0 and not job.held):
                found.append(job.id)
        elif job.phase == "ending" and record.stopped:
            found.append(job.id)  # it is going back into the queue
        elif job.phase == "running" and record.ours and job.request.priority == 0.0:
            found.append(job.id)
    return found


def _order(record: DrivenJob) -> tuple[bool, float]:
    return not record.stopped, record.submit_s
