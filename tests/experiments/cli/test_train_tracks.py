"""`gpusched train --agent es` and `--track`, on few jobs and in this process alone."""

from __future__ import annotations

import json
import shlex
import signal
from typing import TYPE_CHECKING, Any

import pytest
from typer.testing import CliRunner

pytest.importorskip("sb3_contrib", reason="needs the extra `agents`")

from adapted import InThisProcess
from gpusched_agents.files.storage import load_agent, load_description
from gpusched_agents.training.adaptation_training import AdaptationTraining
from gpusched_env.workload import load_track
from gpusched_experiments.cli.app import app

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from click.testing import Result

SETTINGS = (
    "--agent", "es", "--jobs", 8, "--validation-seeds", 20_000, "--steps", 200, "--evaluate-every", 90, "--hidden", 3,
    "--set", "agent.pairs=1", "--set", "agent.workloads=1", "--set", "agent.sigma=0.5", "--set", "agent.most_jobs=8",
)  # fmt: skip

OWN = """
base = "tiny"

[track]
hard = "nothing"
weights = "those of tiny"
"""


def gpusched(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def train(folder: Path, *arguments: object) -> Result:
    return gpusched("train", *SETTINGS, "--out", folder, *arguments)


@pytest.fixture(autouse=True, scope="module")
def _in_this_process() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("gpusched_env.child_processes.ProcessPoolExecutor", InThisProcess)
        yield


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Result]:
    folder = tmp_path_factory.mktemp("trained") / "run"
    done = train(folder, "--track", "slack")
    assert done.exit_code == 0, done.output
    return folder, done


def test_a_training_on_a_track_says_what_sts_x_costs_and_how_to_compare_its_agent(trained: tuple[Path, Result]):
    folder, done = trained
    first, *evaluations = (line for line in done.stderr.splitlines() if "warning" not in line)
    assert first.startswith("on the validation workloads sts-x costs ")
    assert [name for name in ("sts", "edf") if f", {name} costs " in first] == ["sts", "edf"]
    assert "sts-x itself   best so far" in evaluations[0]
    assert "1.000 of sts-x's" in evaluations[0]
    assert len(evaluations) > 2
    *_, wrote, cost, compare = done.stdout.splitlines()
    assert wrote == f"wrote {folder / 'agent'}"
    assert cost.startswith("its mean cost on 1 validation seed, at ")
    policies = f"edf,sts,sts-x,agent:{folder / 'agent'}"
    assert compare == f"compare it: gpusched compare --policies {policies} --track slack --set jobs.count=8"
    described = load_description(folder / "agent")
    assert (described.algorithm, described.spec.network, described.network.hidden) == ("es", "control-set", 3)
    assert described.config["scenarios"] == ["track:slack"]


def test_what_it_says_to_compare_the_agent_with_works(trained: tuple[Path, Result], tmp_path: Path):
    _, *arguments = shlex.split(trained[1].stdout.splitlines()[-1].removeprefix("compare it: "))
    done = gpusched(
        *arguments, "--seeds", load_track("slack").seeds("test")[0], "-w", 1, "--out", tmp_path / "compared"
    )
    assert done.exit_code == 0, done.output
    assert f"agent:{trained[0] / 'agent'}" in done.stdout.replace("\n", "")


def test_the_same_command_on_a_finished_run_changes_nothing(trained: tuple[Path, Result]):
    folder, _ = trained
    before = (folder / "curve.csv").read_bytes(), (folder / "agent" / "weights.safetensors").read_bytes()
    again = train(folder, "--track", "slack")
    assert again.exit_code == 0, again.output
    assert "already trained to the end, at " in again.stderr
    assert ((folder / "curve.csv").read_bytes(), (folder / "agent" / "weights.safetensors").read_bytes()) == before


def test_other_settings_in_the_same_folder_are_refused(trained: tuple[Path, Result]):
    for more, words in (("--seed", "seed = 5; allowed: 0, as in"), ("--patience", "patience = 5; allowed: 8, as in")):
        done = train(trained[0], "--track", "slack", more, 5)
        assert (done.exit_code, done.stdout) == (2, "")
        assert words in done.stderr
    other = train(trained[0], "--track", "busy")
    assert "scenarios = ['track:busy']; allowed: ['track:slack'], as in" in other.stderr


def test_an_interrupted_training_goes_on_where_it_was(
    trained: tuple[Path, Result], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    update, left = AdaptationTraining._update, [2]

    def interrupted(self: AdaptationTraining) -> None:
        update(self)
        left[0] -= 1
        if left[0] == 0:
            signal.raise_signal(signal.SIGINT)

    with monkeypatch.context() as patch:
        patch.setattr(AdaptationTraining, "_update", interrupted)
        stopped = train(tmp_path / "run", "--track", "slack")
    signal.signal(signal.SIGINT, handler)
    assert stopped.exit_code == 130
    last = stopped.stderr.splitlines()[-1]
    assert last.startswith("error: interrupted; the same command goes on at ")
    steps = last.split()[-2]
    resumed = train(tmp_path / "run", "--track", "slack")
    assert resumed.exit_code == 0, resumed.output
    assert f"resuming at {steps} steps" in resumed.stderr
    expected, made = (load_agent(folder / "agent")[1] for folder in (trained[0], tmp_path / "run"))
    assert {name: array.tolist() for name, array in made.items()} == {n: a.tolist() for n, a in expected.items()}


def test_a_track_of_ones_own_is_trained_on_and_compared_as_its_scenario(tmp_path: Path):
    own = tmp_path / "own.toml"
    own.write_text(OWN)
    done = train(tmp_path / "run", "--track", own, "--steps", 1)
    assert done.exit_code == 0, done.output
    assert f"--scenario {own} --set jobs.count=8" in done.stdout.splitlines()[-1]
    assert json.loads((tmp_path / "run" / "training.json").read_text())["config"]["scenarios"] == [str(own)]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--track", "slack", "--scenario", "tiny"], ["--track = 'slack'", "nothing beside --scenario"]),
        (["--track", "nowhere"], ["nowhere", "slack"]),
        (["--track", "slack,"], ["track"]),
        (["--track", "missing.toml"], ["missing.toml"]),
        (["--track", "slack", "--network", "set"], ["--network = 'set'", "control-set or controls; what decides job"]),
        (["--track", "slack", "--validation-seeds", 30_000], ["30000", "20000 to 20019 of tracks"]),
        (["--track", "slack", "--set", "agent.gamma=0.9"], ["agent.gamma", "agent.pairs"]),
        (["--track", "slack", "--set", "agent.pairs=0"], ["--set agent.pairs = 0", ">= 1"]),
        (["--track", "slack", "--jobs", 0], ["jobs.count = 0"]),
    ],
)
def test_bad_input_is_one_line_and_leaves_nothing_behind(tmp_path: Path, arguments: list[Any], words: list[str]):
    check_refusal(train(tmp_path / "run", *arguments), words)
    assert list(tmp_path.iterdir()) == []


def check_refusal(done: Result, words: list[str]) -> None:
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr.startswith("error: ")
    assert done.stderr.count("\n") == 1
    for word in words:
        assert word in done.stderr


def test_callbacks_of_stable_baselines_are_none_of_its_own(tmp_path: Path):
    callback = "stable_baselines3.common.callbacks:StopTrainingOnMaxEpisodes=" + '{"max_episodes": 1}'
    done = train(tmp_path / "run", "--track", "slack", "--callback", callback)
    check_refusal(done, ["callbacks", "none, for es: it is not of Stable-Baselines3"])
    assert list(tmp_path.iterdir()) == []
