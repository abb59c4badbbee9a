"""Drawn queues on a test cluster of Slurm: the driver starts jobs beside those of others, never on GPUs that they hold.

Others have jobs that no list of jobs shows, that have their nodes alone, and that hold shares of GPUs. Files: a table
of queues that have run, made here: a queue that is not in it runs first. A queue agrees if the driver released jobs,
and none for a GPU that, by Slurm's own record, another job held when the driver last read its nodes, and still held.
"""

from __future__ import annotations

import csv
import io
import json
import re
import time
from collections import Counter
from dataclasses import asdict, dataclass, field, fields
from datetime import datetime
from pathlib import Path
from secrets import token_bytes
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gpusched_env.errors import InputError
from gpusched_env.files import write_atomically
from gpusched_experiments.report.code_version import commit
from gpusched_operations.live.acting import DriveSettings
from gpusched_operations.live.asking import decider_of
from gpusched_operations.live.driver import Driver
from gpusched_operations.live.emulated import EmulatedCluster
from gpusched_operations.live.emulated_files import PARTITION, node_groups
from gpusched_operations.live.job_rules import JobRules
from gpusched_operations.live.slurm_commands import Done, SlurmControl, run_command
from gpusched_reproductions.conform.answer import Answer

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

QUEUES = 5
NODES = "v100:4x2,a100:8x1"
SHARES = 4
"""Shares of a GPU."""

HOLDING = ("RUNNING", "COMPLETING", "SUSPENDED")
POLICY = "edf"
OPTED_IN = "gpusched app=resnet50-imagenet-global256 epochs=90 gpus=1,2,4 types=v100,a100 checkpoint=yes restart=60"
STAYS_S = 600
SETTLE_S = 1.5
"""From the last submission until the driver looks [s]; Slurm records whole seconds."""

_GPU = re.compile(r"(?:^|,)(?:gpu|shard)[^(]*\(IDX:([\d,-]+)\)")
_ON_NODE = re.compile(r" Nodes=(\S+) \S+ \S+ GRES=(\S*)")


class OtherJob(NamedTuple):
    """A job of somebody else: whole GPUs or shares that it asks for, whether it is alone or hidden, its length [s]."""

    gpus: int
    shares: int
    alone: bool
    hidden: bool
    length_s: int


class Turn(NamedTuple):
    """What is submitted before a round of the driver: jobs of others, and the lengths of jobs for the driver [s]."""

    others: tuple[OtherJob, ...]
    own_s: tuple[int, ...]


def drawn_queue(number: int) -> tuple[Turn, ...]:
    """Draw a queue: one to four turns, each with up to five jobs of others and up to three for the driver."""
    rng = np.random.default_rng([7, number])
    turns = []
    for _ in range(int(rng.integers(1, 5))):
        others = []
        for _ in range(int(rng.integers(0, 6))):
            gpus, shares = ((1, 0), (3, 0), (4, 0), (0, 1), (0, 3))[int(rng.integers(5))]
            alone, hidden = bool(rng.random() < 0.2), bool(rng.random() < 0.5)
            others.append(OtherJob(gpus, shares, alone, hidden, int(rng.choice([3, 8, STAYS_S]))))
        turns.append(Turn(tuple(others), tuple(int(each) for each in rng.choice([4, 15], rng.integers(0, 4)))))
    return tuple(turns)


@dataclass(frozen=True, slots=True)
class DrivenQueue:
    """A queue that ran: a row of the table.

    Attributes:
        queue: Its number, the seed of `drawn_queue`.
        others: Jobs of others that were submitted.
        hidden: Of these, jobs that the driver's lists do not show.
        alone: Of these, jobs that have their nodes alone.
        shared: Of these, jobs that hold shares of GPUs.
        own: Jobs that were submitted for the driver.
        starts: How often the driver released a job for GPUs of a node.
        on_held: Those for GPUs that somebody held, as phrases; empty: none.
        slurm: Slurm's version.
        commit: The commit of the code; `+`: with changes.
    """

    queue: int
    others: int
    hidden: int
    alone: int
    shared: int
    own: int
    starts: int
    on_held: str
    slurm: str
    commit: str


