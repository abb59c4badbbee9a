"""A process that decides, as seen from here: started with nothing, asked in time, and ended whatever it does."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from gpusched_experiments.untrusted.channel import Channel, ClosedError, NoMessageError, TooLateError
from gpusched_experiments.untrusted.entry import GIB, EntryError, one_line
from gpusched_experiments.untrusted.lockdown import clean_environment, lacking
from gpusched_experiments.untrusted.serving import AGENT_FOLDER

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gpusched_experiments.untrusted.entry import Entry, Limits

BEGIN = (
    "import json, sys; settings = json.loads(sys.argv[1]); sys.path[:] = settings['paths']; "
    "from gpusched_experiments.untrusted.serving import main; main(settings)"
)


class Process:
    """One process with an entry in it.

    Args:
        entry: The entry.
        limits: What it may take.

    Attributes:
        preemption: Whether its rounds begin from an empty cluster.
        lacking: What this system cannot protect from, a sentence each.

    Raises:
        EntryError: It did not start, or the entry is no policy.
    """

    def __init__(self, entry: Entry, limits: Limits) -> None:
        self.entry, self.limits = entry, limits
        self._folder = tempfile.TemporaryDirectory(prefix="gpusched-")
        self._ending, self._closed = threading.Lock(), False
        self._start()
        try:
            held, _ = self._receive(0, self._until(limits.start_s), limits.start_s)
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
        self, head: dict[str, Any], body: Iterable[bytes] = (), *, most: int = 0, seconds: float
    ) -> tuple[dict[str, Any], bytes]:
        """Send a message, and give the answer.

        Args:
            head: What is asked.
            body: The bytes behind it.
            most: Most bytes behind the head of the answer.
            seconds: Longest time until it is there.

        Raises:
            EntryError: The answer is late, is none, or says that something went wrong; then the process has ended.
        """
        until = self._until(seconds)
        try:
            self._channel.send(head, body, until=until)
        except (ClosedError, TooLateError) as error:
            raise self._ended(error, seconds) from None
        answer, behind = self._receive(most, until, seconds)
        if "error" in answer:
            raise self.wrong(one_line(answer["error"]))
        return answer, behind

    def wrong(self, text: str) -> EntryError:
        """End the process, and give the error that says why."""
        self.close()
        return EntryError(f"{self.entry.file}: {text}")

    def kill(self) -> None:
        """End the process and all that it has started; whoever asks it finds that out."""
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
        if self.entry.kind == "agent":
            place = Path(folder) / AGENT_FOLDER
            place.mkdir()
            for name, content in self.entry.files.items():
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
        entry = self.entry
        body = next(iter(entry.files.values())) if entry.kind == "python" else b""
        head = {"kind": "load", "what": entry.kind, "file": entry.file, "made_by": entry.made_by}
        answer, _ = self.ask(head, [body], seconds=self.limits.start_s)
        if not isinstance(answer.get("preemption"), bool) or answer.get("named") is not True:
            raise self.wrong("its policy has no name, or preemption is neither True nor False")
        return bool(answer["preemption"])

    def _receive(self, most: int, until: float, seconds: float) -> tuple[dict[str, Any], bytes]:
        try:
            return self._channel.receive(most, until=until)
        except NoMessageError as error:
            raise self.wrong(f"its process answered with what is no answer ({error})") from None
        except (ClosedError, TooLateError) as error:
            raise self._ended(error, seconds) from None

    def _ended(self, error: Exception, seconds: float) -> EntryError:
        """Say how the process ended, or that it did not answer."""
        if isinstance(error, TooLateError):
            return self.wrong(f"no answer within {seconds:g} s")
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
        """Give the code with which the process ended, without waiting for it as `wait` does; None if it has not."""
        if not hasattr(os, "waitid"):
            return self._child.poll()
        for _ in range(50):
            ended = os.waitid(os.P_PID, self._child.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            if ended is not None:
                return ended.si_status if ended.si_code == os.CLD_EXITED else -ended.si_status
            time.sleep(0.1)
        return None

    @staticmethod
    def _until(seconds: float) -> float:
        return time.monotonic() + seconds
