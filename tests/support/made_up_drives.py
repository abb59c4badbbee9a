"""Drivers on a made-up Slurm, jobs for them, and policies that answer as a script says."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from gpusched_operations.live.acting import DriveSettings
from gpusched_operations.live.drive_state import DriveState
from gpusched_operations.live.driver import Driver
from gpusched_operations.live.following import Follower
from gpusched_operations.live.job_rules import JobRules
from gpusched_operations.live.progress_reports import ProgressReports, Report
from gpusched_operations.live.slurm_commands import SlurmControl
from gpusched_operations.live.state import LiveCluster
from made_up_slurm import MadeUpSlurm

APP = "app=resnet50-imagenet-global256"
ELASTIC = f"gpusched {APP} epochs=90 gpus=1,2,4 types=v100,a100 checkpoint=yes restart=60"
MOVABLE = f"gpusched {APP} epochs=90 types=v100,a100 checkpoint=yes"
RIGID = f"gpusched {APP} epochs=90"
TYPES = {"v100": "V100", "a100": "A100"}


class Posted(ProgressReports):
    """Reports of a made-up Slurm's jobs."""

    def __init__(self, slurm: MadeUpSlurm) -> None:
        super().__init__(clock=slurm.clock)
        self._said = slurm.posted

    def newest(self, job: str, work_folder: str, user: str) -> Report | None:
        return self._said.get(job)

    def forget(self, job: str) -> None:
        self._said.pop(job, None)


def driver(
    slurm: MadeUpSlurm, folder: Path, ask: Any, *, dry: bool = False, rules: JobRules | None = None, **changes: Any
) -> tuple[Driver, list[Any]]:
    events: list[Any] = []
    commands = SlurmControl(slurm.run, limit_s=3.0, pause=slurm.pause, dry=dry)
    made = Driver(
        DriveSettings("gpu", **{"policy": "edf", **changes}),
        JobRules.of({}) if rules is None else rules,
        commands,
        ask,
        folder,
        lambda kind, **fields: events.append((kind, fields)),
        Posted(slurm),
        slurm.clock,
        slurm.pause,
        slurm.clock,
    )
    return made, events


def observed_transitions(monkeypatch: pytest.MonkeyPatch) -> set[tuple[str, str]]:
    """Give the changes of jobs' states, which a test fills: at every reading of Slurm and whenever they are saved."""
    seen: set[tuple[str, str]] = set()
    before: dict[int, tuple[DriveState, dict[str, str]]] = {}

    def note(state: DriveState) -> None:
        now = {name: record.state for name, record in state.jobs.items()}
        _, then = before.get(id(state), (state, now))
        before[id(state)] = state, now
        changes = {(then.get(name, "absent"), now.get(name, "absent")) for name in then.keys() | now.keys()}
        seen.update((one, next_one) for one, next_one in changes if one != next_one)

    follow, save = Follower.follow, DriveState.save

    def following(self: Follower, cluster: LiveCluster) -> None:
        note(self.state)
        try:
            follow(self, cluster)
        finally:
            note(self.state)

    def saving(self: DriveState, folder: Path) -> None:
        note(self)
        save(self, folder)

    monkeypatch.setattr(Follower, "follow", following)
    monkeypatch.setattr(DriveState, "save", saving)
    return seen


def kinds(events: list[Any], kind: str) -> list[dict[str, Any]]:
    return [fields for name, fields in events if name == kind]


def scripted(*rounds: dict[str, tuple[str, str, str]]) -> Any:
    """Answer round after round: by job its action, configuration and node; then everything is kept."""
    left = list(rounds)

    def ask(fields: Mapping[str, Any]) -> dict[str, Any]:
        script = left.pop(0) if left else {}
        jobs = []
        for job in fields["jobs"]:
            action, configuration, node = script.get(job["id"], ("keep" if job.get("running") else "wait", "", ""))
            jobs.append({"id": job["id"], "action": action, "configuration": configuration, "nodes": [node]})
        return {"jobs": jobs, "memory": None, "ask_again_at_s": None}

    return ask
