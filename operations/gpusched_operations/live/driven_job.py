"""A job that a driver takes care of: the stage where it is, and the transitions from one stage to the next."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any, Self, TypeAlias, TypeVar

from gpusched_operations.live.progress import JobProgress
from gpusched_operations.live.slurm_requests import SubmittedRequest
from gpusched_operations.live.state import LiveJob

TRANSITIONS = {
    "absent": ("pending", "running"),
    "pending": ("held", "running", "left", "absent"),
    "held": ("starting", "pending", "running", "releasing", "left", "absent"),
    "starting": ("running", "held", "pending", "releasing", "absent"),
    "running": ("stopping", "starting", "pending", "held", "releasing", "left", "absent"),
    "stopping": ("held", "running", "releasing", "absent"),
    "releasing": ("left", "absent"),
    "left": ("pending", "running", "absent"),
}
"""The states of a job for its driver, and those that may come next: by what Slurm reports, or by what the driver does.
`absent`: there is no record of it; `left`: to Slurm."""


@dataclass(slots=True)
class Pending:
    """A job in the queue that the driver does not hold.

    Attributes:
        stopped_s: When the driver stopped it, if it has not run since, a Unix time [s]; None: it did not.
    """

    stopped_s: float | None = None


@dataclass(slots=True)
class Held(Pending):
    """A job in the queue that the driver holds, or was about to hold.

    Attributes:
        confirmed: Whether it was seen held by an administrator: then a hold by the user is the user's own.
    """

    confirmed: bool = False


@dataclass(slots=True)
class Running:
    """A run of a job. Times are Unix times [s].

    Attributes:
        configuration: Name of the configuration that it runs on.
        nodes: Its nodes.
        gpus_per_node: GPUs on each.
        start_s: When it started.
        held: Whether Slurm started it while the driver held it, and nobody has released it.
        stopped_s: When the driver stopped the run before, until this one reports; None: it did not.
        ready_s: When it first reported.
        first_epochs: What it reported then.
        silent: Whether there was an event that it reports nothing.
    """

    configuration: str
    nodes: tuple[str, ...]
    gpus_per_node: int
    start_s: float
    held: bool = False
    stopped_s: float | None = None
    ready_s: float | None = None
    first_epochs: float | None = None
    silent: bool = False


@dataclass(slots=True)
class Stopping(Running):
    """A run that the driver stopped at `stopped_s`, or was about to stop."""


Stage: TypeAlias = Pending | Held | Running | Stopping
STAGES: dict[str, type[Stage]] = {each.__name__: each for each in (Pending, Held, Running, Stopping)}


@dataclass(slots=True)
class DrivenJob:
    """A job that the driver takes care of. Times are Unix times [s].

    Attributes:
        request: What it asked for before anything was changed.
        comment: Its comment.
        command: Its script.
        submit_s: When it was submitted: Slurm has a later time after a requeue.
        seen: The time of submission that Slurm had last, and its count of restarts then.
        restarts: Slurm's count of restarts in its last run.
        stage: Where it is.
        placed: The configuration for which its request was changed; empty: the request is that of its submission.
        given_back: Why it was left to Slurm; empty: it was not.
        held_at_first: Whether only its user has held it, with `--hold` at its submission.
        cannot_stop: Whether Slurm refused to stop it.
        tries: Starts in a row that came to nothing.
        not_before_s: The policy is not asked about it before this time.
        first_start_s: When it first started.
        last: Its last run that ended; None: none did.
        ended_s: When that ended.
        last_nodes: Nodes where it was last ready, before its run.
        progress: What it reported last.
        modelled_epochs: What the model expects of its runs that ended, if it never reported.
    """

    request: SubmittedRequest
    comment: str
    command: str
    submit_s: float
    seen: tuple[float, int]
    restarts: int = 0
    stage: Stage = field(default_factory=Pending)
    placed: str = ""
    given_back: str = ""
    held_at_first: bool = False
    cannot_stop: bool = False
    tries: int = 0
    not_before_s: float = 0.0
    first_start_s: float | None = None
    last: Running | None = None
    ended_s: float | None = None
    last_nodes: tuple[str, ...] = ()
    progress: JobProgress | None = None
    modelled_epochs: float = 0.0

    @classmethod
    def of(cls, job: LiveJob) -> Self:
        seen = (job.submit_s, job.restarts)
        return cls(job.request, job.comment, job.script, job.submit_s, seen, job.restarts)

    def is_of(self, job: LiveJob) -> bool:
        """Return whether a job is the one of this record; another cluster, or one that was set up again, has its ids.

        The user and the script of a job never change, and its time of submission changes only when it restarts.
        """
        if job.user != self.request.user or job.script != self.command:
            return False
        return job.submit_s == self.seen[0] if job.restarts == self.seen[1] else job.restarts > self.seen[1]

    def saw(self, job: LiveJob) -> None:
        """Keep what distinguishes its job. Slurm may count a restart before it sets the time of submission."""
        if job.restarts > self.seen[1] and job.submit_s != self.seen[0]:
            self.seen = job.submit_s, job.restarts

    @property
    def run(self) -> Running | None:
        """Return the run, or the last one while it does not run."""
        return self.stage if isinstance(self.stage, Running) else self.last

    @property
    def ours(self) -> bool:
        """Return whether the driver holds or stops it, or was about to."""
        return isinstance(self.stage, Held | Stopping) or (isinstance(self.stage, Running) and self.stage.held)

    @property
    def stopped(self) -> bool:
        """Return whether the driver stopped it, or was about to, and it has not started since."""
        return type(self.stage) is not Running and self.stage.stopped_s is not None

    @property
    def must_be_undone(self) -> bool:
        return self.ours or bool(self.placed)

    @property
    def state(self) -> str:
        """Return the state of the job for its driver, a key of `TRANSITIONS`; a job without a record is `absent`."""
        if self.given_back:
            return "releasing" if self.must_be_undone else "left"
        if type(self.stage) is Pending and self.placed:
            return "starting"
        return type(self.stage).__name__.lower()

    def hold(self) -> None:
        """Take note that the driver is about to hold it."""
        if isinstance(self.stage, Running):
            self.stage.held = True
        elif not isinstance(self.stage, Held):
            self.stage = Held(self.stage.stopped_s)

    def confirm(self) -> None:
        """Take note that it is held by an administrator."""
        if isinstance(self.stage, Held):
            self.stage.confirmed, self.held_at_first = True, False

    def release(self) -> None:
        """Take note that the driver neither holds nor stops it."""
        if isinstance(self.stage, Stopping):
            self.stage = as_a(Running, self.stage, held=False, stopped_s=None)
        elif isinstance(self.stage, Running):
            self.stage.held = False
        else:
            self.stage = Pending()

    def start(self) -> None:
        """Take note that it was released so that it starts where it was placed."""
        if isinstance(self.stage, Pending):
            self.stage = Pending(self.stage.stopped_s)

    def stop(self, now_s: float) -> None:
        """Take note that the driver is about to stop its run."""
        if isinstance(self.stage, Running):
            self.stage = as_a(Stopping, self.stage, stopped_s=now_s)

    def begin(self, run: Running, restarts: int) -> None:
        """Take note that a run began, of a job that does not run."""
        run.held, run.stopped_s = self.ours, self.stage.stopped_s
        self.stage, self.restarts, self.held_at_first = run, restarts, False
        if self.first_start_s is None:
            self.first_start_s = run.start_s

    def end(self, end_s: float) -> None:
        """Take note that its run ended, and that it is in the queue."""
        if not isinstance(self.stage, Running):
            return
        run, ours = self.stage, self.ours
        if run.ready_s is not None:
            self.last_nodes = run.nodes
        self.last, self.ended_s = run, end_s
        stopped_s = run.stopped_s if isinstance(run, Stopping) else None
        self.stage = Held(stopped_s) if ours else Pending(stopped_s)


R = TypeVar("R", bound=Running)


def as_a(kind: type[R], run: Running, **changes: Any) -> R:
    return kind(**asdict(run) | changes)


def read_record(fields: dict[str, Any]) -> DrivenJob:
    stage, last, progress = fields["stage"], fields["last"], fields["progress"]
    return DrivenJob(
        **fields
        | {
            "request": SubmittedRequest(**fields["request"]),
            "stage": _stage(STAGES[stage.pop("stage")], stage),
            "last": None if last is None else _stage(Running, last),
            "progress": None if progress is None else JobProgress(*progress),
            "seen": tuple(fields["seen"]),
            "last_nodes": tuple(fields["last_nodes"]),
        }
    )


def _stage(kind: type[Any], fields: dict[str, Any]) -> Any:
    return kind(**fields | ({"nodes": tuple(fields["nodes"])} if issubclass(kind, Running) else {}))
