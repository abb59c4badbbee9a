"""Ctrl-C and SIGTERM end a command with their own exit codes and one line, whatever it is at."""

import os
import re
import select
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from gpusched_env.compiling import NOTE
from waiting import eventually

pytestmark = pytest.mark.skipif(os.name == "nt", reason="signals are those of POSIX")

LIMIT_S = 300.0
FRAME = """
import os, signal, subprocess, sys, time
from gpusched_experiments.cli import interruption, main
interruption.GRACE_S = interruption.SAYING_S = 600.0

def interrupt(number=signal.SIGINT):
    os.kill(os.getpid(), number)

def command():
{body}

main._run = command
main.run()
"""


def framed(body: str) -> str:
    return FRAME.format(body="\n".join(f"    {line}" for line in body.strip().splitlines()))


def run(body: str) -> tuple[int, str]:
    """Run this as a command; give its exit code, and what it said on stderr."""
    done = subprocess.run(
        [sys.executable, "-c", framed(body)], capture_output=True, text=True, check=False, timeout=LIMIT_S,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )  # fmt: skip
    return done.returncode, done.stderr


def test_a_command_that_is_not_stopped_ends_as_it_would():
    assert run("sys.exit(3)") == (3, "")
    code, errors = run("raise RuntimeError('bang')")
    assert code == 1
    assert errors.endswith("RuntimeError: bang\n")


STOPPED = {
    "SIGTERM ends it in one line": (143, "terminated", "interrupt(signal.SIGTERM)"),
    "what is kept is said in the same line, and an interrupt that comes twice at once counts once": (
        130,
        "interrupted; the same command goes on",
        # A terminal interrupts all processes of a command; one that started it may hand it on as well.
        """
interruption.ONE_S = 600.0
try:
    interrupt()
finally:
    interrupt()
    interruption.say("the same command goes on")
""",
    ),
    "another error that an interrupt is turned into is none, as in Numba, which finds no compiled object": (
        130,
        "interrupted",
        """
try:
    interrupt()
except KeyboardInterrupt:
    raise RuntimeError("no compiled object yet") from None
""",
    ),
    # As in a callback of LLVM's, or a destructor: Python prints a traceback, and goes on.
    "an interrupt that Python swallows ends the command all the same": (
        130,
        "interrupted",
        """
class Destroyed:
    def __del__(self):
        interrupt()
interruption.GRACE_S = 1.0
thing = Destroyed()
del thing
time.sleep(600)
""",
    ),
    # The handler and the watcher hear the same second signal.
    "two threads that end the command at once say so once": (
        130,
        "interrupted",
        """
own, pause = interruption.os.write, time.sleep
def write(to, text):
    own(to, text)
    pause(0.5)
interruption.os.write = write
time.sleep = lambda seconds: pause(600.0)  # the second thread waits for the first one
interruption._heard.signal = signal.SIGINT
interruption.threading.Thread(target=interruption._leave, args=(signal.SIGINT,)).start()
interruption._leave(signal.SIGINT)
""",
    ),
    "a command that must go while it says so still says so": (
        130,
        "interrupted",
        """
class Slow:
    def write(self, text):
        time.sleep(1.0)
        return sys.__stderr__.write(text)
    def __getattr__(self, name):
        return getattr(sys.__stderr__, name)

interruption.GRACE_S = 0.5
sys.stderr = Slow()
interrupt()
""",
    ),
    # The handler runs within itself, and what it was at never goes on.
    "a signal while the command ends at once does not keep it from that": (
        130,
        "interrupted",
        """
import multiprocessing
calls = []
def children():
    calls.append(1)
    if len(calls) == 1:
        interruption._leave(signal.SIGINT)
    return []
multiprocessing.active_children = children
interruption._heard.signal = signal.SIGINT
interruption._leave(signal.SIGINT)
""",
    ),
    "a second interrupt does not wait until all is cleared up": (
        130,
        "interrupted",
        """
try:
    interrupt()
finally:
    subprocess.Popen([sys.executable, "-c", f"import os, time; time.sleep(1); os.kill({os.getpid()}, 2)"])
    time.sleep(600)
""",
    ),
}


