"""A process that decides, as seen from here: started with nothing, asked in time, and ended whatever it does.

`RemotePolicy` is an entry as a policy: it decides there, and what it decides is checked and done here.
"""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from gpusched_env.errors import InputError
from gpusched_env.simulator import View
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.placement.held_nodes import most_spread
from gpusched_env.workload import Scenario, make_instance
from gpusched_env.workload.mixture import variant_of, variants_of
from gpusched_experiments.sandbox.decisions import (
    CONFIGURATION,
    SentBoard,
    apply_decisions,
    decision_bytes,
    parts_of,
    written,
)
from gpusched_experiments.sandbox.lockdown import clean_environment, lacking
from gpusched_experiments.sandbox.serving import AGENT_FOLDER, Channel, ClosedError, NoMessageError, TooLateError
from gpusched_experiments.sandbox.submitted import GIB, SandboxLimits, Submission, SubmissionError, one_line

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.random import Generator

    from gpusched_env.model import Instance

BEGIN = """
import json, sys
settings = json.loads(sys.argv[1])
sys.path[:] = settings["paths"]
from gpusched_experiments.sandbox import lockdown
lockdown.limit_resources(settings["memory"], settings["processor_s"])
held = [lockdown.NETWORK] if lockdown.leave_network() else []  # before what is imported starts a thread
from gpusched_experiments.sandbox.serving import main
main(settings, held)
"""


