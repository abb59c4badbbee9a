"""The process in which entries decide, with policies that try what they must not; what must not be is not."""

import ctypes
import os
import platform
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from entries import deciding, python_submission
from gpusched_env import load_scenario, make_instance
from gpusched_env.simulator import simulate
from gpusched_experiments.sandbox.lockdown import CALLS, FILES, MISSING, NETWORK, lacking
from gpusched_experiments.sandbox.process import Process, RemotePolicy
from gpusched_experiments.sandbox.submitted import SandboxLimits, SubmissionError

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="protections are those of Linux")
SCENARIO = load_scenario("tiny").replace({"jobs.count": 4})
LINUX = sys.platform.startswith("linux")
PROTECTS = LINUX and platform.machine() == "x86_64" and ctypes.CDLL(None).syscall(444, None, 0, 1) >= 1  # Landlock

TRIES = """
import ctypes, fcntl, os, signal, socket, subprocess, sys, threading
print("garbage" * 10_000)
os.write(1, b"garbage"), os.write(2, b"garbage")
parent = os.getppid()
TRIES = {
    "reads secrets": lambda: os.environ["GPUSCHED_SECRET"],
    "reads files": lambda: open("/etc/passwd").read(),
    "reads the project": lambda: open(STANDINGS).read(),
    "lists folders": lambda: os.listdir("/"),
    "reads its parent's memory": lambda: open(f"/proc/{parent}/mem", "rb"),
    "reads its parent's environment": lambda: open(f"/proc/{parent}/environ", "rb").read(),
    "writes here": lambda: open("large", "wb").write(bytes(10)),
    "writes elsewhere": lambda: open(TARGET, "wb"),
    "renames": lambda: os.rename(TARGET + ".old", TARGET),
    "removes": lambda: os.remove(TARGET + ".old"),
    "makes folders": lambda: os.mkdir("folder"),
    "forks": os.fork,
    "starts programs": lambda: subprocess.run(["/bin/true"]),
    "becomes a program": lambda: os.execv("/bin/true", ["true"]),
    "starts threads": lambda: threading.Thread(target=print).start(),
    "leaves its group": os.setsid,
    "opens sockets": lambda: socket.socket(),
    "signals its parent": lambda: os.kill(parent, 0),
    "lets the kernel signal its parent": lambda: fcntl.fcntl(0, fcntl.F_SETOWN, parent),
    "takes memory": lambda: bytearray(8 * 2**30),
    "lifts limits": lambda: __import__("resource").setrlimit(9, (-1, -1)),
    "keeps memory in a file": lambda: os.memfd_create("x"),
    "looks into its parent": lambda: 1 / (ctypes.CDLL(None).ptrace(16, parent, 0, 0) == 0),
    "calls around the filter": lambda: 1 / (ctypes.CDLL(None).syscall(425, 1, 0) >= 0),
}
done = []
for name, attempt in TRIES.items():
    try:
        attempt()
        done.append(name)
    except (OSError, KeyError, MemoryError, ZeroDivisionError, RuntimeError, ValueError):
        pass
"""


def run(process):
    return simulate(make_instance(SCENARIO, 0), RemotePolicy(process, SCENARIO, 0), seed=0)


@pytest.mark.skipif(not PROTECTS, reason="NOT PROTECTED: no Landlock here, or not x86-64")
def test_none_of_what_an_entry_tries_succeeds(tmp_path, monkeypatch):
    monkeypatch.setenv("GPUSCHED_SECRET", "secret")
    target = tmp_path / "target"
    Path(f"{target}.old").write_text("old")
    standings = Path(__file__).parents[3] / "docs/results/leaderboard/record.json"
    before = f"TARGET, STANDINGS = {str(target)!r}, {str(standings)!r}\n{TRIES}"
    with Process(
        python_submission(deciding("raise RuntimeError(f'it {done}')", before)), SandboxLimits(memory_gib=3)
    ) as process:
        assert process.lacking == ()
        with pytest.raises(SubmissionError, match=r"RuntimeError: it \[\]$"):
            run(process)
    assert [path.name for path in tmp_path.iterdir()] == ["target.old"]


