"""Another process compiles what is not on the disk yet, and ends with the first."""

import os
import subprocess
import sys

import numba
import pytest

from gpusched_experiments.report import warm_up as record

compiled_only = pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="NUMBA_DISABLE_JIT is set: nothing is kept")


@compiled_only
def test_the_other_process_takes_all_steps_and_ends_with_its_input():
    code = f"from {record.__name__} import compile_from_the_other_end as c; c(); print('all', flush=True)"
    command = [sys.executable, "-c", code, "fifo", "nobody"]
    kept = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, env=kept) as process:
        assert process.stdout.readline() == "all\n"
    code = code.replace("; print", "; import time; time.sleep(600); print")
    with subprocess.Popen([*command[:2], code], stdin=pipe, stdout=pipe, text=True, env=kept) as process:
        process.stdin.close()
        assert process.wait(timeout=300) == 0
        assert process.stdout.read() == ""