COLUMNS = tuple(each.name for each in fields(DrivenQueue))
COUNTS = COLUMNS[:-3]


def answers(paths: Sequence[Path]) -> Iterator[Answer]:
    """Yield one answer for each queue; what has not run yet runs first, and is written to the file."""
    for path in paths:
        known = read_table(path) if path.exists() else {}
        for number in sorted({*known, *range(QUEUES)}):
            if number not in known:
                known[number] = run_queue(number)
                write_atomically(path, _table(known[each] for each in sorted(known)))
            yield _answer(known[number])


def _answer(row: DrivenQueue) -> Answer:
    beside = f"{row.hidden} hidden, {row.alone} alone, {row.shared} with shares"
    return Answer(
        f"queue {row.queue}, {row.others} jobs of others ({beside})",
        "none on held GPUs",
        f"{row.starts} starts, {row.on_held or 'none'} on held GPUs",
        not row.on_held and row.starts > 0,
    )


def run_queue(number: int) -> DrivenQueue:
    """Run a queue on a test cluster of its own, with one round of the driver a turn, and one more at the end.

    Raises:
        InputError: Slurm is not installed.
        RunError: Slurm failed.
    """
    turns = drawn_queue(number)
    with TemporaryDirectory() as folder, EmulatedCluster(Path(folder) / "slurm", NODES, shares=SHARES) as cluster:
        watched = WatchedSlurm(cluster)
        driver = Driver(
            DriveSettings(PARTITION, POLICY, settle_s=10.0, start_s=10.0),
            JobRules.of({}),
            SlurmControl(watched.run),
            decider_of(POLICY, token_bytes(32)).ask,
            Path(folder) / "state",
            lambda *_, **__: None,
        )
        driver.folder.mkdir()
        for turn in (*turns, Turn((), ())):
            for other in turn.others:
                _submit_other(cluster, other, watched)
            for length_s in turn.own_s:
                cluster.submit("--hold", "--requeue", "--gres=gpu:1", f"--comment={OPTED_IN}", *_sleep(length_s))
            time.sleep(SETTLE_S)
            driver.round()
        version = cluster.run("scontrol", "--version").split()[-1]
    others = [other for turn in turns for other in turn.others]
    of = Counter(name for each in others for name in ("hidden", "alone") if getattr(each, name))
    own, shared = sum(len(turn.own_s) for turn in turns), sum(bool(each.shares) for each in others)
    return DrivenQueue(
        number, len(others), of["hidden"], of["alone"], shared, own,
        watched.starts, "; ".join(watched.on_held), version, commit() or "",
    )  # fmt: skip


def _submit_other(cluster: EmulatedCluster, other: OtherJob, watched: WatchedSlurm) -> None:
    asks = f"--gres=shard:{other.shares}" if other.shares else f"--gres=gpu:{other.gpus}"
    job = cluster.submit(asks, *(["--exclusive"] if other.alone else []), *_sleep(other.length_s))
    if other.hidden:
        watched.hidden.add(job)


def _sleep(length_s: int) -> tuple[str, str]:
    return "--output=/dev/null", f"--wrap=exec sleep {length_s}"


@dataclass
class WatchedSlurm:
    """Runs a driver's commands on a test cluster, hides jobs of others from it, and checks what it releases.

    Attributes:
        cluster: The cluster.
        hidden: Jobs that no list shows.
        starts: Jobs that were released for GPUs of a node.
        on_held: Those of which somebody held such a GPU, each as a line.
    """

    cluster: EmulatedCluster
    hidden: set[str] = field(default_factory=set)
    starts: int = 0
    on_held: list[str] = field(default_factory=list)
    _read_s: float = 0.0

    def run(self, words: Sequence[str], text: str, limit_s: float) -> Done:
        if words[:2] == ("scontrol", "release"):
            self._check(words[-1].split(","))
        if words[:3] == ("scontrol", "show", "nodes"):
            self._read_s = time.time()
        done = run_command(words, text, limit_s, self.cluster.environment)
        return done._replace(output=without(self.hidden, done.output)) if words[0] == "squeue" else done

    def _check(self, released: Sequence[str]) -> None:
        groups = node_groups(NODES)
        free = {name: group.gpus for group in groups for name in group.names}
        shown = self.cluster.run("scontrol", "show", "job", "--details", "--oneliner")
        starts, on_held = starts_on_held(shown, released, free, self._read_s)
        self.starts += starts
        self.on_held += on_held


