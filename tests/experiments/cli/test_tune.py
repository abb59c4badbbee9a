"""`gpusched tune`: a search on training seeds, a table on validation seeds, and a file that is a policy."""

import json

import pytest
from typer.testing import CliRunner

from gpusched_agents.any_policy import make_any_policy
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


@pytest.mark.slow
def test_constants_are_found_judged_and_written(tmp_path, track):
    out = tmp_path / "tuned.json"
    asked = ["tune", "--track", str(track), "-n", "6", "--workloads", "2", "--seed", "3", "-w", "1", "-o", str(out)]
    done = CliRunner().invoke(app, asked)
    assert done.exit_code == 0, done.output
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
    CliRunner().invoke(app, asked)
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
    done = CliRunner().invoke(app, ["tune", "--track", str(track), "-w", "1", *wrong])
    assert done.exit_code == 2
    assert said in done.output