@pytest.mark.parametrize("what", STOPPED)
def test_a_command_that_is_stopped_ends_with_its_own_code_and_one_line(what):
    code, words, body = STOPPED[what]
    assert run(body) == (code, f"error: {words}\n")


def test_where_somebody_else_handles_signals_they_are_left_to_do_so():
    """As a server does, which ends what it is at."""
    body = """
interruption.GRACE_S = 0.5
signal.signal(signal.SIGINT, lambda *_: None)
interrupt()
time.sleep(2)
"""
    assert run(body) == (0, "")


def test_a_command_that_is_to_ignore_interrupts_does():
    """As in the background of a shell."""
    ignoring = f"trap '' INT; exec {sys.executable} -c \"$0\""
    words = ["/bin/sh", "-c", ignoring, framed("interrupt()")]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=LIMIT_S)
    assert (done.returncode, done.stderr) == (0, "")


def imports(process: subprocess.Popen[str], _folder: Path) -> bool:
    """Return whether it has begun to import packages, which takes a second or more."""
    return "numpy" in Path(f"/proc/{process.pid}/maps").read_text()


def runs(_process: subprocess.Popen[str], folder: Path) -> bool:
    return (folder / "r" / "cells.csv").exists()


MANY_RUNS = ("compare", "-p", "random-greedy", "--seeds", "0-900", "--workers", "2", "--out", "r")


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="looks processes up in /proc")
@pytest.mark.parametrize(("arguments", "until"), [(("simulate", "-s", "tiny"), imports), (MANY_RUNS, runs)])
def test_ctrl_c_at_a_terminal_ends_the_command_and_all_its_processes(tmp_path, arguments, until):
    """All processes of the foreground hear it; none of them says more than the one line."""
    process = begin(arguments, tmp_path)
    eventually(lambda: until(process, tmp_path), every_s=0.01)
    os.killpg(process.pid, signal.SIGINT)
    output, errors = process.communicate(timeout=LIMIT_S)
    assert process.returncode == 130, errors
    assert output == ""
    assert says_only_that_it_was_interrupted(errors)
    eventually(lambda: not is_there(process.pid))  # children of its children are removed by the system, a moment later


def is_there(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


def test_ctrl_c_while_it_compiles_ends_it_in_one_line_after_the_one_that_says_so(tmp_path):
    process = begin(("simulate", "-s", "tiny", "-p", "fifo"), tmp_path, NUMBA_CACHE_DIR=str(tmp_path / "cache"))
    assert process.stderr is not None
    ready, _, _ = select.select([process.stderr], [], [], LIMIT_S)
    assert ready
    assert process.stderr.readline() == NOTE
    os.killpg(process.pid, signal.SIGINT)
    output, errors = process.communicate(timeout=LIMIT_S)
    assert (process.returncode, output) == (130, "")
    assert says_only_that_it_was_interrupted(errors)


def begin(arguments: tuple[str, ...], folder: Path, **environment: str) -> subprocess.Popen[str]:
    """Begin a command as the leader of a process group of its own, as a shell does."""
    return subprocess.Popen(
        [sys.executable, "-m", "gpusched_experiments", *arguments],
        cwd=folder, env=os.environ | environment, text=True, start_new_session=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509 - there are no threads
    )  # fmt: skip


def says_only_that_it_was_interrupted(errors: str) -> bool:
    """Return whether what is run, a progress bar, of which a pipe gets the last state, and the one line are all."""
    *bar, last = [line for line in errors.splitlines() if line.strip()]
    return last.startswith("error: interrupted") and all(
        re.search(r"^note: [0-9]+ jobs| [0-9]+/[0-9]+ ", line) for line in bar
    )
