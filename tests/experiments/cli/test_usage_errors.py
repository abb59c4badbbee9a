"""Wrong options end in one line that names the option and its value, and exit code 2."""

import pytest

from commands import assert_one_error, gpusched, succeeds
from gpusched_experiments.report import evaluation


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["compare", "--workers", "x"], ("--workers = 'x'",)),
        (["compare", "-w", "x"], ("-w = 'x'", "--workers")),
        (["simulate", "--seed=half"], ("--seed = 'half'",)),
        (["compare", "--bogus"], ("--bogus",)),
        (["frobnicate"], ("frobnicate",)),
        (["audit"], ("DIR",)),
        (["policies", "foo"], ("foo",)),
    ],
)
def test_a_wrong_option_ends_in_one_line(arguments, words):
    assert_one_error(gpusched(*arguments), words)


def test_without_a_command_the_help_is_shown():
    result = succeeds()
    assert "compare" in result.stdout


def test_an_interrupted_comparison_keeps_no_run_that_has_not_ended(tmp_path, monkeypatch):
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(evaluation, "simulate", interrupted)
    words = f"compare -p edf -s tiny --seeds 0-3 --workers 1 --out {tmp_path / 'run'}"
    done = gpusched(*words.split())
    assert done.exit_code == 130
    assert done.stderr.splitlines()[-1] == "error: interrupted"
    assert {path.name: path.stat().st_size for path in (tmp_path / "run").iterdir()} == {
        "cells.csv": 0,
        "scenario.toml": (tmp_path / "run/scenario.toml").stat().st_size,
    }
