"""A run is a pure function of (instance, policy, seed), compiled or not, in any process."""

import contextlib
import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import json, sys
sys.path.insert(0, sys.argv[1])
from instances import random_instance
from compiled_policies import POLICIES
from gpusched_env import simulate, load_scenario, make_instance, GpuClusterEnv, GpuClusterVectorEnv
import numpy as np

out = {}
for name, policy in POLICIES.items():
    result = simulate(random_instance(11, kinds=True, interference=True), policy, seed=5)
    out[name] = [result.energy_eur, result.tardiness_eur, result.completion_s.tolist(), result.switches.tolist()]
jobs = make_instance(load_scenario("tiny"), 7).jobs
columns = (jobs.submission_s, jobs.due_s, jobs.tardiness_weight_eur_per_s, jobs.epochs_needed, jobs.seconds_per_epoch)
out["jobs"] = np.concatenate([np.ravel(column) for column in columns]).tolist()
env = GpuClusterEnv("tiny")
observation, info = env.reset(seed=3)
sums = [float(sum(part.sum() for part in observation.values()))]
rng = np.random.default_rng(0)
for _ in range(60):
    action = int(rng.choice(np.flatnonzero(info["action_mask"])))
    observation, reward, over, _, info = env.step(action)
    sums += [reward, float(sum(part.astype(np.float64).sum() for part in observation.values()))]
    if over:
        break
out["env"] = sums
many = GpuClusterVectorEnv(3, "tiny")
infos, out["vector"] = many.reset(seed=0)[1], []
for _ in range(15):
    last = infos["action_mask"].shape[1] - 1 - infos["action_mask"][:, ::-1].argmax(axis=1)
    observations, rewards, _, _, infos = many.step(last)
    parts = (rewards, *observations.values(), infos["action_mask"])
    out["vector"] += [float(number) for part in parts for number in np.ravel(part)]
many.close()
print(json.dumps(out))
"""


def in_a_fresh_process(**environment: str) -> dict[str, list[object]]:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(Path(__file__).parents[1] / "support")],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, **environment},
    )
    return json.loads(done.stdout)


def test_a_fresh_process_gives_the_same_runs_and_so_does_python_without_compiling(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["", str(Path(__file__).parents[1] / "support")])
    monkeypatch.setattr(sys, "path", [*sys.path])
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(PROGRAM, {})  # noqa: S102 - our own
    here, compiled = json.loads(printed.getvalue()), in_a_fresh_process()
    assert compiled == here
    interpreted = in_a_fresh_process(NUMBA_DISABLE_JIT="1")
    for name, values in compiled.items():
        for ours, theirs in zip(values, interpreted[name], strict=True):
            assert ours == pytest.approx(
                theirs, **({"rel": 1e-6} if name == "vector" else {"rel": 1e-12, "abs": 1e-12})
            )