SIGNALS_BY_FCNTL = """
import fcntl, os, struct, sys
from gpusched_experiments.sandbox.lockdown import allow_few_calls
assert allow_few_calls()
attempts = [(fcntl.F_SETOWN, os.getppid()), (15, struct.pack("ii", 1, os.getppid())),
            (10, int(sys.argv[1])), (fcntl.F_SETFL, fcntl.fcntl(0, fcntl.F_GETFL) | os.O_ASYNC)]
for command, argument in attempts:
    try:
        fcntl.fcntl(0, command, argument)
    except PermissionError:
        print("refused", flush=True)
os.read(0, 1)
fcntl.fcntl(0, fcntl.F_GETFD), os.close(os.dup(0))
print("ended", flush=True)
"""


@pytest.mark.skipif(not LINUX or platform.machine() != "x86_64", reason="NOT PROTECTED: not x86-64")
def test_the_kernel_sends_no_signal_for_a_process_that_only_the_filter_of_calls_holds():
    """Without Landlock, whose scope for signals is new in Linux 6.12: every attempt itself is refused."""
    came: list[bool] = []
    before = signal.signal(signal.SIGUSR1, lambda *_: came.append(True))
    try:
        code = [sys.executable, "-c", SIGNALS_BY_FCNTL, str(int(signal.SIGUSR1))]
        with subprocess.Popen(code, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
            said, _ = child.communicate("x", timeout=60)
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert said.split() == ["refused"] * 4 + ["ended"]
    assert not came


@pytest.mark.slow
def test_a_policy_that_loops_is_ended_and_nothing_of_it_is_left():
    """In its first round it may compile, so it loops in the second."""
    source = deciding("view.memory[0, 0] += 1\nwhile view.memory[0, 0] > 1: pass")
    with Process(python_submission(source), SandboxLimits(round_s=0.3)) as process:
        folder, pid, begin = process._folder.name, process._child.pid, time.monotonic()
        with pytest.raises(SubmissionError, match=r"^mine\.py: no answer within 0\.3 s$"):
            run(process)
        assert time.monotonic() - begin < 60.0
    assert not Path(folder).exists()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


@pytest.mark.slow
def test_processor_time_has_its_end_and_the_message_says_so():
    with pytest.raises(SubmissionError, match=r"ended by SIGXCPU: more than 1 s of processor time$"):
        Process(python_submission("while True: pass"), SandboxLimits(all_s=1.0))


@pytest.mark.slow
def test_the_folder_of_what_numba_has_compiled_can_be_read(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("warm").mkdir()
    Path("warm/index").write_text("compiled")
    monkeypatch.setenv("NUMBA_CACHE_DIR", "warm")
    source = "import os\nraise RuntimeError(open(os.environ['NUMBA_CACHE_DIR'] + '/index').read())"
    with pytest.raises(SubmissionError, match=r"RuntimeError: compiled$"):
        Process(python_submission(source), SandboxLimits())


@pytest.mark.parametrize("values", [{"memory_gib": 0.5}, {"round_s": 0.0}, {"run_s": float("nan")}, {"all_s": -1.0}])
def test_limits_that_are_none_are_refused(values):
    with pytest.raises(ValueError, match=r"--[a-z-]+ = "):
        SandboxLimits(**values)


def test_what_a_system_cannot_protect_from_is_said():
    """Who may open no socket needs no network of its own."""
    assert lacking([FILES, CALLS]) == lacking([NETWORK, FILES, CALLS]) == ()
    assert lacking([NETWORK, CALLS]) == (MISSING[FILES],)
    assert lacking([]) == tuple(MISSING.values())
