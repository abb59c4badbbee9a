"""Compiling ahead: a tiny run of everything, and a note of what was compiled."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import Any

import numba
import numpy as np
from llvmlite.binding import get_host_cpu_name
from numba.core import event

import gpusched_env
from gpusched_agents.any_policy import known_policies, make_any_policy
from gpusched_baselines.adaptation_env import GpuAdaptationEnv
from gpusched_baselines.bounds.capacity import capacity_bound, clairvoyant_bound, non_clairvoyant_bound
from gpusched_baselines.bounds.priced import priced_bound
from gpusched_env.child_processes import children_ignore_sigint, usable_cores
from gpusched_env.files import write_atomically
from gpusched_env.mechanisms.cap.model import PowerCap
from gpusched_env.mechanisms.prices.model import PriceSeries
from gpusched_env.mechanisms.rent.model import Rent
from gpusched_env.model import Configuration, EpochDistribution, GpuType, Instance, Job, Node
from gpusched_env.simulator import Policy, simulate
from gpusched_env.simulator.builds import FORCED
from gpusched_env.simulator.placement.placement import place
from gpusched_env.simulator.policy import can_decide, memory_columns
from gpusched_env.simulator.state import State


def tiny_instance(*, energy: bool = False) -> Instance:
    """Make an instance of two GPU types, two nodes and six jobs that have to wait for one another, as they once did.

    Args:
        energy: Whether prices change, GPU time has one, power is capped, and jobs run at two power limits.
    """
    types = (GpuType("slow", 100.0, 100.0, 16.0), GpuType("fast", 300.0, 200.0, 16.0))
    distribution = EpochDistribution.from_masses([3.0, 2.0, 1.0])
    one_gpu_s = {"slow": 30.0, "fast": 10.0}
    limits = (1.0, 0.7) if energy else (1.0,)
    seconds = {
        Configuration(name, gpus, power_limit=limit): one_gpu_s[name] / gpus**0.8 / limit**0.5
        for limit in limits
        for name in one_gpu_s
        for gpus in (1, 2)
    }
    jobs = [Job(5.0 * i, 5.0 * i + 400.0, 0.03, 10.0, distribution, 10.0 * (1 + i % 3) / 3, seconds) for i in range(6)]
    made = Instance.from_jobs(types, (Node("slow", 2), Node("fast", 2)), jobs, list(seconds), name="warm-up")
    ran = np.argmin(made.jobs.seconds_per_epoch, axis=1)
    made = replace(made, jobs=replace(made.jobs, traced_start_s=made.jobs.submission_s + 1.0, traced_config=ran))
    if not energy:
        return made
    prices = PriceSeries(np.array([0.0, 60.0, 120.0]), np.array([0.3, 0.1, 0.2]))
    return made.with_mechanisms(Rent(1.0), prices, PowerCap((0.0, 12.0), (0.6, 1.0)))  # first too little for all


def warm_up(policies: Sequence[Policy]) -> None:
    """Run every policy once on a tiny instance; those that cannot decide on it are left out."""
    instance = tiny_instance()
    for policy in policies:
        if can_decide(policy, instance):
            simulate(instance, policy, record=False)


@contextmanager
def two_processes(steps: Sequence[str]) -> Iterator[None]:
    """Let another process compile, too, while the body does, from its first kernel that is not on the disk.

    It begins at the other end: with placement, which a run needs last, and with the last of `steps`, names of
    policies and agents or of other steps of `warm_up_steps`. What one process has compiled the other one finds on the
    disk. Where there is one core only, nothing is started.
    """
    other = _OtherProcess(steps)
    with event.install_listener("numba:compile", other):
        try:
            yield
        finally:
            other.end()


class _OtherProcess(event.Listener):
    """A process that is started when the first kernel is compiled."""

    def __init__(self, steps: Sequence[str]) -> None:
        self.steps = steps
        self.process: subprocess.Popen[bytes] | None = None
        self.possible = usable_cores() > 1

    def on_start(self, event: Any) -> None:  # noqa: ARG002 - Numba's
        """Start it, once."""
        if self.possible:
            self.possible = False
            code = f"from {__name__} import compile_from_the_other_end as c; c()"
            with children_ignore_sigint():
                self.process = subprocess.Popen(  # noqa: S603 - our own
                    [sys.executable, "-c", code, *self.steps],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                )

    def on_end(self, event: Any) -> None:
        """Do nothing when a kernel has been compiled."""

    def end(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.communicate()


def compile_from_the_other_end() -> None:
    """Compile placement, and the steps `sys.argv[1:]` from the last to the first, until standard input is closed."""
    threading.Thread(target=_end_with_input, daemon=True).start()
    state = State(tiny_instance())
    kernels: Any = place
    kernels.compile((numba.typeof(state.board), numba.int64, numba.int64))  # type: ignore[no-untyped-call]
    state.commit_round()
    others = dict(warm_up_steps(()))
    for name in reversed(sys.argv[1:]):
        with suppress(Exception):  # the first process says what is wrong
            others.get(name, partial(_policy, name))()


def _end_with_input() -> None:
    sys.stdin.read()
    os._exit(0)


STEPS = 3
"""Decisions taken in the environments."""


def _with_energy() -> tuple[bool, ...]:
    """Return what to run: the plain instance; with the build with everything also that of energy."""
    return (False, True) if os.environ.get(FORCED) else (False,)


def warm_up_steps(policies: Sequence[str] | None = None) -> Iterator[tuple[str, Callable[[], None]]]:
    """Yield what to do, each with its name: the bounds, the environments that train agents, every policy and agent."""
    yield "bounds", partial(_bounds)
    yield "environment", _environment
    yield "environments at once", _environments
    yield "adaptation environments", _adaptation
    for name in known_policies() if policies is None else policies:
        yield name, partial(_policy, name)


def _bounds() -> None:
    for energy in _with_energy():
        instance = tiny_instance(energy=energy)
        clairvoyant_bound(instance)
        non_clairvoyant_bound(instance)
        capacity_bound(instance)
    if instance.find("prices") is not None:
        priced_bound(instance.without("cap"), [0.0, 60.0], np.zeros((len(instance.gpu_types), 1)))


def _policy(name: str) -> None:
    """Run it as comparisons do, as a run that is drawn or kept is, and job by job."""
    policy = make_any_policy(name)
    for energy in _with_energy():
        instance = tiny_instance(energy=energy)
        if can_decide(policy, instance):
            for record in (False, True):
                simulate(instance, policy, record=record)
    choose = getattr(policy, "choose", None)
    if choose is not None:
        state = State(tiny_instance(), memory_columns=memory_columns(policy, tiny_instance()))
        state.advance()
        state.begin_round(policy.preemption)
        choose(state.view, int(state.view.active[0]))


def _environment() -> None:
    env = gpusched_env.GpuClusterEnv("tiny")
    env.reset(seed=0)
    for _ in range(STEPS):
        env.step(int(np.flatnonzero(env.action_masks())[-1]))
    env.close()


def _environments() -> None:
    env = gpusched_env.GpuClusterVectorEnv(2, "tiny")
    env.reset(seed=0)
    for _ in range(STEPS):
        env.step(np.array([np.flatnonzero(mask)[-1] for mask in env.action_masks()]))
    env.close()


def _adaptation() -> None:
    """Run it; with the build with everything also on shared GPUs, whose times are planned beside co-runners."""
    for scenario in ("tiny", "sharing")[: len(_with_energy())]:
        env = GpuAdaptationEnv(scenario, settings={"jobs.count": 5})
        env.reset(seed=0)
        over = False
        while not over:
            _, _, terminated, truncated, _ = env.step(np.zeros(env.action_space.shape, np.float32))
            over = terminated or truncated
        env.close()


PACKAGES = ("gpusched_env", "gpusched_baselines", "gpusched_agents", "gpusched_experiments")
NAME = "gpusched-warm-up{}.json"


def is_compiled(steps: Iterable[str]) -> bool:
    return set(steps) <= set(_noted())


def note_compiled(steps: Iterable[str]) -> None:
    text = json.dumps({"of": _origin(), "steps": sorted({*_noted(), *steps})})
    write_atomically(_file(), text + "\n")


def _noted() -> list[str]:
    try:
        noted = json.loads(_file().read_text(encoding="utf-8"))
        return list(noted["steps"]) if noted["of"] == _origin() else []
    except (OSError, ValueError, KeyError, TypeError):
        return []


def _origin() -> list[Any]:
    return [*_stamp(), numba.__version__, platform.python_version(), get_host_cpu_name()]


def _file() -> Path:
    kernels: Any = place
    forced = os.environ.get(FORCED)
    return Path(kernels.stats.cache_path) / NAME.format(f"-{forced}" if forced else "")


def _stamp() -> tuple[float, int]:
    folders = [Path(str(files(package))) for package in PACKAGES]
    stats = [path.stat() for folder in folders for path in folder.rglob("*.py")]
    return max(s.st_mtime for s in stats), sum(s.st_size for s in stats)
