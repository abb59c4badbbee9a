"""Trainings in processes: one that is killed goes on where it was; workers give what one process gives."""

import json
import signal
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("sb3_contrib", reason="needs the extra `agents`")


from adapted import NETWORK, randomised, spec_of
from control_runs import BASE, ENVS, curve, outcome, same
from gpusched_agents.files.storage import load_agent
from gpusched_agents.training.algorithm_config import EsConfig
from gpusched_agents.training.checkpoint import Checkpoint
from gpusched_agents.training.config import TrainingConfig
from gpusched_agents.training.control_training import ControlTraining
from gpusched_agents.training.evolution import Workers
from gpusched_agents.training.evolved import EvolvedNetwork
from gpusched_agents.training.workloads import RANDOMISED, TrainingPlace
from instances import random_instance

PROGRAM = """
import sys
from gpusched_agents.training.algorithm_config import *
from gpusched_agents.training.config import *
from gpusched_agents.training.control_training import ControlTraining
config = eval(sys.argv[2])
ControlTraining(config, sys.argv[1], on_progress=lambda *report: print(*report, flush=True)).run()
"""


def test_a_killed_run_is_never_corrupt_and_ends_as_if_it_had_not_been(tmp_path):
    """Killed (SIGKILL) three times, shortly after its n-th report."""
    folder, rng = tmp_path / "run", np.random.default_rng()
    command = [sys.executable, "-c", PROGRAM, str(folder), repr(BASE)]
    for lines in (1, 4, 3):
        moment_s = float(rng.uniform(0.0, 0.2))
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            reported = [process.stdout.readline() for _ in range(lines)]
            try:
                process.wait(moment_s)
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGKILL)
        assert all(reported) or process.returncode == 0, "a later session may end before it has reported so often"
        assert json.loads((folder / "training.json").read_text(encoding="utf-8"))["config"]["envs"] == ENVS
        if (folder / "agent").exists():
            load_agent(folder / "agent")
            curve(folder)
        if (folder / "checkpoint.npz").exists():
            Checkpoint.read(folder / "checkpoint.npz")
    ControlTraining(BASE, folder).run()
    ControlTraining(BASE, tmp_path / "whole").run()
    same(outcome(folder), outcome(tmp_path / "whole"))
    assert {path.name for path in folder.iterdir() if not path.name.startswith(".")} == {
        "training.json", "checkpoint.npz", "curve.csv", "logs", "agent"
    }  # fmt: skip


def test_workers_of_evolution_strategies_give_what_this_process_gives():
    instance = random_instance(0)
    config = TrainingConfig(agent=EsConfig(pairs=2, most_jobs=8), scenarios=("tiny", "low"))
    config = replace(config, scenario_settings={"jobs.count": 8})
    candidates = np.stack([randomised(instance, seed) for seed in range(6)])
    where = [TrainingPlace(0, 100_001), TrainingPlace(1, 100_002), TrainingPlace(RANDOMISED, 100_003)] * 2
    found = []
    for processes in (1, 2):
        with Workers(config, EvolvedNetwork(spec_of(instance), NETWORK), processes) as workers:
            found.append(workers.differences(candidates, where, 8))
    np.testing.assert_array_equal(found[0][0], found[1][0])
    assert found[0][1] == found[1][1]
