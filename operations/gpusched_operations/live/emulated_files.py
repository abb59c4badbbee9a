"""The files of a Slurm test cluster with made-up GPUs: which nodes it has, slurm.conf, gres.conf, programs of nodes.

They are for trials, not for a site: all daemons run on one machine and listen on its loopback address, and the
scheduler looks every second, where a site's looks every minute.
"""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from gpusched_env.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

NODES = "v100:4x2,a100:8x2"
"""The nodes of the trial cluster: 2 nodes of 4 V100 and 2 of 8 A100."""

MOST_NODES, MOST_GPUS_PER_NODE = 1_000, 64
CPUS_PER_GPU = 8
PARTITION = "gpu"

MARK = "GPUSCHED_EMULATED"
"""Environment variable of every daemon: the path of the cluster's slurm.conf. By it `stop` finds them."""

MARK_NODE = "GPUSCHED_EMULATED_NODE"
"""Environment variable of a node's daemon: the node's name."""

FAST = "sched_interval=1,bf_interval=1,batch_sched_delay=0,sched_min_interval=50000"
"""How often a cluster whose jobs run is looked at: with thousands of jobs that would take all of Slurm's time."""

_GROUP = re.compile(r"([a-z][a-z0-9_]*):([0-9]+)x([0-9]+)")


@dataclass(frozen=True, slots=True)
class NodeGroup:
    """Nodes that are alike.

    Attributes:
        gpu_type: Type of their GPUs, as Slurm names it: lower case.
        gpus: GPUs of each node, ≥ 1.
        count: Number of nodes, ≥ 1.
    """

    gpu_type: str
    gpus: int
    count: int

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(f"{self.gpu_type}-{number}" for number in range(1, self.count + 1))

    @property
    def listed(self) -> str:
        """Return the names as Slurm's files write them: `v100-[1-2]`."""
        return f"{self.gpu_type}-[1-{self.count}]"


def node_groups(text: str) -> tuple[NodeGroup, ...]:
    """Read `TYPE:GPUSxNODES` with commas: `v100:4x2,a100:8x2` is 2 nodes of 4 V100 and 2 of 8 A100."""
    groups = []
    for part in text.split(","):
        found = _GROUP.fullmatch(part.strip())
        if found is None:
            raise InputError("--nodes", text, "TYPE:GPUSxNODES with commas, types in lower case, such as v100:4x2")
        groups.append(NodeGroup(found[1], int(found[2]), int(found[3])))
    if len({group.gpu_type for group in groups}) < len(groups):
        raise InputError("--nodes", text, "each type once")
    if any(not 1 <= group.gpus <= MOST_GPUS_PER_NODE or group.count < 1 for group in groups):
        raise InputError("--nodes", text, f"1 to {MOST_GPUS_PER_NODE} GPUs a node, and one node or more of each type")
    if sum(group.count for group in groups) > MOST_NODES:
        raise InputError("--nodes", text, f"at most {MOST_NODES} nodes")
    return tuple(groups)


@dataclass(frozen=True, slots=True)
class EmulatedLayout:
    """Where a cluster lies and listens.

    Attributes:
        folder: Its folder, absolute.
        short: The same or a link to it: a path that is short enough for sockets in it.
        name: Its name; no other cluster of this machine has it.
        host: Name of this machine.
        user: The user of all daemons.
        port: Port of the control daemon.
        node_ports: Ports of the nodes, in the order of their groups.
        groups: The nodes.
        daemons: Whether nodes have daemons. Without them the nodes look switched off for ever, and no job runs.
        settings: More lines of slurm.conf.
        shares: Shares of each GPU that jobs may ask for with `--gres=shard`, ≥ 0; 0: none.
    """

    folder: Path
    short: Path
    name: str
    host: str
    user: str
    port: int
    node_ports: tuple[int, ...]
    groups: tuple[NodeGroup, ...]
    daemons: bool = True
    settings: tuple[str, ...] = ()
    shares: int = 0

    @property
    def conf(self) -> Path:
        return self.folder / "slurm.conf"

    @property
    def socket(self) -> Path:
        return self.short / "run" / "munge.socket"


