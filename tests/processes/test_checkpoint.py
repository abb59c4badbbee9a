"""A checkpoint: another process goes on from the file."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np

from checkpoints import play
from gpusched_env import GpuClusterVectorEnv
from vector_twins import all_kinds

SCENARIOS = [all_kinds(3), all_kinds(5, 6)]
SETTINGS = {"due_date_timers": True, "milestones": 2}


def make(envs: int = 4, **more: object) -> GpuClusterVectorEnv:
    return GpuClusterVectorEnv(envs, SCENARIOS, **(SETTINGS | more))


def test_another_process_goes_on_from_the_file(tmp_path):
    env = make(2)
    env.reset(seed=8)
    play(env, 30, 0)
    np.savez(tmp_path / "state.npz", **env.get_state())
    expected = [float(rewards.sum()) for _, rewards, *_ in play(env, 60, 1)]
    code = (
        "import sys, numpy as np; from test_checkpoint import make, play\n"
        "env = make(2); env.set_state(dict(np.load(sys.argv[1], allow_pickle=False)))\n"
        "print([float(r.sum()).hex() for _, r, *_ in play(env, 60, 1)])"
    )
    folders = [str(Path(__file__).parent), str(Path(__file__).parents[1] / "support")]
    program = f"import sys; sys.path[:0] = {folders!r}\n{code}"
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / "state.npz")], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == str([value.hex() for value in expected])
