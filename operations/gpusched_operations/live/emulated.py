"""A Slurm cluster with made-up GPUs on this machine: real daemons in a folder, started and stopped as one.

`slurmctld`, one `slurmd` for each node, and a munge daemon of its own with a key of its own: nothing of the machine is
changed, several clusters run side by side, and no rights are needed that the user lacks.
"""

from __future__ import annotations

import getpass
import hashlib
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from gpusched_env.errors import InputError, RunError
from gpusched_operations.live.emulated_files import (
    MARK,
    MARK_NODE,
    NODES,
    EmulatedLayout,
    gres_conf,
    node_groups,
    node_program,
    slurm_conf,
)
from gpusched_operations.live.emulated_processes import end, free_ports, is_there, last_line, processes

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import TracebackType
    from typing import Self

PROGRAMS = ("slurmctld", "slurmd", "munged", "sbatch", "squeue", "scontrol", "sinfo")
PACKAGES = "slurmctld slurmd slurm-client munge slurm-wlm-basic-plugins"
STARTED_S = 180.0
"""Longest time until all nodes are ready [s]."""

STOPPED_S = 60.0
"""Longest time until all processes are gone [s]."""

FOLDER_BYTES = 60
"""Longest path under which sockets are made in a folder: the kernel takes 107 bytes for a path to a socket."""

_SYSTEM_PATH = "/usr/sbin:/usr/local/sbin:/sbin"


def missing_programs() -> tuple[str, ...]:
    path = f"{os.environ.get('PATH', os.defpath)}:{_SYSTEM_PATH}"
    return tuple(name for name in PROGRAMS if shutil.which(name, path=path) is None)


