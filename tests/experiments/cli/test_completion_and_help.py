"""What the shell completes, what a policy is described as, and words of usage errors."""

import pytest
from typer.testing import CliRunner

from commands import assert_one_error, gpusched, succeeds
from gpusched_baselines.registry import policy_names
from gpusched_env.workload import builtin_scenarios, list_scenarios
from gpusched_experiments.cli import terminal as completion
from gpusched_experiments.cli.app import app
from gpusched_experiments.cli.policies import _arguments


def test_names_are_completed_by_the_shell(monkeypatch):
    assert completion.a_policy("edf") == [name for name in policy_names() if name.startswith("edf")]
    assert completion.a_policy("agent:d") == ["agent:default"]
    assert completion.a_scenario("tin") == ["tiny"]
    assert completion.a_scenario("sla") == ["slack"]
    assert completion.a_track("bus") == ["busy"]
    sts = ["sts:priced", "sts:published", "sts:ipopt", "sts:highs"]
    assert completion.policies("edf,sts:") == [f"edf,{name}" for name in sts]
    assert completion.policies("edf,sts-") == ["edf,sts-x", "edf,sts-x:tuned"]
    assert "edf,edf" not in completion.policies("edf,e")
    assert list_scenarios() == tuple(builtin_scenarios())
    monkeypatch.setenv("_GPUSCHED_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", "gpusched simulate --scenario tin")
    monkeypatch.setenv("COMP_CWORD", "3")
    done = CliRunner().invoke(app, [], prog_name="gpusched")
    assert done.stdout.split() == ["tiny"]


def test_a_policy_is_described_with_its_settings_and_what_docstrings_say_of_them():
    done = succeeds("policies", "--show", "sts-x")
    for part in (
        "source: own (own: made in this project)",
        "waits",
        "True",
        "sts-x:no-waiting",
        'make_policy("sts-x")',
    ):
        assert part in done.stdout
    assert "load_policy" in gpusched("policies", "--show", "agent:default").stdout
    doc = "Do it.\n\nArgs:\n    one: First\n        line.\n    two: Second.\n\nReturns:\n    It."
    assert _arguments(doc) == {"one": "First line.", "two": "Second."}


@pytest.mark.parametrize("name", policy_names())
def test_every_policy_can_be_described(name):
    assert gpusched("policies", "--show", name).exit_code == 0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("policies", "--show", "EDF"), "did you mean edf?"),
        (("simulate", "--scenario", "tinny"), "did you mean tiny?"),
        (("simulate", "-s", "tiny", "--set", "cluster.node=3"), "did you mean nodes?"),
        (("simulate", "-s", "tiny", "--set", "arrivals.kind=lw"), "did you mean low?"),
        (("simulate", "-s", "tiny", "--set", "cluster.gpu_types=A100"), 'such as ["V100", "A100"]'),
        (("tracks", "bussy"), "did you mean busy?"),
        (("simulate", "--policy", "agent:defalt"), "did you mean agent:default?"),
        (("train",), "such as --out"),
    ],
)
def test_errors_say_what_was_meant(arguments, words):
    assert_one_error(gpusched(*arguments), [words])