class Process:
    """One process with an entry in it.

    Args:
        submission: The entry.
        limits: What it may take.

    Attributes:
        preemption: Whether its rounds begin from an empty cluster.
        lacking: What this system cannot protect from, a sentence each.

    Raises:
        SubmissionError: It did not start, or the entry is no policy.
    """

    def __init__(self, submission: Submission, limits: SandboxLimits) -> None:
        self.submission, self.limits = submission, limits
        self._folder = tempfile.TemporaryDirectory(prefix="gpusched-")
        self._ending, self._closed = threading.Lock(), False
        self._start()
        try:
            held, _ = self.ask(None, seconds=limits.start_s)
            self.lacking = lacking(held.get("held") or ())
            self.preemption = self._load()
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def ask(
        self, head: dict[str, Any] | None, body: Iterable[bytes] = (), *, most: int = 0, seconds: float
    ) -> tuple[dict[str, Any], bytes]:
        """Send a message, and give the answer.

        Args:
            head: What is asked; None to wait for what it says by itself.
            body: The bytes behind it.
            most: Most bytes behind the head of the answer.
            seconds: Longest time until it is there.

        Raises:
            SubmissionError: The answer is late, is none, or says that something went wrong; then the process has ended.
        """
        until = time.monotonic() + seconds
        try:
            if head is not None:
                self._channel.send(head, body, until=until)
            answer, behind = self._channel.receive(most, until=until)
        except NoMessageError as error:
            raise self.wrong(f"its process answered with what is no answer ({error})") from None
        except TooLateError:
            raise self.wrong(f"no answer within {seconds:g} s") from None
        except ClosedError:
            raise self._ended() from None
        if "error" in answer:
            raise self.wrong(one_line(answer["error"]))
        return answer, behind

    def wrong(self, text: str) -> SubmissionError:
        """End the process, and give the error that says why."""
        self.close()
        return SubmissionError(f"{self.submission.file}: {text}")

    def kill(self) -> None:
        """End the process and all that it has started; the caller finds that out."""
        with self._ending:
            if not self._closed:
                with suppress(ProcessLookupError, PermissionError):
                    os.killpg(self._child.pid, signal.SIGKILL)

    def close(self) -> None:
        """End the process and all that it has started, and remove its folder."""
        if self._closed:
            return
        self.kill()  # also where it has ended: what it started may be there, and its number is not free before `wait`
        with self._ending:
            self._closed = True
            self._child.wait()
        self._channel.close()
        self._folder.cleanup()

    def _start(self) -> None:
        """Start a process in an empty folder, with no environment, input or output but two pipes."""
        folder = self._folder.name
        if self.submission.kind == "agent":
            place = Path(folder) / AGENT_FOLDER
            place.mkdir()
            for name, content in self.submission.files.items():
                (place / name).write_bytes(content)
        theirs_in, ours_out = os.pipe()
        ours_in, theirs_out = os.pipe()
        settings = {
            "paths": [path for path in sys.path if Path(path).is_absolute()],
            "memory": int(self.limits.memory_gib * GIB), "processor_s": max(1, int(self.limits.all_s)),
            "in": theirs_in, "out": theirs_out,
        }  # fmt: skip
        try:
            self._child = subprocess.Popen(  # noqa: S603 - our own program
                [sys.executable, "-I", "-B", "-c", BEGIN, json.dumps(settings)],
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=folder,
                env=clean_environment(folder), pass_fds=(theirs_in, theirs_out), start_new_session=True,
            )  # fmt: skip
        finally:
            os.close(theirs_in)
            os.close(theirs_out)
        self._channel = Channel(ours_in, ours_out)

    def _load(self) -> bool:
        """Let it read the entry; give whether it preempts."""
        submission = self.submission
        body = next(iter(submission.files.values())) if submission.kind == "python" else b""
        head = {"kind": "load", "what": submission.kind, "file": submission.file, "made_by": submission.made_by}
        answer, _ = self.ask(head, [body], seconds=self.limits.start_s)
        if not isinstance(answer.get("preemption"), bool) or answer.get("named") is not True:
            raise self.wrong("its policy has no name, or preemption is neither True nor False")
        return bool(answer["preemption"])

    def _ended(self) -> SubmissionError:
        """Return how the process ended."""
        code = self._code()
        if code is None:
            return self.wrong("it closed the pipe to this process")
        if code >= 0:
            return self.wrong(f"its process ended by itself (exit code {code})")
        name = signal.Signals(-code).name
        late = f"more than {self.limits.all_s:g} s of processor time"
        why = {"SIGXCPU": f": {late}", "SIGKILL": f": {late}, or the system had no memory left"}
        return self.wrong(f"its process was ended by {name}{why.get(name, '')}")

    def _code(self) -> int | None:
        """Return the code with which the process ended, without waiting for it as `wait` does; None if it has not."""
        if not hasattr(os, "waitid"):
            return self._child.poll()
        for _ in range(50):
            ended = os.waitid(os.P_PID, self._child.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            if ended is not None:
                return ended.si_status if ended.si_code == os.CLD_EXITED else -ended.si_status
            time.sleep(0.1)
        return None


ANOTHER_SEED = 987_654_321


class RemotePolicy:
    """The policy of one run, in a process that has an entry.

    Args:
        process: The process.
        scenario: Scenario of the workload.
        seed: Seed of the workload, which the process is not told.
    """

    def __init__(self, process: Process, scenario: Scenario, seed: int) -> None:
        self.process, self.name, self.preemption = process, process.submission.name, process.preemption
        self._of = workload_of(scenario, seed)
        self._sent: SentBoard | None = None
        self._until = 0.0

    def memory_columns(self, instance: Instance) -> int:  # noqa: ARG002 - its memory is there
        """Return the columns of memory that it needs here."""
        return 1

    def decide(self, view: View, rng: Generator) -> None:
        """Let the process decide a round, and do here what it decided.

        Raises:
            SubmissionError: It did not, in time, or it decided what cannot be.
        """
        limits, board = self.process.limits, view.board
        first = self._sent is None
        if self._sent is None:
            self._sent = self._begin(view, rng)
        if time.monotonic() > self._until:
            raise self.process.wrong(f"a run took longer than {limits.run_s:g} s")
        counts, parts = self._sent.changes(board)
        active, nodes = int(board.count[at.ACTIVE]), len(board.nodes)
        spread = int(most_spread(board))
        most = decision_bytes(active, nodes, spread)
        head = {"kind": "round", "changes": counts}
        _, data = self.process.ask(head, parts, most=most, seconds=limits.start_s if first else limits.round_s)
        if len(data) != most:
            raise self.process.wrong("its process answered with what is no answer")
        try:
            apply_decisions(board, *parts_of(data, active, spread))
        except SubmissionError as error:
            raise self.process.wrong(str(error)) from None

    def _begin(self, view: View, rng: Generator) -> SentBoard:
        """Begin the run there; give what is known there."""
        if len(view.hosts):
            raise InputError("tenancy", "cells", "workloads without cells, for policies that nobody trusts")
        self._until = time.monotonic() + self.process.limits.run_s
        facts, of_facts = written(view.board.facts)
        board, of_board = written(view.board)
        configurations = [[asdict(each)[name] for name in CONFIGURATION] for each in view.configurations]
        head = {"kind": "begin", "facts": facts, "board": board, "configurations": configurations}
        head |= {"random": rng.bit_generator.state} | self._of
        self.process.ask(head, [*of_facts, *of_board], seconds=self.process.limits.start_s)
        return SentBoard(view.board)


def policy_seed(seed: int) -> int:
    """Return the seed of an entry's randomness on the workload with this seed, from 0 to 2^63 - 1.

    The entry gets a generator's state, from which the generator's seed can be worked out; but a hash tells no seed that
    is too large to be found by trying, and so not the workload.
    """
    return int.from_bytes(hashlib.sha256(f"gpusched entry {seed}".encode()).digest()[:8]) >> 1


def workload_of(scenario: Scenario, seed: int) -> dict[str, Any]:
    """Return what a workload is like, by another one: its scenario, of a mixture the seed's, and another seed."""
    another = ANOTHER_SEED if seed != ANOTHER_SEED else ANOTHER_SEED + 1
    return {"scenario": variant_of(scenario, seed).model_dump(mode="json"), "another_seed": another}


def misfit(process: Process, scenario: Scenario) -> str | None:
    """Return why an entry cannot decide on the workloads of a scenario; None if it can.

    Raises:
        SubmissionError: The process ended, or gave no answer.
    """
    for variant in variants_of(scenario):
        if make_instance(variant, ANOTHER_SEED).hosts:
            return "its workloads have cells"
        answer, _ = process.ask({"kind": "fit", **workload_of(variant, 0)}, seconds=process.limits.start_s)
        if "misfit" in answer:
            return one_line(answer["misfit"])
    return None
