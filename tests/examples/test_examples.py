"""The examples run as commands on a small setting, and their output is that of the golden files."""

from __future__ import annotations

import re
import runpy
import sys
from pathlib import Path

import numpy as np
import pytest

from gpusched_baselines import make_policy
from gpusched_env import load_scenario, make_instance, simulate
from gpusched_env.workload import load_track

EXAMPLES = Path(__file__).parents[2] / "examples"
GOLDEN = Path(__file__).parent / "golden"
SMALL = {
    "compiled_policy": (),
    "own_cluster": ("--seeds", "2"),
    "own_rule": ("--scenario", "tiny", "--seeds", "4"),
    "replay_trace": ("--jobs", "30", "--nodes", "2"),
    "run_a_policy": ("--scenario", "tiny", "--seed", "0"),
}
BY_HTTP = ("ask_the_service",)  # with the service
TRAINING = ("search_hyperparameters", "train_agents", "train_maskable_ppo", "train_on_rows")
RECORDS = "record_minari"
ON_SLURM = "evaluate_on_slurm"  # with the live environment
LIBRARIES = {"train_with_rllib": "ray.rllib", "check_with_torchrl": "torchrl.envs"}
NUMBERS = r" +\d+\.\d{2} +\d+\.\d{2} +\d+\.\d{2} +\d+\.\d +\d+"


@pytest.fixture
def printed(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    def run(name: str, *arguments: str) -> str:
        monkeypatch.setattr(sys, "argv", [f"{name}.py", *arguments])
        runpy.run_path(str(EXAMPLES / f"{name}.py"), run_name="__main__")
        return capsys.readouterr().out

    return run


@pytest.mark.parametrize("name", SMALL)
def test_an_example_prints_the_same_costs_as_before(name: str, printed):
    assert printed(name, *SMALL[name]) == (GOLDEN / f"{name}.txt").read_text(encoding="utf-8")


def test_the_example_of_a_trace_takes_a_path(printed, tmp_path: Path):
    path = tmp_path / "mine.csv"
    path.write_text("submission_s,duration_s,gpus\n0,3600,1\n60,7200,4\n", encoding="utf-8")
    lines = printed("replay_trace", str(path), "--nodes", "3").splitlines()
    assert lines[0] == "mine.csv: 2 jobs, 9 GPU-hours, on 3 nodes"
    assert [line.split()[0] for line in lines[3:]] == ["fifo", "edf", "sts"]


def test_the_example_of_training_prints_policies_and_agents_on_the_same_workloads(printed):
    pytest.importorskip("sb3_contrib", reason="needs the extra `agents`")
    lines = printed("train_agents", "--steps", "256", "--seeds", "2").splitlines()
    golden = (GOLDEN / "train_agents.txt").read_text(encoding="utf-8").splitlines()
    assert lines[:3] == golden  # the heading, EDF and STS; what is learned depends on the machine
    rows = ("PPO 0 steps", "PPO 256 steps", "MaskablePPO 0 steps", "MaskablePPO 256 steps")
    assert len(lines) == 3 + len(rows)
    for row, line in zip(rows, lines[3:], strict=True):
        assert re.fullmatch(re.escape(row) + NUMBERS, line)


@pytest.mark.parametrize(
    ("name", "arguments", "words"),
    [
        ("own_rule", ("--seeds", "0"), "--seeds = 0"),
        ("own_rule", ("--scenario", "nowhere"), "scenario = 'nowhere'"),
        ("replay_trace", ("nowhere.csv",), "trace.path = 'nowhere.csv'"),
        ("replay_trace", ("--nodes", "0"), "cluster.nodes = 0"),
        ("run_a_policy", ("--scenario", "nowhere"), "scenario = 'nowhere'"),
        ("run_a_policy", ("--seed", "-1"), "zero"),
    ],
)
def test_an_example_reports_an_error_in_one_line(name: str, arguments: tuple[str, ...], words: str, printed):
    with pytest.raises(SystemExit) as caught:
        printed(name, *arguments)
    assert words in str(caught.value)
    assert re.fullmatch(r"error: .+", str(caught.value))


def test_the_example_of_an_own_cluster_refuses_to_run_nothing(printed, capsys):
    with pytest.raises(SystemExit):
        printed("own_cluster", "--seeds", "0")
    assert "error: --seeds must be 1 or more" in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [("--steps", "0"), ("--seeds", "0")])
