"""What a driver must know after it was ended at any moment: for each job what it asked for, and what was done to it."""

from __future__ import annotations

import json
import statistics
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from gpusched_env.errors import InputError
from gpusched_env.files import write_atomically
from gpusched_env.parsing import parse_json
from gpusched_operations.live.slurm_requests import SubmittedRequest
from gpusched_operations.live.state import LiveJob

FORM = 1
STATE_FILE = "state.json"
MOST_COSTS = 51
TRANSITIONS = {
    "absent": ("waiting", "running"),
    "waiting": ("held", "running", "left", "absent"),
    "held": ("starting", "waiting", "running", "releasing", "left", "absent"),
    "starting": ("running", "held", "waiting", "releasing", "absent"),
    "running": ("stopping", "starting", "waiting", "held", "releasing", "left", "absent"),
    "stopping": ("held", "running", "releasing", "absent"),
    "releasing": ("left", "absent"),
    "left": ("waiting", "running", "absent"),
}
"""The states of a job for its driver, and those that may come next: by what Slurm reports, or by what the driver does.
`absent`: there is no record of it; `left`: to Slurm."""


@dataclass(slots=True)
class DrivenJob:
    """A job that the driver takes care of. Times are Unix times [s].

    Attributes:
        request: What it asked for before anything was changed.
        comment: Its comment.
        submit_s: When it was submitted; Slurm tells a later time after a requeue.
        held_at_first: Whether it was held by its user when it was first seen: submitted with `--hold`.
        ours: Whether the driver holds it, or was about to.
        confirmed: Whether it was seen held by an administrator since: then a hold by the user is the user's own.
        changed: Whether its request may differ from `request`.
        stopped: Whether the driver stopped it, or was about to, and it has not started since.
        stopped_s: When.
        planned: Name of the configuration that it was last given.
        configuration: Name of the configuration that it runs on; empty: it does not run.
        nodes: Its nodes.
        gpus_per_node: GPUs on each.
        restarts: Slurm's count of restarts in its last run.
        first_start_s: When it first started.
        since_s: When its run started.
        ready_s: When it first reported in its run.
        last_nodes: Nodes where it was last ready, before its run.
        ended_s: When its last run ended.
        epochs: What it reported last.
        told_s: When it did.
        first_epochs: What it reported first in its run.
        modelled_epochs: What the model expects that its runs did which are over, if it never reported.
        tries: Starts in a row that came to nothing.
        not_before_s: It is not told to the policy before this time.
        cannot_stop: Whether Slurm refused to stop it.
        silent: Whether it was already said that it reports nothing.
        given_back: Why it was left to Slurm; empty: it was not.
        command: Its script; None: not known.
        seen_submit_s: The time of submission that Slurm told last; None: not known.
        seen_restarts: The count of restarts that Slurm told with it.
    """

    request: SubmittedRequest
    comment: str = ""
    submit_s: float = 0.0
    held_at_first: bool = False
    ours: bool = False
    confirmed: bool = False
    changed: bool = False
    stopped: bool = False
    stopped_s: float | None = None
    planned: str = ""
    configuration: str = ""
    nodes: tuple[str, ...] = ()
    gpus_per_node: int = 0
    restarts: int = 0
    first_start_s: float | None = None
    since_s: float | None = None
    ready_s: float | None = None
    last_nodes: tuple[str, ...] = ()
    ended_s: float | None = None
    epochs: float | None = None
    told_s: float | None = None
    first_epochs: float | None = None
    modelled_epochs: float = 0.0
    tries: int = 0
    not_before_s: float = 0.0
    cannot_stop: bool = False
    silent: bool = False
    given_back: str = ""
    command: str | None = None
    seen_submit_s: float | None = None
    seen_restarts: int = 0

    def is_of(self, job: LiveJob) -> bool:
        """Return whether a job is the one of this record; another cluster, or one that was set up again, has its ids.

        The user and the script of a job never change, and its time of submission changes only when it restarts.
        """
        if job.user != self.request.user or (self.command is not None and job.script != self.command):
            return False
        if self.seen_submit_s is None:
            return True
        if job.restarts == self.seen_restarts:
            return job.submit_s == self.seen_submit_s
        return job.restarts > self.seen_restarts

    def saw(self, job: LiveJob) -> None:
        """Keep what tells its job from others. Slurm may count a restart before it sets the time of submission."""
        if self.seen_submit_s is None or (job.restarts > self.seen_restarts and job.submit_s != self.seen_submit_s):
            self.seen_submit_s, self.seen_restarts = job.submit_s, job.restarts

    @property
    def must_be_undone(self) -> bool:
        return self.ours or self.changed

    @property
    def state(self) -> str:
        """Return the state of the job for its driver, a key of `TRANSITIONS`; a job without a record is `absent`."""
        if self.given_back:
            return "releasing" if self.must_be_undone or self.stopped else "left"
        if self.configuration:
            return "stopping" if self.stopped else "running"
        if self.ours:
            return "held"
        return "starting" if self.changed else "waiting"


