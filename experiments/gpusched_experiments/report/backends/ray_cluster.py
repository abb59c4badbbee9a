"""Make calls on all machines of a Ray cluster."""

from __future__ import annotations

import logging
import os
import pickle
import signal
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from itertools import islice
from types import ModuleType
from typing import Any, TypeVar

from gpusched_env.child_processes import usable_cores
from gpusched_env.errors import InputError, MissingExtraError
from gpusched_env.simulator import Policy
from gpusched_experiments.report.backends.ray_worker import CallResult, Serialisation, Terms, make_call, versions
from gpusched_experiments.report.processes import WorkerError
from gpusched_experiments.report.warm_up import two_processes, warm_up

T = TypeVar("T")

RETRIES = 5
"""How often a call is made again when its machine or process is lost."""
HERE = "local"
_QUIET = {
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_DEDUP_LOGS": "0",
}


@dataclass(frozen=True, slots=True)
class RayCluster:
    """The machines of a Ray cluster.

    Every call is a task. One whose machine is lost is made again on another, at most five times. A process takes part
    only if it has the same code as this one.

    Args:
        address: `HOST:PORT` of the cluster, or `auto` for the one that this machine belongs to; None: that of the
            environment variable `RAY_ADDRESS`, and without it a cluster of this machine alone, which ends with this
            process.
    """

    address: str | None = None
    name: str = "ray"

    def cores(self) -> int:
        return max(1, int(self._connected().cluster_resources().get("CPU", 1.0)))

    def call_all(
        self, calls: Sequence[Callable[[], T]], policies: Sequence[Policy], workers: int
    ) -> Iterator[tuple[int, T]]:
        """Make every call as a task of the cluster."""
        if not calls:
            return
        ray = self._connected()
        with two_processes([policy.name for policy in policies]):
            warm_up(policies)  # processes of this machine find it compiled
        terms = Terms(versions(policy.name for policy in policies), os.getcwd(), pickle.dumps(tuple(policies)))  # noqa: PTH109
        put = ray.put(terms)
        serialisation = Serialisation(policies, ray.put)
        task = ray.remote(num_cpus=1, max_retries=RETRIES)(make_call)
        left, running = iter(enumerate(calls)), dict[Any, int]()
        try:
            while True:
                for index, call in islice(left, workers - len(running)):
                    payload, shared = serialisation.packed(call)
                    running[task.remote(put, payload, *shared)] = index
                if not running:
                    return
                for ended in ray.wait(list(running), num_returns=1)[0]:
                    answer = self._answer(ray, ended)
                    yield running.pop(ended), answer.value
        finally:
            if running:  # without its command the cluster stops them; cancelling them one by one can end this process
                ray.shutdown()

    def _answer(self, ray: Any, ended: object) -> CallResult:
        try:
            answer: CallResult = pickle.loads(ray.get(ended))  # noqa: S301 - our own task's
        except ray.exceptions.RayTaskError as error:  # what calls raise is in answers, so the task itself failed
            raise self._refusal(f"this package with the same code, but one says: {error.cause!r}") from error
        except ray.exceptions.RayError as error:
            text = " ".join(str(error).split())
            raise WorkerError(f"a run was lost {RETRIES + 1} times, or the cluster was: {text}") from error
        if answer.refused:
            raise self._refusal(answer.refused)
        if answer.error is not None:
            raise answer.error
        return answer

    def _refusal(self, found: str) -> InputError:
        return InputError("--ray-address", self._place(), f"a cluster whose machines all have the same code ({found})")

    def _place(self) -> str:
        return self.address or os.environ.get("RAY_ADDRESS") or HERE

    def _connected(self) -> Any:
        """Return Ray, connected to the cluster."""
        for name, value in _QUIET.items():
            os.environ.setdefault(name, value)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                ray: Any = import_module("ray")
        except ModuleNotFoundError as error:
            raise MissingExtraError("ray", "ray", "runs on many machines") from error
        if ray.is_initialized():
            return ray
        _silence(import_module("ray._private.worker"))
        own = {"num_cpus": usable_cores(), "include_dashboard": False} if self._place() == HERE else {}
        try:
            with _own_signals(), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                ray.init(self._place(), log_to_driver=False, logging_level=logging.CRITICAL, **own)
        except (ConnectionError, RuntimeError, ValueError) as error:
            allowed = f"HOST:PORT of a Ray cluster that runs, or auto on one of its machines ({error})"
            raise InputError("--ray-address", self._place(), allowed) from error
        return ray


def _silence(worker: ModuleType) -> None:
    """Keep what the cluster says of lost machines off stdout, where results go; Ray has no setting for it."""
    if hasattr(worker, "print_to_stdstream"):
        vars(worker)["print_to_stdstream"] = lambda *_, **__: None


@contextmanager
def _own_signals() -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    former = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in former.items():
            signal.signal(number, handler)
