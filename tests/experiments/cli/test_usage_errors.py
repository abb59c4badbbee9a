"""Wrong options end in one line that names the option and its value, and exit code 2."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time

import pytest
from typer.testing import CliRunner

from gpusched_experiments.cli.app import app


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
def test_a_wrong_option_ends_in_one_line(arguments: list[str], words: tuple[str, ...]):
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert len(result.stderr.splitlines()) == 1
    assert result.stderr.startswith("error: ")
    assert all(word in result.stderr for word in words)


def test_without_a_command_the_help_is_shown():
    result = CliRunner().invoke(app, [])
    assert result.exit_code == 0
    assert "compare" in result.stdout


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="signals are those of POSIX")
def test_an_interrupted_comparison_leaves_nothing_behind(tmp_path):
    arguments = ["compare", "--policies", "random-greedy", "--workers", "1", "--seeds", "0-900", "--out", "run"]
    # A process that is started in the background of a shell ignores SIGINT, and so would its children.
    heed = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"
    run = f"from gpusched_experiments.cli.app import app; print('ready', flush=True); app({arguments})"
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    process = subprocess.Popen([sys.executable, "-c", f"{heed}; {run}"], cwd=tmp_path, **pipes)
    assert process.stdout.readline() == "ready\n"
    time.sleep(1.0)
    errors = ""
    for _ in range(5):
        # Python drops an interrupt that comes while it runs a destructor, of which a compiler has many: ask again.
        process.send_signal(signal.SIGINT)
        with contextlib.suppress(subprocess.TimeoutExpired):
            _, errors = process.communicate(timeout=30)
            break
    assert process.returncode == 130
    assert errors.splitlines()[-1] == "error: interrupted"
    assert list(tmp_path.iterdir()) == []