def test_the_example_of_training_refuses_to_train_or_evaluate_nothing(arguments: tuple[str, ...], printed, capsys):
    pytest.importorskip("sb3_contrib", reason="needs the extra `agents`")
    with pytest.raises(SystemExit):
        printed("train_agents", *arguments)
    assert "error: --steps and --seeds must be 1 or more" in capsys.readouterr().err


def test_the_example_of_rows_prints_a_line_for_every_training(printed):
    pytest.importorskip("sb3_contrib", reason="needs the extra `agents`")
    small = ("--jobs", "4", "--rows", "2", "--steps", "1", "--trainings", "1", "--seeds", "1")
    lines = printed("train_on_rows", *small).splitlines()
    assert [line.split()[0] for line in lines[:2]] == ["edf", "sts-x"]
    assert [line.split()[1] for line in lines[2:]] == ["without", "flattened", "attention"]


def test_the_example_of_imitation_prints_policies_and_the_archives_that_it_saves(printed, tmp_path: Path):
    pytest.importorskip("sb3_contrib", reason="needs the extra `agents`")
    small = ("--imitated", "512", "--steps", "512", "--seeds", "1", "--out", str(tmp_path / "run"))
    rows = [line.split() for line in printed("train_maskable_ppo", *small).splitlines()]
    archives = [f"sb3:{tmp_path}/run/{name}.zip" for name in ("imitated", "learnt")]
    assert [name for name, _ in rows] == ["edf", "sts-x", *archives]
    assert all(float(cost) > 0.0 for _, cost in rows)


def test_the_example_of_a_search_goes_on_where_it_was_and_shows_the_reference_policies(printed, tmp_path: Path):
    pytest.importorskip("sb3_contrib", reason="needs the extra `agents`")
    pytest.importorskip("optuna", reason="needs the extra `search`")
    small = ("--steps", "256", "--out", str(tmp_path / "search"))
    first = printed("search_hyperparameters", "--trials", "1", *small).splitlines()
    assert [line.split()[0] for line in first] == ["trial", "sts-x", "sts", "edf", "best:"]
    second = printed("search_hyperparameters", "--trials", "2", *small).splitlines()
    assert second[0].startswith("trial   1 costs")
    costs = [float(re.search(r"costs +([\d,.]+) €", lines[0])[1].replace(",", "")) for lines in (first, second)]
    assert f"best: trial {costs.index(min(costs))}, {min(costs):.2f} €" in second[-1]
    third = printed("search_hyperparameters", "--trials", "2", *small).splitlines()
    assert third == second[1:], "both trials are there already"


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize(("name", "package"), LIBRARIES.items())
def test_an_example_for_another_library_prints_only_true(name: str, package: str, printed):
    pytest.importorskip(package, reason=f"{package} is not installed")
    assert printed(name).splitlines()[-1] == "True True"


@pytest.mark.filterwarnings("ignore:.*is set to None:UserWarning")  # authors and links of a published dataset
def test_the_example_of_recording_writes_what_minari_reads(printed, tmp_path: Path, monkeypatch):
    minari = pytest.importorskip("minari", reason="needs the extra `minari`")
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))
    said = printed(RECORDS, "--policy", "edf", "--jobs", "5", "--episodes", "2")
    assert re.fullmatch(r"slack/edf-v0: 2 episodes, \d+ steps, mean return -\d\.\d{3}\n", said)
    dataset = minari.load_dataset("slack/edf-v0")
    env, scenario = dataset.recover_environment(), load_scenario("slack").replace({"jobs.count": 5})
    assert dataset.observation_space == env.observation_space
    for seed, episode in zip(load_track("slack").seeds("training"), dataset.iterate_episodes(), strict=False):
        result = simulate(make_instance(scenario, seed), make_policy("edf"), seed=seed)
        assert episode.rewards.sum() == pytest.approx(-result.total_eur / env.unwrapped.reward_scale)
        assert episode.terminations.tolist() == [False] * (len(episode.actions) - 1) + [True]
        assert episode.infos["action_mask"][np.arange(len(episode.actions)), episode.actions].all()


@pytest.mark.parametrize("name", [*SMALL, *TRAINING, *LIBRARIES, RECORDS, ON_SLURM])
def test_an_example_is_short_enough_to_read(name: str):
    most = {RECORDS: 55, ON_SLURM: 85, "train_maskable_ppo": 80}.get(name, 50)
    assert len((EXAMPLES / f"{name}.py").read_text(encoding="utf-8").splitlines()) <= most


def test_every_example_is_tested():
    assert {path.stem for path in EXAMPLES.glob("*.py")} == {*SMALL, *TRAINING, *BY_HTTP, *LIBRARIES, RECORDS, ON_SLURM}
