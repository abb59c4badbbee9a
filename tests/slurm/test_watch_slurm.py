"""`gpusched slurm watch` on a real Slurm: its journal is the schedule that Slurm tells."""

import os
import signal
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

from gpusched_env.workload.traces.seen_jobs import SeenCluster
from gpusched_operations.live.emulated import EmulatedCluster
from gpusched_operations.live.journal import read_journal
from slurm_clusters import needs_slurm, states
from waiting import eventually

pytestmark = needs_slurm

WATCH = (sys.executable, "-m", "gpusched_experiments", "slurm", "watch", "--every", "1", "--policy", "edf")


def watching(cluster: EmulatedCluster, journal: Path, *more: str) -> subprocess.Popen[str]:
    path = os.environ.get("PYTHONPATH", "")
    environment = cluster.environment | {"PYTHONPATH": path, "NUMBA_DISABLE_JIT": "1"}
    return subprocess.Popen(
        [*WATCH, "--journal", str(journal), *more], env=environment, text=True, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )  # fmt: skip


def events(journal: Path) -> list[object]:
    there = journal.is_dir() and any(journal.glob("*.jsonl"))
    return [line.get("event") for line in read_journal(journal)] if there else []


def until_there(file: Path) -> str:
    return f"while [ ! -e {file} ]; do sleep 0.2; done"


def runs(journal: Path, job: str) -> int:
    seen = SeenCluster.of(journal).jobs
    return len(seen[job].runs) if job in seen else 0


def told_s(text: str) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()


def test_what_slurm_ran_is_what_the_journal_says(tmp_path):
    journal = tmp_path / "journal"
    with EmulatedCluster(tmp_path / "cluster", "v100:4x1,a100:8x1") as cluster:
        cluster.environment["TZ"] = "UTC"
        watch = watching(cluster, journal)
        eventually(lambda: "begin" in events(journal))
        jobs = [
            cluster.submit(f"--gres=gpu:{kind}:{gpus}", "--output=/dev/null", f"--wrap={until_there(tmp_path / end)}")
            for kind, gpus, end in (("v100", 4, "first"), ("v100", 2, "others"), ("a100", 8, "others"))
        ]
        for end, running in (("first", (jobs[0], jobs[2])), ("others", jobs)):  # jobs run until the journal has them
            eventually(lambda running=running: all(runs(journal, job) for job in running))
            (tmp_path / end).touch()
        eventually(lambda: all(states(cluster).get(job) == "COMPLETED" for job in jobs[1:]))
        watch.send_signal(signal.SIGTERM)
        _, said = watch.communicate(timeout=300)
        assert watch.returncode == 143
        assert said.strip().endswith("is kept, the same command goes on with it")

        again = watching(cluster, journal, "--until-idle")
        lines, said = again.communicate(timeout=300)
        assert again.returncode == 0, said
        assert "0 run on 0 of 12 GPUs, 0 wait; edf would change nothing" in lines
        told = cluster.run("squeue", "--noheader", "--states=all", "--format=%i %V %S %e %N").splitlines()
    seen = SeenCluster.of(journal)
    for line in told:
        job, submitted, started, ended, node = line.split()
        own = seen.jobs[job]
        (run,) = own.runs
        assert (own.submit_s, run.start_s, run.end_s) == tuple(map(told_s, (submitted, started, ended)))
        assert (run.nodes, own.outcome) == ((node,), "completed")
    assert [seen.jobs[job].runs[0].gpus for job in jobs] == [4, 2, 8]
    assert (events(journal).count("begin"), events(journal).count("end")) == (2, 2)  # of both commands


def test_slurm_that_does_not_answer_is_watched_again_when_it_does(tmp_path):
    with EmulatedCluster(tmp_path / "cluster", "v100:4x1") as cluster:
        missing = tmp_path / "bin"
        missing.mkdir()
        squeue = missing / "squeue"
        cluster.environment["PATH"] = f"{missing}:{cluster.environment['PATH']}"
        squeue.write_text("#!/bin/sh\necho 'squeue: error: Invalid user' >&2\nexit 1\n")
        squeue.chmod(0o755)
        watch = watching(cluster, tmp_path / "journal", "--for", "600s", "--until-idle")
        eventually(lambda: "read-failed" in events(tmp_path / "journal"))
        squeue.unlink()
        lines, said = watch.communicate(timeout=300)
    assert watch.returncode == 0, said
    assert "not read: squeue --all --json: squeue: error: Invalid user; the next round tries again" in lines
    assert "0 run on 0 of 4 GPUs" in lines
