"""A test cluster is a real Slurm: GPUs have numbers, nodes go off and on, and nothing is left when it stops."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from gpusched_env.errors import InputError, RunError
from gpusched_experiments.live.emulated import EmulatedCluster
from gpusched_experiments.live.emulated_files import NodeGroup, node_groups
from slurm_clusters import eventually, needs_slurm, state, states


def test_nodes_are_read_from_a_text() -> None:
    small, large = node_groups("v100:4x2, a100:8x12")
    assert small == NodeGroup("v100", 4, 2)
    assert small.names == ("v100-1", "v100-2")
    assert (large.gpus, large.count, large.listed) == (8, 12, "a100-[1-12]")


@pytest.mark.parametrize(
    "text", ["", "v100", "v100:4", "V100:4x2", "v100:4x2;a100:8x2", "v100:4x2,v100:8x1", "v100:0x2", "v100:4x0",
             "v100:4x1001", "v100:65x1", "v-100:4x1"],
)  # fmt: skip
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(InputError, match="--nodes"):
        node_groups(text)


def test_a_folder_with_other_files_is_refused(tmp_path: Path) -> None:
    (tmp_path / "mine").touch()
    with pytest.raises(InputError, match=r"DIR|slurm emulate"):
        EmulatedCluster(tmp_path).start()
    assert [each.name for each in tmp_path.iterdir()] == ["mine"]


def test_without_slurm_it_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gpusched_experiments.live.emulated.PROGRAMS", ("no-such-slurmctld",))
    with pytest.raises(InputError, match=r"no-such-slurmctld not found .*apt-get install slurmctld"):
        EmulatedCluster(tmp_path / "new").start()
    assert not (tmp_path / "new").exists()


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmulatedCluster]:
    with EmulatedCluster(tmp_path_factory.mktemp("cluster")) as cluster:
        yield cluster


@needs_slurm
@pytest.mark.slow
def test_a_job_sees_the_gpus_that_it_got(cluster: EmulatedCluster) -> None:
    out = cluster.folder / "seen"
    job = cluster.submit(
        "--gres=gpu:3", "--nodelist=a100-2", f"--output={out}", "--wrap=echo $SLURMD_NODENAME $CUDA_VISIBLE_DEVICES"
    )
    eventually(lambda: state(cluster, job) == "COMPLETED")
    assert out.read_text().split() == ["a100-2", "0,1,2"]


@needs_slurm
@pytest.mark.slow
def test_a_node_that_was_off_runs_a_job_again(cluster: EmulatedCluster) -> None:
    # With 22.05 a daemon that is started without a standard input answers, but fails at its first job.
    cluster.run("scontrol", "update", "NodeName=v100-1", "State=POWER_DOWN")
    eventually(lambda: cluster.node_states()["v100-1"] == "idle~")
    pid_file = cluster.folder / "run" / "v100-1.pid"
    assert not pid_file.exists()  # its daemon is really gone
    job = cluster.submit("--gres=gpu:1", "--nodelist=v100-1", "--output=/dev/null", "--wrap=true")
    eventually(lambda: state(cluster, job) == "COMPLETED", 90.0)
    assert pid_file.exists()


@needs_slurm
@pytest.mark.slow
def test_a_crash_ends_what_runs_on_a_node_and_a_new_controller_knows_all_jobs(cluster: EmulatedCluster) -> None:
    submitted = ("--gres=gpu:4", "--output=/dev/null", "--wrap=exec sleep 1000")
    waits = cluster.submit("--hold", *submitted)
    hit, spared = (cluster.submit(f"--nodelist={name}", *submitted) for name in ("v100-2", "a100-1"))
    eventually(lambda: state(cluster, hit) == state(cluster, spared) == "RUNNING")
    cluster.restart_controller()
    assert states(cluster) | {hit: "RUNNING", spared: "RUNNING", waits: "PENDING"} == states(cluster)
    cluster.crash_node("v100-2")
    eventually(lambda: cluster.node_states()["v100-2"] == "down*")
    assert (state(cluster, hit), state(cluster, spared)) == ("PENDING", "RUNNING")
    cluster.start_node("v100-2")
    eventually(lambda: cluster.node_states()["v100-2"] == "idle")


@needs_slurm
@pytest.mark.slow
def test_two_clusters_side_by_side_and_nothing_left_of_them(cluster: EmulatedCluster, tmp_path: Path) -> None:
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
    assert not _processes("sleep\x001234.5")
    assert not _processes(str(deep))
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
