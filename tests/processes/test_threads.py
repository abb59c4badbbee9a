"""Threads survive signals and forks, and sleep between steps."""

import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

from gpusched_env import GpuClusterVectorEnv
from vector_twins import assert_same, few_jobs, random_actions


def workers() -> int:
    return sum(thread.name == "gpusched-vector" for thread in threading.enumerate())


# In a process of its own: an interrupt while Numba loads a kernel would leave it unable to load any.
SIGNALS = """
import signal
import numpy as np
from numba.core.dispatcher import Dispatcher
from gpusched_env import GpuClusterVectorEnv
from vector_twins import assert_same, few_jobs

class Broken(BaseException):
    pass

def alarm(*_):
    raise Broken

def compiles(self, signature):
    raise SystemExit(f"{self.py_func.__name__}{signature} is compiled by a step")

one, two = (GpuClusterVectorEnv(64, few_jobs(), threads=t) for t in (1, 2))
for env in (one, two):
    env.reset(seed=0)
Dispatcher.compile = compiles
signal.signal(signal.SIGALRM, alarm)
caught = 0
for delay in np.linspace(1e-5, 2e-3, 100):
    try:
        try:
            signal.setitimer(signal.ITIMER_REAL, float(delay))
            for _ in range(200):
                two.step(np.zeros(64, np.int64))
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0.0)
    except Broken:
        caught += 1
    two.reset(seed=0)
assert_same(one.reset(seed=3), two.reset(seed=3))
assert_same(one.step(np.zeros(64, np.int64)), two.step(np.zeros(64, np.int64)))
print(caught)
"""


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="timers are POSIX's")
def test_signals_never_leave_a_helper_at_work():
    """However often and whenever they come; and a reset has compiled all that steps need."""
    done = subprocess.run(
        [sys.executable, "-c", SIGNALS],
        check=False,
        capture_output=True,
        text=True,
        timeout=600,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks are POSIX's")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_forked_process_starts_threads_of_its_own():
    env = GpuClusterVectorEnv(32, few_jobs(), threads=2)
    env.reset(seed=0)
    child = os.fork()
    if child == 0:
        signal.alarm(300)
        env.step(np.zeros(32, np.int64))
        os._exit(0 if workers() == 1 else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    env.close()


def test_workers_compute_nothing_between_steps():
    one, two = (GpuClusterVectorEnv(64, few_jobs(), threads=t) for t in (1, 2))
    assert_same(one.reset(seed=0), two.reset(seed=0))
    rng = np.random.default_rng(0)
    for pause_s in (0.0, 0.0, 0.05, 0.05, 0.0, 0.0, 0.0, 0.05):
        actions = random_actions(one.action_masks(), rng)
        assert_same(one.step(actions), two.step(actions))
        time.sleep(0.01)  # a worker that has just been given work finds that there is none
        before = time.thread_time_ns(), time.process_time_ns()
        time.sleep(pause_s)
        own, all_threads = time.thread_time_ns() - before[0], time.process_time_ns() - before[1]
        assert all_threads - own <= 0.5e9 * pause_s + 1e6
