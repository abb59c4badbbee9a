"""`gpusched train` on a tiny cluster: to the end, interrupted and resumed, and with bad input."""

import csv
import json
import shlex
import signal
import sys

import numpy as np
import pytest

from commands import assert_one_error, gpusched, succeeds

pytest.importorskip("sb3_contrib", reason="needs the extra `agents`")

from pathlib import Path

import gpusched_agents
from gpusched_agents.files.storage import load_agent, load_description
from gpusched_agents.training.algorithm_config import AdaptationConfig, EsConfig
from gpusched_agents.training.checkpoint import Checkpoint
from gpusched_agents.training.config import TrainingConfig
from gpusched_agents.training.workloads import validation_instance, validation_places
from gpusched_baselines import make_policy
from gpusched_env import load_scenario, make_instance, simulate
from gpusched_experiments.cli.scenario_options import ScenarioOptions, parse_setting
from refusals import refused

SETTINGS = (
    "--scenario", "tiny", "--agent", "ppo", "--envs", 4, "--hidden", 8, "--validation-seeds", "500-501",
    "--steps", 128, "--evaluate-every", 32, "--set", "agent.n_steps=8", "--set", "agent.batch_size=16",
    "--set", "agent.workloads=4",
)  # fmt: skip
STEPS = [0, 32, 64, 96, 128]


def train(folder, *arguments):
    return gpusched("train", *SETTINGS, "--out", folder, *arguments)


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("trained") / "run"
    done = train(folder)
    assert done.exit_code == 0, done.output
    return folder, done


def evaluated(done) -> list[int]:
    return [int(line.split()[0]) for line in done.stderr.splitlines() if "tardiness" in line]


def weights(folder: Path) -> dict[str, list[float]]:
    return {name: array.tolist() for name, array in load_agent(folder / "agent")[1].items()}


def test_a_training_shows_its_evaluations_and_says_where_the_agent_is(trained):
    folder, done = trained
    rows = list(csv.DictReader((folder / "curve.csv").read_text().splitlines()))
    assert [int(row["steps"]) for row in rows] == STEPS
    assert evaluated(done) == STEPS
    lines = [line for line in done.stderr.splitlines() if "tardiness" in line]
    costs = [float(row["total_eur"]) for row in rows]
    for index, (line, cost) in enumerate(zip(lines, costs, strict=True)):
        assert f"{cost:,.2f} €" in line
        assert ("best so far" in line) == all(cost < former for former in costs[:index])
    assert f"wrote {folder / 'agent'}\n" in done.stdout
    assert f"its mean cost on 2 validation seeds, at {STEPS[costs.index(min(costs))]} steps: {min(costs):,.2f} €" in (
        done.stdout
    )


def test_it_draws_its_curve_keeps_its_warnings_and_the_agent_carries_its_name_and_settings(trained):
    assert "<svg" in (trained[0] / "curve.svg").read_text()
    assert b"sts-x" in (trained[0] / "curve.svg").read_bytes()
    described = load_description(trained[0] / "agent")
    assert (described.name, described.algorithm, described.network.hidden) == ("agent", "ppo", 8)
    assert described.config["agent"]["settings"]["n_steps"] == 8
    assert [point["steps"] for point in described.curve] == STEPS
    folder, done = trained
    kept = json.loads((folder / "training.json").read_text())
    warned = [line.removeprefix("warning: ") for line in done.stderr.splitlines() if line.startswith("warning: ")]
    assert warned == kept["warnings"]
    assert done.exit_code == 0


def test_what_it_says_to_compare_the_agent_with_works(trained, tmp_path):
    line = trained[1].stdout.splitlines()[-1]
    program, *arguments = shlex.split(line.removeprefix("compare it: "))
    assert (program, arguments[-2:]) == ("gpusched", ["--scenario", "tiny"])
    done = succeeds(*arguments, "--seeds", "0", "-w", 1, "--out", tmp_path / "compared")
    assert f"agent:{trained[0] / 'agent'}" in done.stdout.replace("\n", "")


def test_the_same_command_on_a_finished_run_changes_nothing(trained):
    folder, _ = trained
    before = (folder / "curve.csv").read_bytes(), weights(folder)
    done = train(folder)
    assert done.exit_code == 0, done.output
    assert "already trained to the end, at 128 steps" in done.stderr
    assert ((folder / "curve.csv").read_bytes(), weights(folder)) == before


