"""A test cluster is a real Slurm: GPUs have numbers, nodes go off and on, and nothing is left when it stops."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from gpusched_env.errors import InputError, RunError
from gpusched_operations.live.emulated import EmulatedCluster
from slurm_clusters import needs_slurm, state, states
from waiting import eventually

pytestmark = needs_slurm


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmulatedCluster]:
    with EmulatedCluster(tmp_path_factory.mktemp("cluster")) as cluster:
        yield cluster


def test_a_job_sees_the_gpus_that_it_got(cluster):
    out = cluster.folder / "seen"
    job = cluster.submit(
        "--gres=gpu:3", "--nodelist=a100-2", f"--output={out}", "--wrap=echo $SLURMD_NODENAME $CUDA_VISIBLE_DEVICES"
    )
    eventually(lambda: state(cluster, job) == "COMPLETED")
    assert out.read_text().split() == ["a100-2", "0,1,2"]


def test_a_node_that_was_off_runs_a_job_again(cluster):
    # With 22.05 a daemon that is started without a standard input answers, but fails at its first job.
    cluster.run("scontrol", "update", "NodeName=v100-1", "State=POWER_DOWN")
    eventually(lambda: cluster.node_states()["v100-1"] == "idle~")
    pid_file = cluster.folder / "run" / "v100-1.pid"
    eventually(lambda: not pid_file.exists())  # its daemon is really gone
    job = cluster.submit("--gres=gpu:1", "--nodelist=v100-1", "--output=/dev/null", "--wrap=true")
    eventually(lambda: state(cluster, job) == "COMPLETED")
    assert pid_file.exists()


def test_a_crash_ends_what_runs_on_a_node_and_a_new_controller_knows_all_jobs(cluster):
    submitted = ("--gres=gpu:4", "--output=/dev/null", "--wrap=exec sleep 1000")
    waits = cluster.submit("--hold", *submitted)
    hit, spared = (cluster.submit(f"--nodelist={name}", *submitted) for name in ("v100-2", "a100-1"))
    eventually(lambda: state(cluster, hit) == state(cluster, spared) == "RUNNING")
    cluster.restart_controller()
    known = {hit: "RUNNING", spared: "RUNNING", waits: "PENDING"}
    eventually(lambda: states(cluster).items() >= known.items())
    cluster.crash_node("v100-2")
    eventually(lambda: cluster.node_states()["v100-2"].startswith("down"))
    eventually(lambda: state(cluster, hit) == "PENDING")  # after COMPLETING or REQUEUED
    assert state(cluster, spared) == "RUNNING"
    cluster.start_node("v100-2")
    eventually(lambda: not cluster.node_states()["v100-2"].startswith("down"))


def test_two_clusters_side_by_side_and_nothing_left_of_them(cluster, tmp_path):
    deep = tmp_path / ("d" * 100)  # too long for the path of a socket
    other = EmulatedCluster(deep, "t4:1x1")
    with other:
        with pytest.raises(InputError, match="does not run"):
            EmulatedCluster(deep).start()
        # A job that ignores SIGTERM and has left its session.
        job = other.submit("--output=/dev/null", "--wrap=trap '' TERM; setsid sleep 1234.5 & sleep 1234.5")
        eventually(lambda: state(other, job) == "RUNNING")
        assert job == "1"
        assert set(cluster.node_states()) == {"v100-1", "v100-2", "a100-1", "a100-2"}
        eventually(lambda: len(_processes("sleep\x001234.5")) == 2)
    eventually(lambda: not _processes("sleep\x001234.5") and not _processes(str(deep)))
    assert other.stop() == 0
    assert "UP" in cluster.run("scontrol", "ping")
    with pytest.raises(RunError, match="squeue"):
        other.run("squeue")


def _processes(text: str) -> list[str]:
    """Return the command lines of all processes that have a text in them."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = entry.read_bytes().decode(errors="replace")
        except OSError:
            continue
        if text in line:
            found.append(line)
    return found
