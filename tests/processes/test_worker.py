"""Workers end with their parent."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from waiting import eventually

PROGRAM = """
import multiprocessing, os, sys, time
from concurrent.futures import ProcessPoolExecutor
from gpusched_experiments.report.processes import start_worker

if __name__ == "__main__":
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(1, mp_context=context, initializer=start_worker, initargs=((),))
    print(pool.submit(os.getpid).result(), flush=True)
    pool.submit(time.sleep, 600)
    os.kill(os.getpid(), 9)
"""


def runs(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rsplit(")", 1)[1].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks processes up in /proc")
def test_a_worker_ends_when_its_parent_is_killed(tmp_path: Path):
    program = tmp_path / "parent.py"
    program.write_text(PROGRAM, encoding="utf-8")
    parent = subprocess.run([sys.executable, str(program)], stdout=subprocess.PIPE, text=True, check=False)
    worker = int(parent.stdout)
    assert worker != os.getpid()
    eventually(lambda: not runs(worker))
