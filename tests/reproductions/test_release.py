"""The command that makes all tables of `docs/results` by one commit; the commands that it gives are not run here."""

import json
import subprocess
from pathlib import Path
from types import SimpleNamespace

import pytest

from gpusched_env.errors import InputError
from gpusched_reproductions.cli import release
from gpusched_reproductions.cli.release import make_release, release_commands

RESULTS = Path(__file__).parents[2] / "docs/results"


@pytest.fixture
def given(monkeypatch):
    """Return the arguments of the commands that run, each with exit status 0 but for `why`."""
    ran: list[list[str]] = []

    def run(arguments, check):  # noqa: ARG001 - of subprocess
        ran.append(arguments[3:])
        return SimpleNamespace(returncode=3 if "why" in arguments else 0)

    monkeypatch.setattr(subprocess, "run", run)
    monkeypatch.setattr(release, "commit", lambda: "abc")
    monkeypatch.setattr(release, "code_version", lambda: "now")
    return ran


def test_every_stored_experiment_has_a_command():
    stored = {path.parent.name for path in RESULTS.glob("*/record.json")} | {"systems"}
    assert stored - set(release_commands(RESULTS)) == {"certify", "philly"}  # of other commands


def test_it_runs_what_is_not_of_the_present_code_and_stops_at_a_failure(given, tmp_path):
    for name, code in {"leaderboard": "now", "cost": "before", "mean-times": "now"}.items():
        (tmp_path / name).mkdir()
        record = {"provenance": {"facts": {"finished": True, "code": code, "commit": "abc"}}}
        (tmp_path / name / "record.json").write_text(json.dumps(record))
    lines: list[str] = []
    assert make_release(tmp_path, lines.append) == 3
    assert [each[1] for each in given] == ["systems", "conformance", "cost", "sharing", "why"]
    assert given[0] == ["reproduce", "systems", "--out", str(tmp_path)]
    assert lines[0] == f"{tmp_path / 'leaderboard'}: made by abc"


@pytest.mark.parametrize("present", [None, "abc+"])
def test_uncommitted_changes_are_refused(given, monkeypatch, tmp_path, present):
    monkeypatch.setattr(release, "commit", lambda: present)
    with pytest.raises(InputError, match="--release"):
        make_release(tmp_path, print)
    assert given == []