@pytest.fixture
def interruptible():
    """Have SIGINT interrupt, also where the tests run in the background of a shell, which ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
@pytest.mark.parametrize("steps", [64, 96])
def test_an_interrupted_training_resumes_and_ends_as_if_nothing_had_happened(trained, tmp_path, monkeypatch, steps):
    monkeypatch.setattr("gpusched_agents.training.sb3_training.REMEMBER_S", 0.0)
    report = gpusched_agents.ControlTraining._report

    def interrupt(self, text):
        report(self, text)
        if self.progress.steps >= steps:
            signal.raise_signal(signal.SIGINT)

    with monkeypatch.context() as patch:
        patch.setattr(gpusched_agents.ControlTraining, "_report", interrupt)
        stopped = train(tmp_path / "run")
    assert stopped.exit_code == 130
    kept = steps - 32
    assert stopped.stderr.splitlines()[-1] == f"error: interrupted; the same command goes on at {kept} steps"
    assert stopped.stdout == ""
    resumed = train(tmp_path / "run")
    assert resumed.exit_code == 0, resumed.output
    assert f"resuming at {kept} steps" in resumed.stderr
    assert evaluated(resumed) == [step for step in STEPS if step > kept]
    assert weights(tmp_path / "run") == weights(trained[0])
    total = [line.split(",")[2] for line in (tmp_path / "run" / "curve.csv").read_text().splitlines()]
    assert total == [line.split(",")[2] for line in (trained[0] / "curve.csv").read_text().splitlines()]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--agent", "trpo"], ["--agent", "trpo", "es", "sac"]),
        (["--patience", "endless"], ["--patience", "endless"]),
        (["--scenario", "nowhere"], ["scenario", "nowhere", "tiny"]),
        (["--scenario", "tiny,"], ["scenario"]),
        (["--scenario", "tiny,high,low,mixed,burst"], ["envs", "4", "at least 5"]),
        (["--scenario", "tiny,published-high"], ["tiny", "published-high"]),
        (["--name", "my agent"], ["--name", "my agent", "underscores"]),
        (["--set", "scenario_settings=2"], ["--set", "scenario_settings=2"]),
        (["--scenario-set", "prices.pue"], ["--scenario-set", "prices.pue", "section.name=value"]),
        (["--scenario-set", "prices.colour=3"], ["prices.colour = 3", "no such setting"]),
        (["--nodes", "0"], ["cluster.nodes = 0"]),
        (["--jobs", "0"], ["jobs.count = 0"]),
        (["--trace", "missing.csv"], ["missing.csv"]),
        (["--trace-format", "philly"], ["--trace-format", "--trace"]),
    ],
)
def test_bad_input_is_one_line_and_leaves_nothing_behind(tmp_path, arguments, words):
    assert_one_error(train(tmp_path / "run", *arguments), words)
    assert list(tmp_path.iterdir()) == []


CHANGED = ("--jobs", 4, "--nodes", 2, "--scenario-set", "prices.pue=1.2", "--scenario-set", "cluster.gpu_types=['T4']")
SETTINGS_CHANGED = {"jobs.count": 4, "cluster.nodes": 2, "prices.pue": 1.2, "cluster.gpu_types": ["T4"]}


@pytest.fixture(scope="module")
def changed(tmp_path_factory):
    folder = tmp_path_factory.mktemp("changed") / "run"
    done = train(folder, *CHANGED)
    assert done.exit_code == 0, done.output
    return folder, done


def test_settings_of_the_scenario_are_written_down_wherever_other_settings_are(changed):
    folder, _ = changed
    written = json.loads((folder / "training.json").read_text())["config"]
    assert written["scenario_settings"] == SETTINGS_CHANGED
    assert Checkpoint.read(folder / "checkpoint.npz").facts["config"] == written
    described = load_description(folder / "agent")
    assert described.config["scenario_settings"] == SETTINGS_CHANGED
    assert described.spec.gpu_types == ("T4",)
    line = changed[1].stdout.splitlines()[-1]
    words = shlex.split(line.removeprefix("compare it: "))
    settings = dict(parse_setting(words[i + 1]) for i, word in enumerate(words) if word == "--set")
    assert settings == SETTINGS_CHANGED
    done = train(changed[0], *CHANGED[2:])
    assert done.exit_code == 2
    assert "scenario_settings" in done.stderr
    assert train(changed[0], *CHANGED).exit_code == 0


def test_settings_of_validation_reach_only_the_workloads_that_decide_which_agent_is_kept(tmp_path):
    config = TrainingConfig(
        agent=AdaptationConfig("ppo", {"batch_size": 64}),
        scenarios=("tiny", "low"),
        scenario_settings=SETTINGS_CHANGED,
        validation_settings={"prices.pue": 1.9},
        envs=2,
        validation_seeds=(500,),
    )
    training = gpusched_agents.ControlTraining(config, tmp_path / "run")
    expected = [load_scenario(name).replace(SETTINGS_CHANGED) for name in ("tiny", "low")]
    assert training._instances == [make_instance(each.replace({"prices.pue": 1.9}), 500) for each in expected]
    assert [env.unwrapped.source.scenario for env in training._env.vector.envs] == expected
    assert config.as_dict()["validation_settings"] == {"prices.pue": 1.9}
    assert "validation_settings" not in TrainingConfig().as_dict()
    evolved = TrainingConfig(agent=EsConfig(), validation_settings={"prices.pue": 1.9}, scenarios=("tiny",))
    assert validation_instance(evolved, validation_places(evolved)[0]).pue == 1.9
    with refused("validation_settings['prices.pue']"):
        TrainingConfig(validation_settings={"prices.pue": object()})


def test_a_trace_is_what_is_trained_on(tmp_path):
    trace = tmp_path / "trace.csv"
    trace.write_text("submission_s,duration_s,gpus\n" + "".join(f"{60 * i},600,1\n" for i in range(6)))
    settings = ScenarioOptions(trace=str(trace), trace_format="generic", jobs=4, settings=["trace.first=1"]).changes(
        ("tiny",)
    )
    made = load_scenario("tiny").replace(settings)
    assert (made.trace.path, made.trace.first, made.jobs.count) == (str(trace), 1, 4)
    whole = ScenarioOptions(trace=str(trace), nodes=2).changes(("tiny",))
    assert (whole["jobs.count"], whole["cluster.nodes"]) == (6, 2)
    assert make_instance(load_scenario("tiny").replace(whole), 0).jobs.submission_s.tolist() == list(range(0, 360, 60))


@pytest.mark.usefixtures("interruptible")
def test_a_training_that_is_stopped_before_its_first_update_says_that_nothing_is_kept(tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(gpusched_agents.ControlTraining, "_begin", lambda *_: signal.raise_signal(signal.SIGINT))
        stopped = train(tmp_path / "run")
    assert stopped.exit_code == 130
    assert stopped.stderr.splitlines()[-1] == "error: interrupted; the same command begins again: nothing is kept yet"
    again = train(tmp_path / "run")
    assert again.exit_code == 0, again.output
    assert "resuming" not in again.stderr
    assert evaluated(again) == STEPS


def test_sts_x_sts_and_edf_stand_at_the_beginning_and_beside_every_evaluation(trained):
    folder, done = trained
    costs = {
        name: np.mean(
            [simulate(make_instance(load_scenario("tiny"), s), make_policy(name)).total_eur for s in (500, 501)]
        )
        for name in ("sts-x", "sts", "edf")
    }
    first, *lines = done.stderr.splitlines()
    assert first == "on the validation workloads " + ", ".join(f"{n} costs {c:,.2f} €" for n, c in costs.items())
    beside = "(" + ", ".join(f"{name} {cost:,.2f}" for name, cost in costs.items()) + ")"
    lines = [line for line in lines if "tardiness" in line]
    assert [beside in line for line in lines] == [True] * len(STEPS)
    assert ["sts-x itself" in line for line in lines] == [True, False, False, False, False]
    assert json.loads((folder / "training.json").read_text())["references"] == pytest.approx(costs, rel=1e-12)


CALLBACK = """
from stable_baselines3.common.callbacks import BaseCallback