def without(hidden: Collection[str], output: str) -> str:
    """Return what `squeue` wrote, as JSON or as lines that begin with an id, without some jobs."""
    if not output.startswith("{"):
        return "".join(line for line in output.splitlines(keepends=True) if line.split()[0] not in hidden)
    data = json.loads(output)
    data["jobs"] = [job for job in data["jobs"] if str(job["job_id"]) not in hidden]
    return json.dumps(data)


def starts_on_held(
    shown: str, released: Iterable[str], gpus: Mapping[str, int], until_s: float
) -> tuple[int, list[str]]:
    """Count jobs that are released for GPUs of a node, and list those for GPUs that somebody holds.

    Args:
        shown: What `scontrol show job --details --oneliner` writes.
        released: Ids of the jobs that are released, in this order.
        gpus: GPUs of each node.
        until_s: Only jobs count that started before that time, a Unix time [s].
    """
    jobs = {}
    taken: dict[str, set[int]] = {name: set() for name in gpus}
    for line in filter(str.strip, shown.splitlines()):
        job = dict(word.partition("=")[::2] for word in line.split())
        jobs[job["JobId"]] = job
        if job["JobState"] not in HOLDING or datetime.fromisoformat(job["StartTime"]).timestamp() + 1.0 > until_s:
            continue
        for node, gres in _ON_NODE.findall(line):
            taken[node] |= set(range(gpus[node])) if job["OverSubscribe"] == "NO" else _numbers(gres)
    free, starts, on_held = {name: gpus[name] - len(held) for name, held in taken.items()}, 0, []
    for name in released:
        node, asked = jobs[name]["ReqNodeList"], int(jobs[name]["TresPerNode"].rpartition(":")[2])
        if node in free:  # else it is given back to Slurm
            starts += 1
            free[node] -= asked
            if free[node] < 0:
                on_held.append(f"{-free[node]} of the {asked} GPUs of job {name} on {node}")
    return starts, on_held


def _numbers(gres: str) -> set[int]:
    """Return the numbers of the GPUs of a text such as `gpu:v100:2(IDX:0-1),shard:3(IDX:2)`."""
    found: set[int] = set()
    for numbers in _GPU.findall(gres):
        for part in numbers.split(","):
            first, _, last = part.partition("-")
            found |= set(range(int(first), int(last or first) + 1))
    return found


def read_table(path: Path) -> dict[int, DrivenQueue]:
    """Read a table of queues, by their numbers.

    Raises:
        InputError: It is no such table.
    """
    try:
        with path.open(encoding="utf-8", newline="") as file:
            rows = [_row(each) for each in csv.DictReader(file)]
    except (OSError, KeyError, TypeError, ValueError):
        rows = []
    if not rows:
        raise InputError("files", str(path), f"a table of queues with columns {', '.join(COLUMNS)}")
    return {row.queue: row for row in rows}


def _row(texts: Mapping[str, str]) -> DrivenQueue:
    row: dict[str, Any] = {name: int(texts[name]) if name in COUNTS else texts[name] for name in COLUMNS}
    return DrivenQueue(**row)


def _table(rows: Iterable[DrivenQueue]) -> str:
    text = io.StringIO()
    written = csv.DictWriter(text, COLUMNS, lineterminator="\n")
    written.writeheader()
    written.writerows(asdict(row) for row in rows)
    return text.getvalue()
