"""The commands that pages and `--help` train with end in agents that cost less than EDF does."""

from __future__ import annotations

import json
import os
import re
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

pytest.importorskip("sb3_contrib", reason="needs the extra `agents`")

from commands import succeeds
from gpusched_experiments.cli.app import app

ROOT = Path(__file__).parents[2]
PAGES = ("README.md", "docs/index.md", "docs/cli.md", "docs/train.md", "docs/quickstart.md")
ASKED = "GPUSCHED_LONG_TESTS" in os.environ
# They take minutes, so they run only where they are asked for.
LONG = tuple(f"--out runs/{name}" for name in ("two", "larger", "slack", "es", "mixture", "day-ahead"))
ELSEWHERE = ("--out runs/watched",)  # needs what is no dependency


def commands() -> list[str]:
    """Return every command of `--help` and the pages that trains, each once."""
    shown = CliRunner(env={"COLUMNS": "300", "TERM": "dumb"}).invoke(app, ["train", "--help"]).stdout
    texts = [shown, *((ROOT / page).read_text(encoding="utf-8") for page in PAGES)]
    found = {line.strip() for text in texts for line in re.findall(r"gpusched (train -[^\n`*│|]*--out [\w/-]+)", text)}
    return sorted(found)


def test_the_commands_of_all_pages_are_found():
    assert {command.split()[-1] for command in commands()} >= {"runs/slack", "runs/es", "runs/two"}


@pytest.mark.parametrize("command", commands())
def test_a_command_of_a_page_ends_better_than_edf(command, tmp_path, monkeypatch):
    if any(words in command for words in ELSEWHERE):
        pytest.skip("needs Weights & Biases and MLflow, which are no dependencies")
    if any(words in command for words in LONG) and not ASKED:
        pytest.skip("takes minutes: set GPUSCHED_LONG_TESTS to run it")
    monkeypatch.chdir(tmp_path)
    words = shlex.split(command)
    succeeds(*words)
    folder = Path(words[words.index("--out") + 1])
    curve = json.loads((folder / "agent" / "agent.json").read_text(encoding="utf-8"))["curve"]
    kept = min(curve, key=lambda point: point["total_eur"])
    record = json.loads((folder / "training.json").read_text(encoding="utf-8"))
    assert kept["steps"] > 0
    assert kept["total_eur"] < record["references"]["edf"]
    assert not any("edf" in warning or "untrained" in warning for warning in record["warnings"])