def slurm_conf(layout: EmulatedLayout) -> str:
    """Write slurm.conf.

    Fast decisions: the scheduler looks at once after a change and else each second; jobs have 2 s between SIGTERM and
    SIGKILL; a job that was put back may start after 20 s, or at once with `StartTime=now`; a node that does not answer
    for 10 s is down. Nodes are switched off and on by `suspend` and `resume`, only when somebody says so.
    """
    folder = layout.folder
    lines = [
        f"ClusterName={layout.name}",
        f"SlurmctldHost={layout.host}(127.0.0.1)",
        f"SlurmctldPort={layout.port}",
        f"SlurmUser={layout.user}",
        f"SlurmdUser={layout.user}",
        "AuthType=auth/munge",
        f"AuthInfo=socket={layout.socket},cred_expire=20",
        "CommunicationParameters=NoInAddrAny,NoCtldInAddrAny",
        f"StateSaveLocation={folder}/state",
        f"SlurmdSpoolDir={layout.short}/spool/%n",
        f"SlurmctldPidFile={folder}/run/slurmctld.pid",
        f"SlurmdPidFile={folder}/run/%n.pid",
        f"SlurmctldLogFile={folder}/log/slurmctld.log",
        f"SlurmdLogFile={folder}/log/%n.log",
        "ProctrackType=proctrack/pgid",
        "TaskPlugin=task/none",
        "JobAcctGatherType=jobacct_gather/none",
        "SelectType=select/cons_tres",
        "SelectTypeParameters=CR_Core",
        "SchedulerType=sched/backfill",
        *((f"SchedulerParameters={FAST}",) if layout.daemons else ()),
        f"GresTypes=gpu{',shard' if layout.shares else ''}",
        "SlurmdParameters=config_overrides",
        "JobRequeue=1",
        "KillWait=2",
        "MinJobAge=3600",
        "MaxJobCount=20000",
        "ReturnToService=2",
        "SlurmdTimeout=10",
        "SlurmctldParameters=power_save_interval=1,power_save_min_interval=0",
        f"SuspendProgram={folder}/suspend",
        f"ResumeProgram={folder}/resume",
        "SuspendTime=86400",
        "SuspendTimeout=4",
        "ResumeTimeout=60",
        "SuspendRate=0",
        "ResumeRate=0",
        *(() if layout.daemons else ("PrivateData=cloud",)),  # else Slurm shows no cloud nodes that are off
        *layout.settings,
    ]
    first = 0
    for group in layout.groups:
        ports = layout.node_ports[first : first + group.count]
        first += group.count
        cpus = CPUS_PER_GPU * group.gpus
        cloud = "" if layout.daemons else " State=CLOUD"
        gres = f"gpu:{group.gpu_type}:{group.gpus}" + (f",shard:{layout.shares * group.gpus}" if layout.shares else "")
        lines.extend(
            f"NodeName={name} NodeHostname={layout.host} NodeAddr=127.0.0.1 Port={port} CPUs={cpus}"
            f" RealMemory={1000 * group.gpus} Gres={gres} Feature={group.gpu_type}{cloud}"
            for name, port in zip(group.names, ports, strict=True)
        )
    lines.append(f"PartitionName={PARTITION} Nodes=ALL Default=YES MaxTime=INFINITE State=UP OverSubscribe=NO")
    return "\n".join(lines) + "\n"


def gres_conf(layout: EmulatedLayout) -> str:
    """Write gres.conf: each GPU is a file of the folder that leads to /dev/null, since Slurm wants a device."""
    return "".join(
        f"NodeName={group.listed} Name=gpu Type={group.gpu_type} File={layout.folder}/dev/gpu{numbers}"
        " Flags=nvidia_gpu_env\n"
        for group in layout.groups
        for numbers in (f"[0-{group.gpus - 1}]" if group.gpus > 1 else "0",)
    ) + "".join(
        f"NodeName={group.listed} Name=shard Count={layout.shares * group.gpus}\n"
        for group in layout.groups
        if layout.shares
    )


def node_program(layout: EmulatedLayout, what: str, slurmd: Sequence[str], path: str) -> str:
    """Write the program that Slurm runs to switch nodes on or off, with a list of nodes as its argument.

    Args:
        what: `resume` starts the daemon of each node, `suspend` stops it.
    """
    start = f'{MARK_NODE}="$node" {shlex.join(slurmd)} -N "$node"'
    stop = f'kill "$(cat {shlex.quote(str(layout.folder))}/run/"$node".pid)" || true'
    if not layout.daemons:
        start = stop = ":"
    # Slurm runs it with a short PATH and without a standard input: the daemon would take that number for its log or a
    # socket, lose it as it goes into the background, and fail at its first job ("launch failed requeued held").
    return (
        f"#!/bin/sh\nexport PATH={shlex.quote(path)}\n"
        f"exec </dev/null >>{shlex.quote(str(layout.folder))}/log/{what}.log 2>&1\n"
        f"export SLURM_CONF={shlex.quote(str(layout.conf))} {MARK}={shlex.quote(str(layout.conf))}\n"
        f'for node in $(scontrol show hostnames "$1"); do\n  {start if what == "resume" else stop}\ndone\n'
    )
