"""Slurm's commands: with a time limit, tried again where Slurm did not answer, and many jobs in one call.

What Slurm refuses for one job is told for that job; what fails as a whole is a `SlurmError`.
"""

from __future__ import annotations

import re
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import NamedTuple, TypeAlias, TypeVar

from gpusched_env.errors import InputError, RunError

Thing = TypeVar("Thing")
JOBS_A_CALL = 500
"""Most jobs of one call."""
TRIES = 4
FIRST_PAUSE_S = 0.5
_ID = re.compile(r"\d{1,12}")
_NAME = re.compile(r"[\w.\-]{1,256}")
PLAIN = re.compile(r"[!#-&(-~]{0,4000}")
"""One word that may stand in a line of commands: no spaces, and no quotes, which would reach to the end of the line."""
_OF_JOB = re.compile(r"for job (\d+)")
_NOT_THERE = re.compile(
    r"unable to contact slurm controller|socket timed out|connection refused|temporarily unable|"
    r"connection timed out|resource temporarily unavailable|transport endpoint|zero bytes were transmitted|"
    r"unexpected message received|in standby mode|communication connection failure",
    re.IGNORECASE,
)


class Done(NamedTuple):
    """What a command said: its exit code, and both of its outputs."""

    code: int
    output: str
    errors: str


Runner: TypeAlias = Callable[[Sequence[str], str, float], Done]
"""Runs a command: its words, what it reads, and the most seconds that it may take (then a TimeoutError)."""


class SlurmError(RunError):
    """Slurm did not do what a command asked for, as a whole.

    Args:
        command: The command.
        said: What Slurm said.
        answered: Whether it answered at all.
    """

    def __init__(self, command: str, said: str, *, answered: bool) -> None:
        self.command, self.said, self.answered = command, said, answered
        super().__init__(f"{command}: {said}")


