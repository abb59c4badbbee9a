"""The child process of a submission: messages over two pipes, loading it, and answering the process that simulates.

A message is a head of JSON, and bytes. Nothing that is read is unpickled or run.
"""

from __future__ import annotations

import json
import os
import select
import struct
import sys
import time
import traceback
from collections.abc import Callable, Iterable
from pathlib import Path
from types import ModuleType
from typing import Any, TypeAlias

import numpy as np
from numba.core import caching

from gpusched_env.arrays import generator_of
from gpusched_env.model import Configuration, Instance
from gpusched_env.simulator import Board, Facts, Policy, View, check_fit
from gpusched_env.simulator.policy import memory_columns
from gpusched_env.workload import Scenario, make_instance
from gpusched_experiments.sandbox.decisions import SEEN, SentBoard, decisions_of, read
from gpusched_experiments.sandbox.lockdown import CACHE, lock

MOST_HEAD = 2**16
PIECE = 2**20
SIZES = struct.Struct("<QQ")
MILLISECONDS = 1000.0


class ClosedError(Exception):
    """The other side is gone."""


class TooLateError(Exception):
    """The other side took too long."""


class NoMessageError(Exception):
    """What came is no message of the kind that was awaited; says why."""


class Channel:
    """Sends and receives messages.

    Args:
        incoming: File descriptor to read from.
        outgoing: File descriptor to write to.
    """

    def __init__(self, incoming: int, outgoing: int) -> None:
        self.incoming, self.outgoing = incoming, outgoing
        os.set_blocking(incoming, False)
        os.set_blocking(outgoing, False)

    def send(self, head: dict[str, Any], body: Iterable[bytes] = (), *, until: float | None = None) -> None:
        """Send a message.

        Args:
            head: What JSON can hold.
            body: Pieces of the bytes behind it.
            until: When to give up, by `time.monotonic` [s]; None for never.

        Raises:
            ClosedError: Nobody reads.
            TooLateError: It was not read in time.
        """
        text = json.dumps(head).encode()
        behind = b"".join(body)
        data = memoryview(SIZES.pack(len(text), len(behind)) + text + behind)
        while data:
            _wait(self.outgoing, select.POLLOUT, until)
            try:
                data = data[os.write(self.outgoing, data[:PIECE]) :]
            except BlockingIOError:
                continue
            except OSError as error:
                raise ClosedError from error

    def receive(self, most: int, *, most_head: int = MOST_HEAD, until: float | None = None) -> tuple[Any, bytes]:
        """Receive a message: its head, which is a dictionary, and the bytes behind it.

        Args:
            most: Most bytes behind the head.
            most_head: Most bytes of the head.
            until: When to give up, by `time.monotonic` [s]; None for never.

        Raises:
            ClosedError: The other side is gone.
            TooLateError: It took too long.
            NoMessageError: It is no such message, or larger.
        """
        of_head, of_body = SIZES.unpack(self._read(SIZES.size, until))
        if of_head > most_head or of_body > most:
            raise NoMessageError(f"{of_head:,} and {of_body:,} bytes, more than belong there")
        try:
            head = json.loads(self._read(of_head, until))
        except (ValueError, RecursionError) as error:
            raise NoMessageError("no JSON") from error
        if not isinstance(head, dict):
            raise NoMessageError("no JSON object")
        return head, self._read(of_body, until)

    def close(self) -> None:
        """Close both pipes."""
        os.close(self.incoming)
        os.close(self.outgoing)

    def _read(self, count: int, until: float | None) -> bytes:
        parts, left = [], count
        while left:
            _wait(self.incoming, select.POLLIN, until)
            try:
                part = os.read(self.incoming, min(left, PIECE))
            except BlockingIOError:
                continue
            except OSError as error:
                raise ClosedError from error
            if not part:
                raise ClosedError
            parts.append(part)
            left -= len(part)
        return b"".join(parts)


def _wait(descriptor: int, event: int, until: float | None) -> None:
    """Wait until it can be read from, or written to; an end of the other side is found there."""
    poll = select.poll()
    poll.register(descriptor, event)
    left = None if until is None else until - time.monotonic()
    if left is not None and left <= 0.0:
        raise TooLateError
    if not poll.poll(None if left is None else left * MILLISECONDS):
        raise TooLateError


def main(settings: dict[str, Any], held: list[str]) -> None:
    """Serve the process that has started this one until it is gone; `held` are the protections that hold already."""
    for owner, name in ((caching.Cache, "save_overload"), (caching._CacheLocator, "ensure_cache_path")):  # noqa: SLF001
        setattr(owner, name, lambda *_: None)  # Numba reads what it has compiled before, and cannot store anything
    channel = Channel(settings["in"], settings["out"])
    compiled = [Path(os.environ[CACHE])] if os.environ.get(CACHE) else []
    Server(channel).serve([*held, *lock([Path.cwd(), *compiled])])
    os._exit(0)  # what it has left to be done at the end is not


