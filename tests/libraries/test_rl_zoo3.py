"""RL Zoo: our hyperparameters are ones that it takes, and its own program trains by them."""

import csv
import inspect
import json
import math
import subprocess
import sys
from pathlib import Path

import gymnasium
import pytest

from gpusched_env import register_envs

sb3 = pytest.importorskip("stable_baselines3", reason='pip install "gpusched-env[agents]"')
yaml = pytest.importorskip("yaml", reason="pip install pyyaml")

FOLDER = Path(__file__).parents[2] / "examples" / "rl_zoo3"
OF_THE_ZOO = {"n_envs", "n_timesteps"}
ENV_ID = "gpusched_env/SlackFlat-v0"
FEWER = {"ppo": ("n_envs:2", "n_steps:50", "batch_size:50"), "dqn": ("learning_starts:50",)}
# One process for all, since importing it takes longer than the runs; it changes Gymnasium, so it is not this one.
PROGRAM = """
import json, sys
from rl_zoo3.train import train
for arguments in json.loads(sys.argv[1]):
    sys.argv = ["train.py", *arguments]
    train()
"""


def parsed(algorithm):
    return yaml.safe_load((FOLDER / f"{algorithm}.yml").read_text(encoding="utf-8"))


@pytest.mark.parametrize("algorithm", sorted(path.stem for path in FOLDER.glob("*.yml")))
def test_the_files_name_ids_of_ours_and_parameters_of_the_algorithm(algorithm):
    register_envs()
    taken = set(inspect.signature(getattr(sb3, algorithm.upper())).parameters)
    for name, values in parsed(algorithm).items():
        assert name == "default" or gymnasium.spec(name).namespace == "gpusched_env"
        assert set(values) - OF_THE_ZOO <= taken
        assert "policy" in values


def arguments(algorithm, logs):
    """Return the options of a short training: those that a user gives, and few jobs and steps."""
    usual = ("--algo", algorithm, "--env", ENV_ID, "--gym-packages", "gpusched_env", "--seed", "3")
    place = ("--conf-file", str(FOLDER / f"{algorithm}.yml"), "-f", str(logs), "--device", "cpu", "--num-threads", "1")
    short = ("-n", "200", "--eval-freq", "-1", "--env-kwargs", "settings:{'jobs.count':4}")
    return (*usual, *place, *short, "--hyperparams", *FEWER[algorithm])


@pytest.fixture(scope="module")
def logs(tmp_path_factory):
    pytest.importorskip("rl_zoo3", reason="RL Zoo is not installed: pip install rl-zoo3")
    folder = tmp_path_factory.mktemp("zoo")
    runs = [("ppo", folder / "first"), ("dqn", folder / "first"), ("ppo", folder / "again")]
    wanted = json.dumps([arguments(*run) for run in runs])
    done = subprocess.run([sys.executable, "-c", PROGRAM, wanted], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.mark.parametrize("algorithm", ["ppo", "dqn"])
def test_its_training_program_runs_with_our_id_package_and_file(logs, algorithm):
    folder = logs / "first" / algorithm / "gpusched_env-SlackFlat-v0_1"
    model = getattr(sb3, algorithm.upper()).load(folder / "gpusched_env-SlackFlat-v0.zip", device="cpu")
    env = gymnasium.make(f"gpusched_env:{ENV_ID}")
    assert (model.observation_space, model.action_space) == (env.observation_space, env.action_space)
    assert model.gamma == parsed(algorithm)[ENV_ID]["gamma"]
    returns = episode_returns(folder)
    assert len(returns) > 1
    assert all(math.isfinite(value) and value < 0.0 for value in returns)


def test_its_training_program_does_the_same_again_for_the_same_seed(logs):
    first, again = (logs / name / "ppo" / "gpusched_env-SlackFlat-v0_1" for name in ("first", "again"))
    assert episode_returns(first) == episode_returns(again)


def episode_returns(folder):
    rows = csv.DictReader((folder / "0.monitor.csv").read_text(encoding="utf-8").splitlines()[1:])
    return [float(row["r"]) for row in rows]
