"""`gpusched tune`: a search on training seeds, a table on validation seeds, and a file that is a policy."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from commands import gpusched, succeeds
from gpusched_agents.any_policy import make_any_policy
from gpusched_baselines.adaptation_env.controls import OF_ENERGY
from gpusched_env import load_scenario, make_instance
from gpusched_experiments.cli import tune
from gpusched_experiments.cli.app import app

TRACK = """base = "tiny"
[track]
hard = "nothing"
weights = "none"
training = "1000-1009"
validation = "7-9"
test = "3-4"
"""


@pytest.fixture
def track(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text(TRACK, encoding="utf-8")
    return path


def test_constants_are_found_judged_and_written(tmp_path, track):
    out = tmp_path / "tuned.json"
    asked = ["tune", "--track", str(track), "-n", "6", "--workloads", "2", "--seed", "3", "-w", "1", "-o", str(out)]
    done = succeeds(*asked)
    assert f"wrote {out}" in done.output
    assert "Constants on validation seeds" in done.output
    document = json.loads(out.read_text(encoding="utf-8"))
    facts = document["provenance"]["facts"]
    assert (facts["tracks"], facts["workloads"], facts["evaluations"], facts["seed"]) == (["mine"], 2, 6, 3)
    assert set(facts["validation"]) == {"mine"}
    assert facts["training_cost"] <= 1.0
    policy = make_any_policy(f"tuned:{out}")
    assert dict(policy.constants) == document["constants"]
    compared = CliRunner().invoke(
        app,
        ["compare", "--track", str(track), "--policies", f"sts-x,tuned:{out}", "-o", str(tmp_path / "c"), "-w", "1"],
    )
    assert compared.exit_code == 0, compared.output
    first = out.read_text(encoding="utf-8")
    other = gpusched(*asked, "--set", "prices.pue=1.2")
    assert (other.exit_code, "settings.prices.pue = None, these of 1.2" in other.stderr) == (2, True)
    assert out.read_text(encoding="utf-8") == first
    gpusched(*asked)
    assert json.loads(out.read_text(encoding="utf-8"))["constants"] == json.loads(first)["constants"]


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (["--evaluations", "0"], "--evaluations = 0"),
        (["--workloads", "0"], "--workloads = 0"),
        (["--out", "x.txt"], "--out = 'x.txt'"),
        (["--seed", "-1"], "seed = -1"),
    ],
)
def test_bad_options_are_one_clear_error(track, wrong, said):
    done = gpusched("tune", "--track", str(track), "-w", "1", *wrong)
    assert done.exit_code == 2
    assert said in done.output


def test_settings_are_those_of_training_and_more_of_validation(track, tmp_path, monkeypatch):
    made = []

    def costs(pool, policy, instances):  # noqa: ARG001
        made.append([instance.pue for instance in instances])
        return np.ones(len(instances))

    monkeypatch.setattr(tune, "_costs", costs)
    out = tmp_path / "tuned.json"
    asked = ["tune", "--track", str(track), "-n", "2", "--workloads", "2", "-w", "1", "-o", str(out)]
    asked += ["--set", "prices.pue=1.4", "--validation-set", "prices.pue=1.7"]
    succeeds(*asked)
    assert made == [[1.4, 1.4]] * 3 + [[1.7] * 3] * 2
    facts = json.loads(out.read_text(encoding="utf-8"))["provenance"]["facts"]
    assert (facts["settings"], facts["validation_settings"]) == ({"prices.pue": 1.4}, {"prices.pue": 1.7})


def test_where_prices_change_the_controls_of_prices_are_searched_too():
    scenarios = [load_scenario(name).replace({"jobs.count": 2}) for name in ("low", "de-lu")]
    names = [tune._controls_of(make_instance(scenario, 0)) for scenario in scenarios]
    assert names[1][-len(OF_ENERGY) :] == OF_ENERGY
    assert not set(OF_ENERGY) & set(names[0])
