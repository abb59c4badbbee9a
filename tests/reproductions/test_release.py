"""The command that makes all tables of `docs/results` by one commit; the commands that it gives are not run here."""

import json
import shlex
import subprocess
from pathlib import Path
from types import SimpleNamespace

import pytest
from test_page_commands import parse
from typer.testing import CliRunner

from gpusched_baselines.solvers import SolverMissingError
from gpusched_env.errors import InputError
from gpusched_experiments.cli.app import app
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
    monkeypatch.setattr(release, "_clean_commit", lambda: "abc")
    monkeypatch.setattr(release, "same_sources", lambda commit: commit == "same")
    monkeypatch.setattr(release, "reference_names", lambda _: ["one"])
    monkeypatch.setattr(release, "load_cyipopt", lambda: None)
    return ran


def test_every_stored_experiment_has_a_command():
    stored = {path.parent.name for path in RESULTS.glob("*/record.json")} | {"systems"}
    assert stored - set(release_commands(RESULTS)) == {"certify", "philly"}  # of other commands


def test_the_command_line_takes_every_command(tmp_path):
    for command in release_commands(tmp_path).values():
        parse(shlex.split(command))


def store(folder, command, **facts):
    folder.mkdir()
    made = {"finished": True, "commit": "same", **facts}
    (folder / "record.json").write_text(json.dumps({"provenance": {"command": f"gpusched {command}", "facts": made}}))


def test_it_runs_what_is_not_of_the_present_sources_and_stops_at_a_failure(given, tmp_path):
    commands = release_commands(tmp_path)
    store(tmp_path / "leaderboard", commands["leaderboard"])
    store(tmp_path / "conformance", commands["conformance"], commit="other")
    store(tmp_path / "cost", f"{commands['cost']} --seeds 0-1")
    store(tmp_path / "mean-times", commands["mean-times"])
    store(tmp_path / "sharing", commands["sharing"], finished=False)
    lines: list[str] = []
    assert make_release(tmp_path, lines.append) == 3
    assert [each[1] for each in given] == ["systems", "conformance", "cost", "sharing", "why"]
    assert given[0] == ["reproduce", "systems", "--out", str(tmp_path)]
    assert lines[0] == f"{tmp_path / 'leaderboard'}: made by same"


def test_without_the_reference_instances_the_others_are_made(given, monkeypatch, tmp_path):
    monkeypatch.setattr(release, "reference_names", lambda _: [])
    lines: list[str] = []
    make_release(tmp_path, lines.append)
    assert lines[0].startswith("note: without conformance")
    assert [each[0] for each in given[:2]] == ["leaderboard", "reproduce"]
    assert "conformance" not in [each[1] for each in given]


def test_without_ipopt_nothing_is_made(given, monkeypatch, tmp_path):
    def missing():
        raise SolverMissingError("Ipopt", "cyipopt", "ipopt")

    monkeypatch.setattr(release, "load_cyipopt", missing)
    with pytest.raises(SolverMissingError, match="cyipopt"):
        make_release(tmp_path, print)
    assert given == []


@pytest.mark.parametrize("present", [None, "abc+"])
def test_uncommitted_changes_are_refused(monkeypatch, tmp_path, present):
    monkeypatch.setattr(release, "load_cyipopt", lambda: None)
    monkeypatch.setattr(release, "commit", SimpleNamespace(__wrapped__=lambda: present))
    with pytest.raises(InputError, match="--release"):
        make_release(tmp_path, print)


def test_a_commit_between_two_commands_is_refused(given, monkeypatch, tmp_path):
    monkeypatch.setattr(release, "_clean_commit", lambda: f"{len(given)} ran")
    with pytest.raises(InputError, match="0 ran, which made the first results"):
        make_release(tmp_path, print)
    assert len(given) == 1


@pytest.mark.parametrize("more", [["--quick"], ["--workers", "2"], ["--seeds", "0"], ["--fetch"]])
def test_other_options_are_refused(given, more):
    result = CliRunner().invoke(app, ["reproduce", "all", "--release", *more])
    assert result.exit_code == 2
    assert more[0] in result.output
    assert given == []