@dataclass(slots=True)
class DriveState:
    """What a driver knows.

    Attributes:
        partition: The partition that it drives.
        policy: Name of the policy.
        jobs: The jobs that it takes care of, by id.
        left_alone: Why other jobs that opted in are left alone, by id.
        memory: What the policy remembers.
        costs: The last seconds without progress that a restart cost.
        rounds: Rounds so far.
        decision_s: Seconds of the policy in them.
        cluster: The name of the cluster; empty: not known.
    """

    partition: str
    policy: str = ""
    jobs: dict[str, DrivenJob] = field(default_factory=dict)
    left_alone: dict[str, str] = field(default_factory=dict)
    memory: str | None = None
    costs: list[float] = field(default_factory=list)
    rounds: int = 0
    decision_s: float = 0.0
    cluster: str = ""

    @property
    def restart_s(self) -> float | None:
        return statistics.median(self.costs) if self.costs else None

    def restarts_of(self, job: str) -> int | None:
        record = self.jobs.get(job)
        return None if record is None else record.restarts

    def check_cluster(self, clusters: frozenset[str]) -> None:
        """Check that the state is of the cluster whose name Slurm tells, or take note of it."""
        if self.cluster and clusters and self.cluster not in clusters:
            found = ", ".join(sorted(clusters))
            raise InputError(
                "cluster", found, f"{self.cluster}, of which this is the state: see SLURM_CONF and --state"
            )
        if not self.cluster and len(clusters) == 1:
            (self.cluster,) = clusters

    def save(self, folder: Path) -> None:
        write_atomically(folder / STATE_FILE, json.dumps({"form": FORM, **asdict(self)}, allow_nan=False))

    @classmethod
    def load(cls, folder: Path, partition: str) -> DriveState:
        """Read the state; a new one if there is none."""
        path = folder / STATE_FILE
        try:
            found = parse_json(path.read_bytes())
        except FileNotFoundError:
            return cls(partition)
        except (OSError, ValueError) as error:
            raise InputError("--state", str(path), f"a state that drive wrote ({error})") from error
        if not isinstance(found, dict) or found.pop("form", None) != FORM:
            raise InputError("--state", str(path), f"a state of form {FORM}")
        if found.get("partition") != partition:
            raise InputError("--partition", partition, f"{found.get('partition')}, of which {path} is the state")
        try:
            found["jobs"] = {job: _record(record) for job, record in found["jobs"].items()}
            return cls(**found)
        except (KeyError, TypeError, AttributeError) as error:
            raise InputError("--state", str(path), f"a state that drive wrote ({error})") from error


def _record(fields: dict[str, Any]) -> DrivenJob:
    fields["request"] = SubmittedRequest(**fields["request"])
    for name in ("nodes", "last_nodes"):
        fields[name] = tuple(fields[name])
    return DrivenJob(**fields)