def run_command(
    words: Sequence[str],
    text: str,
    limit_s: float,
    environment: Mapping[str, str] | None = None,
    keeps_open: Sequence[int] = (),
) -> Done:
    """Run a command.

    Args:
        keeps_open: Open files that it has, too: their locks last until it ends, even where this process was killed.
    """
    try:
        done = subprocess.run(  # noqa: S603 - Slurm's own commands; ids, names and values are checked
            list(words), input=text, env=environment, capture_output=True, text=True, timeout=limit_s, check=False,
            errors="replace", pass_fds=keeps_open,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise TimeoutError(f"no answer within {limit_s:g} s") from None
    return Done(done.returncode, done.stdout, done.stderr)


@dataclass
class SlurmControl:
    """Runs Slurm's commands.

    Args:
        run: What runs them.
        limit_s: Most seconds of one call [s], > 0.
        pause: What waits before a call is tried again.
        dry: Whether nothing may be changed: what would be is kept in `not_run`.

    Attributes:
        calls: Calls so far.
        tries: How often the last call, or one of its parts, was tried.
        not_run: Changes that were not made because of `dry`.
    """

    run: Runner = run_command
    limit_s: float = 20.0
    pause: Callable[[float], None] = time.sleep
    dry: bool = False
    calls: int = 0
    tries: int = 0
    not_run: list[str] = field(default_factory=list)

    def jobs(self) -> str:
        return self._output(("squeue", "--all", "--json"))

    def nodes(self) -> str:
        return self._output(("scontrol", "show", "nodes", "--details"))

    def overview(self, partition: str) -> frozenset[str]:
        """Return a line for every job of a partition: its id, state and reason; cheap, to see if something is new."""
        words = ("squeue", "--noheader", "--array", "--format=%i %t %r", f"--partition={partition}")
        return frozenset(line.strip() for line in self._output(words).splitlines() if line.strip())

    def hold(self, ids: Iterable[str]) -> dict[str, str]:
        """Hold jobs as an administrator. Returns what Slurm said of those that it refused."""
        return self._for_jobs("hold", ids)

    def release(self, ids: Iterable[str]) -> dict[str, str]:
        """Release jobs, in this order. Returns what Slurm said of those that it refused."""
        return self._for_jobs("release", ids)

    def stop(self, ids: Iterable[str]) -> dict[str, str]:
        """Stop jobs that run and put them back into the queue, held. Returns what Slurm said of those that it refused.

        `Incomplete`: a job that ended meanwhile stays so; without it Slurm would start it again from the top.
        """
        return self._for_jobs("requeuehold Incomplete", ids)

    def update(self, changes: Mapping[str, Mapping[str, str]]) -> dict[str, str]:
        """Change fields of jobs.

        Args:
            changes: By id of the job the new values, by the names that `scontrol update` has for them.

        Returns:
            What Slurm said of the jobs that it refused; of those all or some fields are as they were.
        """
        refused: dict[str, str] = {}
        for part in _parts(changes.items()):
            lines = []
            for job, fields in part:
                for name, value in fields.items():
                    if not PLAIN.fullmatch(value):
                        raise InputError(f"job {job}: {name}", value, "one word of plain characters")
                words = " ".join(f"{name}={value}" for name, value in fields.items())
                lines.append(f"update JobId={_checked(job, _ID)} {words}")
            refused |= self._change(("scontrol",), [job for job, _ in part], "\n".join([*lines, "quit", ""]))
        return refused

    def power_down(self, nodes: Iterable[str]) -> None:
        names = ",".join(_checked(name, _NAME) for name in nodes)
        if names:
            self._change(("scontrol", "update", f"NodeName={names}", "State=POWER_DOWN"), [])

    def _for_jobs(self, verb: str, ids: Iterable[str]) -> dict[str, str]:
        refused: dict[str, str] = {}
        most = 0
        for part in _parts(ids):
            words = ("scontrol", *verb.split(), ",".join(_checked(job, _ID) for job in part))
            refused |= self._change(words, part)
            most = max(most, self.tries)
        self.tries = most
        return refused

    def _change(self, words: Sequence[str], ids: list[str], text: str = "") -> dict[str, str]:
        if self.dry:
            self.not_run += text.splitlines()[:-1] if text else [" ".join(words)]
            return {}
        done = self._tried(words, text)
        if not done.code:
            return {}
        refused: dict[str, str] = {}
        for line in done.errors.splitlines():
            for job in _OF_JOB.findall(line):
                refused.setdefault(job, line.strip())
        refused = {job: said for job, said in refused.items() if job in ids}
        if not refused:
            if len(ids) == 1:
                return {ids[0]: _said(done)}
            raise SlurmError(_short(words), _said(done), answered=True)
        return refused

    def _output(self, words: Sequence[str]) -> str:
        done = self._tried(words, "")
        if done.code:
            raise SlurmError(_short(words), _said(done), answered=True)
        return done.output

    def _tried(self, words: Sequence[str], text: str) -> Done:
        """Run a command; again where Slurm did not answer. All commands here may be given twice."""
        said = ""
        for attempt in range(TRIES):
            if attempt:
                self.pause(FIRST_PAUSE_S * 2.0 ** (attempt - 1))
            self.calls += 1
            self.tries = attempt + 1
            try:
                done = self.run(words, text, self.limit_s)
            except TimeoutError as error:
                said = str(error)
                continue
            except OSError as error:
                raise SlurmError(_short(words), error.strerror or str(error), answered=False) from error
            if not done.code or not _NOT_THERE.search(done.errors):
                return done
            said = _said(done)
        raise SlurmError(_short(words), said, answered=False)


def _parts(things: Iterable[Thing]) -> Iterator[list[Thing]]:
    rest = iter(things)
    while part := list(islice(rest, JOBS_A_CALL)):
        yield part


def _checked(text: str, form: re.Pattern[str]) -> str:
    if not form.fullmatch(text):
        raise InputError("job or node", text, "the id of a job, or the name of a node")
    return text


def _said(done: Done) -> str:
    return " ".join(done.errors.split()) or f"exit code {done.code}"


def _short(words: Sequence[str]) -> str:
    text = " ".join(words)
    return text if len(text) <= 120 else f"{text[:119]}…"