class EmulatedCluster:
    """A Slurm cluster in a folder; as a context manager it runs inside and is gone after.

    Args:
        folder: Its folder: a new one, an empty one, or that of an earlier cluster, whose files it replaces.
        nodes: Its nodes, as `emulated_files.node_groups` reads them.
        daemons: Whether nodes have daemons. Without them no job runs: for the size of queues only.
        settings: More lines of slurm.conf.
        shares: Shares of each GPU that jobs may ask for, ≥ 0; 0: none.

    Attributes:
        conf: Path of its slurm.conf: what commands of Slurm find in `SLURM_CONF`.
        environment: The environment in which commands of Slurm mean this cluster.
        nodes: Names of its nodes.

    Raises:
        InputError: The nodes are written wrongly.
    """

    def __init__(
        self,
        folder: str | Path,
        nodes: str = NODES,
        *,
        daemons: bool = True,
        settings: Sequence[str] = (),
        shares: int = 0,
    ) -> None:
        self.folder = Path(folder).absolute()
        self.conf = self.folder / "slurm.conf"
        self._groups = node_groups(nodes)
        self._daemons = daemons
        self._settings = tuple(settings)
        self._shares = shares
        self._sockets: tuple[socket.socket, ...] = ()
        self.nodes = tuple(name for group in self._groups for name in group.names)
        self.environment = {
            **os.environ,
            "SLURM_CONF": str(self.conf),
            "PATH": f"{os.environ.get('PATH', os.defpath)}:{_SYSTEM_PATH}",
        }

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def start(self) -> None:
        """Write the files, start all daemons, and wait until every node is idle."""
        if missing := missing_programs():
            allowed = f"a machine with Slurm: {', '.join(missing)} not found (Debian: apt-get install {PACKAGES})"
            raise InputError("slurm emulate", str(self.folder), allowed)
        if self.folder.exists() and any(self.folder.iterdir()) and not self.conf.is_file():
            raise InputError("DIR", str(self.folder), "a new or an empty folder, or that of an emulated cluster")
        if self._pids():
            raise InputError("DIR", str(self.folder), "a folder whose cluster does not run; stop it first")
        try:
            layout = self._write()
            self._start_munge(layout)
            self._command("slurmctld", "-f", str(self.conf), "-i", "-c")
            self._wait_for("the control daemon answers", self._answers)
            if self._daemons:
                for name in self.nodes:
                    self.start_node(name)
                self._wait_for("all nodes are idle", lambda: set(self.node_states().values()) == {"idle"})
        except BaseException:
            self.stop()
            raise

    def stop(self) -> int:
        """End every process of the cluster, those of jobs too, and return their number; the files stay."""
        by_s = time.monotonic() + STOPPED_S
        ended: set[int] = set()
        while pids := self._pids():
            end(pids)
            ended |= pids
            if time.monotonic() > by_s:
                raise RunError(f"processes of the cluster in {self.folder} do not end: {sorted(pids)}")
            time.sleep(0.05)
        for each in self._sockets:
            each.close()
        if self._short() != self.folder:
            self._short().unlink(missing_ok=True)
        return len(ended)

    def run(self, *command: str, check: bool = True) -> str:
        """Run a command of Slurm on this cluster and return what it writes; with `check` it must succeed."""
        done = subprocess.run(  # noqa: S603 - commands of Slurm
            command, env=self.environment, capture_output=True, text=True, check=False, timeout=60.0
        )
        if check and done.returncode != 0:
            said = (done.stderr.strip() or done.stdout.strip()).splitlines()[-1:]
            raise RunError(f"{' '.join(command)}: exit code {done.returncode}: {''.join(said)}")
        return done.stdout

    def submit(self, *arguments: str) -> str:
        return self.run("sbatch", "--parsable", *arguments).strip().split(";")[0]

    def node_states(self) -> dict[str, str]:
        """Return the state of each node in Slurm's words, such as `idle`, `mix`, `idle~` (off), `down*`."""
        lines = self.run("sinfo", "--noheader", "--Node", "--format=%N %t").split("\n")
        return dict(line.split() for line in lines if line)

    def start_node(self, name: str) -> None:
        self._command("slurmd", "-b", "-f", str(self.conf), "-N", name, **{MARK_NODE: name})

    def crash_node(self, name: str) -> None:
        """End a node's daemon and all that runs on it at once, as a power cut does."""
        end(self._pids(f"{MARK_NODE}={name}", f"SLURMD_NODENAME={name}"))

    def restart_controller(self) -> None:
        pid = int((self.folder / "run" / "slurmctld.pid").read_text())
        os.kill(pid, signal.SIGTERM)
        self._wait_for("the control daemon ends", lambda: not is_there(pid))
        self._command("slurmctld", "-f", str(self.conf), "-i")
        self._wait_for("the control daemon answers", self._answers)

    # What follows is about files and processes.

    def _short(self) -> Path:
        if len(os.fsencode(self.folder)) <= FOLDER_BYTES:
            return self.folder
        return Path(tempfile.gettempdir()) / self._name()

    def _name(self) -> str:
        return f"emulated{hashlib.sha256(os.fsencode(self.folder)).hexdigest()[:12]}"

    def _write(self) -> EmulatedLayout:
        for part in ("state", "spool", "log", "dev", "run"):
            shutil.rmtree(self.folder / part, ignore_errors=True)
            (self.folder / part).mkdir(parents=True)
        for number in range(max(group.gpus for group in self._groups)):
            (self.folder / "dev" / f"gpu{number}").symlink_to("/dev/null")
        short = self._short()
        if short != self.folder:
            short.unlink(missing_ok=True)
            short.symlink_to(self.folder)
        self._sockets = free_ports(1 + len(self.nodes))
        ports = tuple(each.getsockname()[1] for each in self._sockets)
        layout = EmulatedLayout(
            self.folder, short, self._name(), socket.gethostname().split(".")[0], getpass.getuser(),
            ports[0], ports[1:], self._groups, self._daemons, self._settings, self._shares,
        )  # fmt: skip
        key = self.folder / "run" / "munge.key"
        key.touch(mode=0o600)
        key.write_bytes(os.urandom(1024))
        slurmd = ("slurmd", "-b", "-f", str(self.conf))
        texts = {
            "slurm.conf": slurm_conf(layout),
            "gres.conf": gres_conf(layout),
            "suspend": node_program(layout, "suspend", slurmd, self.environment["PATH"]),
            "resume": node_program(layout, "resume", slurmd, self.environment["PATH"]),
        }
        for name, text in texts.items():
            temporary = self.folder / f".{name}"
            temporary.write_text(text, encoding="utf-8")
            temporary.chmod(0o755 if name in ("suspend", "resume") else 0o644)
            temporary.replace(self.folder / name)
        return layout

    def _start_munge(self, layout: EmulatedLayout) -> None:
        run = self.folder / "run"
        self._command(
            "munged", "--force", f"--socket={layout.socket}", f"--key-file={run / 'munge.key'}",
            f"--pid-file={run / 'munged.pid'}", f"--seed-file={run / 'munged.seed'}",
            f"--log-file={self.folder / 'log' / 'munged.log'}",
        )  # fmt: skip

    def _command(self, *command: str, **variables: str) -> None:
        environment = {**self.environment, MARK: str(self.conf), **variables}
        log = self.folder / "log" / "start.log"
        with log.open("ab") as said:
            done = subprocess.run(  # noqa: S603 - daemons of Slurm
                command, env=environment, stdin=subprocess.DEVNULL, stdout=said, stderr=said, check=False, timeout=60.0
            )
        if done.returncode != 0:
            raise RunError(f"{command[0]} does not start (exit code {done.returncode}): {last_line(log)}")

    def _answers(self) -> bool:
        return " is UP" in self.run("scontrol", "ping", check=False)

    def _wait_for(self, what: str, holds: Callable[[], bool]) -> None:
        by_s = time.monotonic() + STARTED_S
        while not holds():
            if time.monotonic() > by_s:
                said = last_line(self.folder / "log" / "slurmctld.log")
                raise RunError(f"the cluster in {self.folder}: not within {STARTED_S:g} s: {what}; its log: {said}")
            time.sleep(0.1)

    def _pids(self, *variables: str) -> set[int]:
        """Return the processes of the cluster; with `variables` only those with one of them, and what these started."""
        mine = ((f"{MARK}={self.conf}",), (f"SLURM_CLUSTER_NAME={self._name()}", "SLURM_JOB_ID="))
        return processes(mine, variables)
