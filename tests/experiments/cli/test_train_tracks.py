"""`gpusched train --agent es` and `--track`, on few jobs and in this process alone."""

import json

import pytest

from commands import assert_one_error, gpusched

pytest.importorskip("sb3_contrib", reason="needs the extra `agents`")

from collections.abc import Iterator
from pathlib import Path

from click.testing import Result

from adapted import InThisProcess
from gpusched_agents.files.storage import load_description

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


def test_a_training_on_a_track_says_what_sts_x_costs_and_how_to_compare_its_agent(trained):
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


def test_a_track_of_ones_own_is_trained_on_and_compared_as_its_scenario(tmp_path):
    own = tmp_path / "own.toml"
    own.write_text(OWN)
    done = train(tmp_path / "run", "--track", own, "--steps", 1)
    assert done.exit_code == 0, done.output
    assert f"--scenario {own} --set jobs.count=8" in done.stdout.splitlines()[-1]
    assert json.loads((tmp_path / "run" / "training.json").read_text())["config"]["scenarios"] == [str(own)]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--track", "nowhere"], ["nowhere", "slack"]),
        (["--track", "slack,"], ["track"]),
        (["--track", "missing.toml"], ["missing.toml"]),
        (["--track", "slack", "--jobs", 0], ["jobs.count = 0"]),
    ],
)
def test_bad_input_is_one_line_and_leaves_nothing_behind(tmp_path, arguments, words):
    assert_one_error(train(tmp_path / "run", *arguments), words)
    assert list(tmp_path.iterdir()) == []


def test_callbacks_of_stable_baselines_are_none_of_its_own(tmp_path):
    callback = "stable_baselines3.common.callbacks:StopTrainingOnMaxEpisodes=" + '{"max_episodes": 1}'
    done = train(tmp_path / "run", "--track", "slack", "--callback", callback)
    assert_one_error(done, ["callbacks", "none, for es: it is not of Stable-Baselines3"])
    assert list(tmp_path.iterdir()) == []