class Counts(BaseCallback):
    def __init__(self, path, word="steps"):
        super().__init__()
        self.path, self.word = path, word

    def _on_step(self):
        return True

    def _on_training_end(self):
        with open(self.path, "a") as file:
            file.write(f"{self.num_timesteps} {self.word}\\n")


def late(path):
    return Counts(path, "late")


class Other:
    pass
"""


def test_callbacks_are_named_by_their_import_path_with_arguments_as_json(trained, tmp_path, monkeypatch):
    (tmp_path / "my_callbacks.py").write_text(CALLBACK)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    first = 'my_callbacks:Counts={"path": "counted.txt"}'
    done = train("run", "--callback", first, "--callback", 'my_callbacks:late={"path": "counted.txt"}')
    assert done.exit_code == 0, done.output
    assert (tmp_path / "counted.txt").read_text() == "128 steps\n128 late\n"
    assert weights(tmp_path / "run") == weights(trained[0])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("my_other_callbacks", "module:Class"),
        ("no_such_module:Mine", "no_such_module"),
        ("my_other_callbacks:Missing", "Missing"),
        ("my_other_callbacks:Counts", "path"),
        ("my_other_callbacks:Counts=5", "JSON object"),
        ("my_other_callbacks:Counts={", "JSON object"),
        ('my_other_callbacks:Counts={"colour": 1}', "colour"),
        ("my_other_callbacks:Other", "BaseCallback"),
    ],
)
def test_a_callback_that_is_none_is_one_line_and_leaves_nothing_behind(tmp_path, monkeypatch, text, words):
    (tmp_path / "my_other_callbacks.py").write_text(CALLBACK)
    monkeypatch.chdir(tmp_path)
    done = train("run", "--callback", text)
    assert_one_error(done, ("error: --callback = ", words))
    assert not (tmp_path / "run").exists()
