"""What a newcomer waits for: the kernels that the first step of an environment compiles."""

import os
import subprocess
import sys

import numba
import pytest

from gpusched_env.compiling import NOTE
from gpusched_env.simulator.builds import FORCED

MOST = 125
"""Kernels of the plain build, with those of NumPy's functions that Numba compiles.

A change that lowers their number lowers this.
"""
MOST_MODULES, MOST_LINES = 75, 11_500
"""Modules of the packages that the first step of the plain environment loads, and their lines; lower them likewise."""
PROGRAM = """
import gymnasium
import numpy as np
import gpusched_env
from gpusched_env.compiling import compiled_kernels
with compiled_kernels() as count:
    env = gymnasium.make("gpusched_env/Slack-v0")
    _, info = env.reset(seed=0)
    env.step(int(np.flatnonzero(info["action_mask"])[-1]))
print(count())
"""


@pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="NUMBA_DISABLE_JIT is set: nothing is compiled")
def test_the_first_step_compiles_no_more_kernels_than_it_did(tmp_path):
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path), FORCED: ""}
    command = [sys.executable, "-c", PROGRAM]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert 100 < int(done.stdout) <= MOST
    assert done.stderr == ""


LOADED = """
import sys
from pathlib import Path
ours = [module for name, module in sys.modules.items() if name.startswith("gpusched_") and module.__file__]
print(len(ours), sum(len(Path(module.__file__).read_text().splitlines()) for module in ours))
print([name for name in ("polars", "scipy.linalg", "yaml", "matplotlib", "torch") if name in sys.modules])
"""


def test_the_first_step_loads_only_modules_that_it_may_need():
    environment = os.environ | {"NUMBA_DISABLE_JIT": "1", FORCED: ""}
    command = [sys.executable, "-c", PROGRAM + LOADED]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    kernels, counts, others = done.stdout.splitlines()
    modules, lines = map(int, counts.split())
    assert kernels == "0"
    assert 60 < modules <= MOST_MODULES
    assert lines <= MOST_LINES
    assert others == "['yaml']"  # which Numba imports


@pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="NUMBA_DISABLE_JIT is set: nothing is compiled")
def test_linear_algebra_is_imported_by_the_first_kernel_that_uses_it():
    loaded = "print('scipy.linalg' in sys.modules)"
    program = "import sys, numba, numpy; from gpusched_env.simulator.sorting import ranked; ranked(numpy.ones(2), 2)\n"
    program += f"{loaded}; print(numba.njit(lambda a: a @ a)(numpy.eye(2) + 1.0)[0]); {loaded}"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n[5. 4.]\nTrue\n"


@pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="NUMBA_DISABLE_JIT is set: nothing is compiled")
def test_the_first_kernel_is_announced_in_one_line_and_one_that_is_kept_is_not(tmp_path):
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
    program = "import numpy; from gpusched_env.simulator.sorting import ranked; ranked(numpy.ones(2), 2)"
    command = [sys.executable, "-c", program]
    said = [subprocess.run(command, env=environment, capture_output=True, text=True, check=True) for _ in range(2)]
    assert [done.stderr for done in said] == [NOTE, ""]
