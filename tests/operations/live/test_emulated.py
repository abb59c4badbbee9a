"""A test cluster of Slurm: what is refused before it starts."""

from __future__ import annotations

import socket
from contextlib import ExitStack
from pathlib import Path

import pytest

from gpusched_env.errors import InputError
from gpusched_operations.live import emulated_processes
from gpusched_operations.live.emulated import EmulatedCluster
from gpusched_operations.live.emulated_files import NodeGroup, node_groups
from gpusched_operations.live.emulated_processes import free_ports


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
    monkeypatch.setattr("gpusched_operations.live.emulated.PROGRAMS", ("no-such-slurmctld",))
    with pytest.raises(InputError, match=r"no-such-slurmctld not found .*apt-get install slurmctld"):
        EmulatedCluster(tmp_path / "new").start()
    assert not (tmp_path / "new").exists()


def test_a_port_is_given_once_and_a_daemon_can_listen_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(emulated_processes, "PORTS", (31_000, 31_040))
    given = free_ports(3)
    with ExitStack() as stack:
        for each in (*given, *free_ports(3)):
            stack.enter_context(each)
            listening = stack.enter_context(socket.socket())
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listening.bind(each.getsockname())
            listening.listen()
