"""What a driver must know after it was ended at any moment: of each job what it asked for, and its state."""

from __future__ import annotations

import json
import statistics
from dataclasses import asdict, dataclass, field
from pathlib import Path

from gpusched_env.errors import InputError
from gpusched_env.files import write_atomically
from gpusched_env.parsing import parse_json
from gpusched_operations.live.driven_job import DrivenJob, read_record

FORM = 2
STATE_FILE = "state.json"
MOST_COSTS = 51


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
        fields = {"form": FORM, **asdict(self)}
        for name, job in self.jobs.items():
            fields["jobs"][name]["stage"]["stage"] = type(job.stage).__name__
        write_atomically(folder / STATE_FILE, json.dumps(fields, allow_nan=False))

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
            found["jobs"] = {job: read_record(record) for job, record in found["jobs"].items()}
            return cls(**found)
        except (KeyError, TypeError, AttributeError) as error:
            raise InputError("--state", str(path), f"a state that drive wrote ({error})") from error
