"""A run is a pure function of (instance, policy, seed), compiled or not, in any process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from compiled_policies import POLICIES
from gpusched_baselines import RandomGreedy
from gpusched_env import simulate
from instances import random_instance

PROGRAM = """
import json, sys
sys.path.insert(0, sys.argv[1])
from instances import random_instance
from compiled_policies import POLICIES
from gpusched_env import simulate, GpuClusterEnv
import numpy as np

out = {}
for name, policy in POLICIES.items():
    result = simulate(random_instance(11, kinds=True, interference=True), policy, seed=5)
    out[name] = [result.energy_eur, result.tardiness_eur, result.completion_s.tolist(), result.switches.tolist()]
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


@pytest.fixture(scope="module")
def compiled() -> dict[str, list[object]]:
    return in_a_fresh_process()


def test_a_fresh_process_gives_the_same_run(compiled):
    for name, policy in POLICIES.items():
        result = simulate(random_instance(11, kinds=True, interference=True), policy, seed=5)
        here = [result.energy_eur, result.tardiness_eur, result.completion_s.tolist(), result.switches.tolist()]
        assert compiled[name] == here


def test_python_gives_the_same_numbers_as_compiled(compiled):
    interpreted = in_a_fresh_process(NUMBA_DISABLE_JIT="1")
    for name, values in compiled.items():
        for ours, theirs in zip(values, interpreted[name], strict=True):
            assert ours == pytest.approx(theirs, rel=1e-12, abs=1e-12)


def test_another_seed_gives_another_random_greedy_run():
    instance = random_instance(11, jobs=30)
    costs = {simulate(instance, RandomGreedy(constructions=10), seed=s).energy_eur for s in range(6)}
    assert len(costs) > 1
