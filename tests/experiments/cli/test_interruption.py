"""Ctrl-C and SIGTERM end a command with their own exit codes and one line, whatever it is at."""

from __future__ import annotations

import os
import re
import select
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.skipif(os.name == "nt", reason="signals are those of POSIX")

FRAME = """
import os, signal, subprocess, sys, time
from gpusched_experiments.cli import interruption, main
interruption.GRACE_S = 1.0

def interrupt(number=signal.SIGINT):
    os.kill(os.getpid(), number)

def command():
{body}

main._run = command
main.run()
"""


def run(body: str) -> tuple[int, str, float]:
    """Run this as a command; give its exit code, what it said on stderr, and its seconds."""
    program = FRAME.format(body="\n".join(f"    {line}" for line in body.strip().splitlines()))
    begin = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=60.0,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )  # fmt: skip
    return done.returncode, done.stderr, time.monotonic() - begin


def test_a_command_that_is_not_stopped_ends_as_it_would():
    assert run("pass")[:2] == (0, "")
    assert run("sys.exit(3)")[:2] == (3, "")
    code, errors, _ = run("raise RuntimeError('bang')")
    assert code == 1
    assert errors.endswith("RuntimeError: bang\n")


@pytest.mark.parametrize(("number", "code", "word"), [("INT", 130, "interrupted"), ("TERM", 143, "terminated")])
def test_a_signal_ends_it_in_one_line(number, code, word):
    assert run(f"interrupt(signal.SIG{number})")[:2] == (code, f"error: {word}\n")


def test_what_is_kept_is_said_in_the_same_line():
    body = """
try:
    interrupt()
finally:
    interruption.say("the same command goes on")
"""
    assert run(body)[:2] == (130, "error: interrupted; the same command goes on\n")


def test_another_error_that_an_interrupt_is_turned_into_is_none():
    """As Numba does, which finds no compiled object."""
    body = """
try:
    interrupt()
except KeyboardInterrupt:
    raise RuntimeError("no compiled object yet") from None
"""
    assert run(body)[:2] == (130, "error: interrupted\n")


@pytest.mark.slow
def test_an_interrupt_that_python_swallows_ends_the_command_all_the_same():
    """As in a callback of LLVM's, or a destructor: Python prints a traceback, and goes on."""
    body = """
class Destroyed:
    def __del__(self):
        interrupt()
thing = Destroyed()
del thing
time.sleep(30)
"""
    code, errors, seconds = run(body)
    assert (code, errors) == (130, "error: interrupted\n")
    assert seconds < 15.0


def test_two_threads_that_end_the_command_at_once_say_so_once():
    """The handler and the watcher hear the same second signal."""
    body = """
own = interruption.os.write
def write(to, text):
    own(to, text)
    time.sleep(0.5)
interruption.os.write = write
interruption._heard.signal = signal.SIGINT
interruption.threading.Thread(target=interruption._leave, args=(signal.SIGINT,)).start()
interruption._leave(signal.SIGINT)
"""
    assert run(body)[:2] == (130, "error: interrupted\n")


def test_a_command_that_must_go_while_it_says_so_still_says_so():
    body = """
class Slow:
    def write(self, text):
        time.sleep(1.0)
        return sys.__stderr__.write(text)
    def __getattr__(self, name):
        return getattr(sys.__stderr__, name)

interruption.GRACE_S = 0.5
sys.stderr = Slow()
interrupt()
"""
    assert run(body)[:2] == (130, "error: interrupted\n")


def test_a_signal_while_the_command_ends_at_once_does_not_keep_it_from_that():
    """The handler runs within itself, and what it was at never goes on."""
    body = """
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
"""
    code, errors, seconds = run(body)
    assert (code, errors) == (130, "error: interrupted\n")
    assert seconds < 10.0


@pytest.mark.slow
def test_a_second_interrupt_does_not_wait_until_all_is_cleared_up():
    body = """
interruption.GRACE_S = 30.0
try:
    interrupt()
finally:
    subprocess.Popen([sys.executable, "-c", f"import os, time; time.sleep(1); os.kill({os.getpid()}, 2)"])
    time.sleep(30)
"""
    code, errors, seconds = run(body)
    assert (code, errors) == (130, "error: interrupted\n")
    assert seconds < 15.0


def test_an_interrupt_that_comes_twice_at_once_counts_once():
    """A terminal interrupts all processes of a command; one that started it may hand it on as well."""
    body = """
try:
    interrupt()
finally:
    interrupt()
    interruption.say("all is well")
"""
    assert run(body)[:2] == (130, "error: interrupted; all is well\n")


@pytest.mark.slow
def test_where_somebody_else_handles_signals_they_are_left_to_do_so():
    """As a server does, which ends what it is at."""
    body = """
signal.signal(signal.SIGINT, lambda *_: None)
interrupt()
time.sleep(2)
"""
    assert run(body)[:2] == (0, "")


def test_a_command_that_is_to_ignore_interrupts_does():
    """As in the background of a shell."""
    program = FRAME.format(body="    interrupt()")
    ignoring = f"trap '' INT; exec {sys.executable} -c \"$0\""
    done = subprocess.run(["/bin/sh", "-c", ignoring, program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


COMMANDS = (
    pytest.param(("simulate", "-s", "tiny"), 0.4, id="while it imports"),
    pytest.param(
        ("compare", "-p", "random-greedy", "--seeds", "0-900", "--workers", "2", "--out", "r"), 5.0, id="runs"
    ),
)


@pytest.mark.slow
@pytest.mark.parametrize(("arguments", "seconds"), COMMANDS)
def test_ctrl_c_at_a_terminal_ends_the_command_and_all_its_processes(tmp_path, arguments, seconds):
    """All processes of the foreground hear it; none of them says more than the one line."""
    process = begin(arguments, tmp_path)
    time.sleep(seconds)
    os.killpg(process.pid, signal.SIGINT)
    output, errors = process.communicate(timeout=60)
    assert process.returncode == 130, errors
    assert output == ""
    assert says_only_that_it_was_interrupted(errors)
    for _ in range(100):  # children of its children are removed by the system, a moment later
        try:
            os.killpg(process.pid, 0)
        except ProcessLookupError:
            return
        time.sleep(0.1)
    pytest.fail("a process is left")


@pytest.mark.slow
def test_ctrl_c_while_it_compiles_ends_it_in_one_line_after_the_one_that_says_so(tmp_path):
    process = begin(("simulate", "-s", "tiny", "-p", "fifo"), tmp_path, NUMBA_CACHE_DIR=str(tmp_path / "cache"))
    assert process.stderr is not None
    ready, _, _ = select.select([process.stderr], [], [], 60.0)
    assert ready
    assert process.stderr.readline() == "note: compiling once, about a minute; `gpusched warm-up` does it ahead\n"
    time.sleep(1.0)
    os.killpg(process.pid, signal.SIGINT)
    output, errors = process.communicate(timeout=60)
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
    return last == "error: interrupted" and all(re.search(r"^note: [0-9]+ jobs| [0-9]+/[0-9]+ ", line) for line in bar)
