"""The live environment on a real Slurm: an agent that was trained in the simulator decides there."""

import importlib.util
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

from gpusched_env.audit import audit
from gpusched_operations.live.emulated import EmulatedCluster
from refusals import refused
from slurm_clusters import needs_slurm

EXAMPLE = Path(__file__).parents[2] / "examples" / "evaluate_on_slurm.py"
ID = "gpusched_operations:gpusched_env/LiveSlurm-v0"
SETTINGS = {"jobs.count": 2, "arrivals.lambda_s": 1200.0}

pytestmark = needs_slurm


@pytest.fixture(scope="module")
def slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmulatedCluster]:
    """Run a cluster with the GPUs of the scenario `tiny`."""
    with EmulatedCluster(tmp_path_factory.mktemp("slurm"), "v100:8x1,a100:8x1,t4:4x1") as cluster:
        yield cluster


def test_a_path_that_is_no_configuration_of_slurm_is_refused(tmp_path):
    with refused("conf", str(tmp_path), "path of a slurm.conf"):
        gymnasium.make(ID, scenario="tiny", conf=tmp_path)


def test_a_model_trained_in_the_simulator_decides_on_slurm_and_every_job_ends(slurm):
    example = module_of(EXAMPLE)
    masked = pytest.importorskip("sb3_contrib").MaskablePPO
    trained_on = gymnasium.make("gpusched_env/GpuClusterFlat-v0", scenario="tiny", settings=SETTINGS)
    model = masked("MlpPolicy", trained_on, n_steps=32, batch_size=32, n_epochs=1, seed=0).learn(64)
    live = {"scenario": "tiny", "settings": SETTINGS, "conf": slurm}
    env = gymnasium.make(ID, flat=True, **live)
    assert (env.observation_space, env.action_space) == (trained_on.observation_space, trained_on.action_space)
    env.close()
    result = example.evaluate_model(model, 0, **live)
    assert np.all(result.completion_s > result.start_s)
    assert np.all(result.start_s >= result.instance.jobs.submission_s)
    assert result.energy_eur == pytest.approx(result.job_energy_eur.sum())
    assert slurm.run("squeue", "--noheader", "--states=PENDING,RUNNING").strip() == ""


def test_rewards_sum_to_the_cost_of_the_run_which_the_audit_accepts(slurm, tmp_path):
    env: Any = gymnasium.make(ID, scenario="tiny", settings=SETTINGS, conf=slurm, milestones=0).unwrapped
    _, info = env.reset(seed=1)
    rewards, over, kinds, stopped = 0.0, False, [event["kind"] for event in info["events"]], False
    while not over:
        held = int(env.view.jobs[env.job, 9])
        allowed = np.flatnonzero(info["action_mask"][1:])
        if held >= 0 and not stopped:
            action, stopped = 0, True  # stopped once, and continued
        else:
            action = 1 + (held if held >= 0 else int(allowed[np.argmin(env.view.tau[env.job, allowed])]))
        _, reward, terminated, truncated, info = env.step(action)
        rewards, over = rewards + reward, terminated or truncated
        kinds += [event["kind"] for event in info["events"]]
    assert kinds.count("ended") == 2
    result = env.result("fastest")
    assert -rewards == pytest.approx(result.total_eur)
    assert -rewards == pytest.approx(info["total_energy_eur"] + info["total_tardiness_eur"])
    env.write_run(tmp_path / "run")
    env.close()
    assert audit(tmp_path / "run") == []


def module_of(path: Path) -> Any:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
