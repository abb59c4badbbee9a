"""CleanRL's single files with `--env-id` alone. They are no package: a checkout of its repository has to be there."""

import math
import os
import subprocess
import sys
from pathlib import Path

import pytest

HOW = "a checkout of vwxyzjn/cleanrl, tyro and tensorboard; CLEANRL=its folder in the environment"
SHORT = {"ppo": ("--num-envs", "2", "--num-steps", "64"), "dqn": ("--learning-starts", "100", "--buffer-size", "1000")}


@pytest.fixture
def checkout():
    folder = Path(os.environ.get("CLEANRL", ""))
    if "CLEANRL" not in os.environ:
        pytest.skip(f"CleanRL is not there: {HOW}")
    for package in ("tyro", "tensorboard", "torch"):
        pytest.importorskip(package, reason=f"CleanRL needs {package}: {HOW}")
    return folder


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("script", SHORT)
def test_a_single_file_trains_on_the_flat_id_of_a_track(checkout, tmp_path, script):
    wanted = ("--env-id", "gpusched_env:gpusched_env/SlackFlat-v0", "--total-timesteps", "512", "--no-cuda")
    command = [sys.executable, str(checkout / "cleanrl" / f"{script}.py"), *wanted, *SHORT[script]]
    path = os.pathsep.join([str(checkout), *filter(None, sys.path)])
    done = subprocess.run(
        command, cwd=tmp_path, env={**os.environ, "PYTHONPATH": path}, capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr.decode()
    losses = [value for tag, value in scalars(tmp_path) if tag.startswith("losses/")]
    assert losses
    assert all(math.isfinite(value) for value in losses)


def scalars(folder):
    """Return what the script wrote for TensorBoard: names and values."""
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    (file,) = folder.rglob("events.out.tfevents.*")
    events = accumulator.EventAccumulator(str(file))
    events.Reload()
    return [(tag, event.value) for tag in events.Tags()["scalars"] for event in events.Scalars(tag)]