AGENT_FOLDER = "agent"
MODULE = "submitted"


class Refused(Exception):  # noqa: N818 - it is an answer
    """What the entry has is no policy; says why."""


def maker(kind: str, source: bytes, file: str, made_by: str) -> Callable[[], Policy]:
    """Load the agent in the present folder, or run a Python file; give what makes the policy for every run.

    Args:
        kind: `agent` or `python`.
        source: Content of the Python file.
        file: Its name.
        made_by: Name of the policy in it, or of what makes it without arguments.

    Raises:
        Refused: There is none.
    """
    if kind == "agent":
        from gpusched_agents.policy import load_policy  # noqa: PLC0415 - a Python file may do without

        agent: Policy = load_policy(f"./{AGENT_FOLDER}")
        return lambda: agent
    module = sys.modules[MODULE] = ModuleType(MODULE)
    exec(compile(source, file, "exec", dont_inherit=True), module.__dict__)  # noqa: S102 - this process is for it
    found: Any = getattr(module, made_by, None)
    if found is None:
        raise Refused(f"has no {made_by}: give the policy that name, or submit {file}:NAME")
    make: Callable[[], Any] = found if isinstance(found, type) or not isinstance(found, Policy) else lambda: found
    if not callable(make):
        raise Refused(f"{made_by} is no policy: it has no name, preemption and decide")

    def checked() -> Policy:
        policy = make()
        if isinstance(policy, type) or not isinstance(policy, Policy):
            raise Refused(f"{made_by} makes no policy: it has no name, preemption and decide")
        if not isinstance(policy.preemption, bool):
            raise Refused("preemption is neither True nor False")
        return policy

    return checked


def text_of(error: BaseException, file: str) -> str:
    """Return what went wrong, and on which line of the file."""
    if isinstance(error, Refused):
        return str(error)
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if Path(frame.filename).name == file]
    if isinstance(error, SyntaxError):
        lines = [error.lineno]
    where = f"line {lines[-1]}: " if lines else ""
    return f"{where}{type(error).__name__}" + (f": {error}" if str(error) else "")


MOST = 2**31
Answer: TypeAlias = tuple[dict[str, Any], list[bytes]]


class Server:
    """Answers over a channel, a message each."""

    _make: Callable[[], Policy]
    _policy: Policy
    _copy: SentBoard
    _view: View
    _rng: np.random.Generator

    def __init__(self, channel: Channel) -> None:
        self.channel, self.file = channel, ""

    def serve(self, held: list[str]) -> None:
        """Report which protections hold, then answer until nobody is there; what goes wrong is an answer too."""
        self.channel.send({"held": held})
        answers = {"load": self._load, "fit": self._fit, "begin": self._begin, "round": self._round}
        while True:
            try:
                head, body = self.channel.receive(MOST, most_head=MOST)
            except ClosedError:
                return
            try:
                answer, parts = answers[head["kind"]](head, memoryview(body))
            except BaseException as error:  # noqa: BLE001 - whatever a policy raises is said
                answer, parts = {"error": text_of(error, self.file)[:1000]}, []
            self.channel.send(answer, parts)

    def _load(self, head: dict[str, Any], body: memoryview) -> Answer:
        self.file = head["file"]
        self._make = maker(head["what"], bytes(body), head["file"], head["made_by"])
        policy = self._make()
        return {"preemption": bool(policy.preemption), "named": isinstance(policy.name, str)}, []

    def _fit(self, head: dict[str, Any], _: memoryview) -> Answer:
        """Return why the policy cannot decide on such workloads; nothing if it can."""
        try:
            check_fit([self._make()], _another(head))
        except ValueError as error:
            return {"misfit": str(error)[:1000]}, []
        return {}, []

    def _begin(self, head: dict[str, Any], body: memoryview) -> Answer:
        """Begin a run."""
        facts, body = read(head["facts"], body)
        arrays, _ = read(head["board"], body)
        self._policy = self._make()
        columns = memory_columns(self._policy, _another(head))
        jobs = len(arrays["jobs"])
        scratch = {"keys": np.zeros(jobs), "order": np.zeros(jobs, dtype=np.int64), "memory": np.zeros((jobs, columns))}
        board = Board(facts=Facts(**facts), **{name: arrays[name] for name in SEEN}, **scratch)
        self._copy = SentBoard(board)
        self._view = View(board, tuple(Configuration(*each) for each in head["configurations"]))
        self._rng = generator_of(head["random"])
        return {}, []

    def _round(self, head: dict[str, Any], body: memoryview) -> Answer:
        """Decide a round."""
        self._copy.change(head["changes"], body)
        self._policy.decide(self._view, self._rng)
        return {}, decisions_of(self._copy.board, self._copy.active)


def _another(head: dict[str, Any]) -> Instance:
    """Make another workload of the same kind: it has the cluster of the one that is run, and not its jobs."""
    return make_instance(Scenario.model_validate(head["scenario"]), head["another_seed"])
