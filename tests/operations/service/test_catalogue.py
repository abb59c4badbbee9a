"""Which policies a service answers for: shipped ones, and agents that the operator named when it was started."""

from __future__ import annotations

import json
from shutil import copytree
from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner

from commands import assert_one_error, gpusched
from gpusched_agents.files.storage import find_agent
from gpusched_experiments.cli.app import app
from gpusched_operations.service.decision import Decider, PolicyCatalogue
from gpusched_operations.service.openapi import EXAMPLE
from refusals import refused

if TYPE_CHECKING:
    from pathlib import Path


def ask(policies: PolicyCatalogue, name: str) -> dict[str, object]:
    return json.loads(Decider(policies, b"a key")(json.dumps(EXAMPLE | {"policy": name}).encode()))


def test_an_agent_of_the_operators_own_is_asked_by_its_name_alone(tmp_path: Path):
    folder = copytree(find_agent("default"), tmp_path / "mine")
    policies = PolicyCatalogue.of("edf", {"ours": str(folder)})
    assert policies.names == ("edf", "agent:ours")
    assert ask(policies, "agent:ours")["jobs"] == ask(PolicyCatalogue.of("agent:default"), "agent:default")["jobs"]
    for other in (f"agent:{folder}", "agent:default", "agent:mine"):
        with refused("policy", other, "one of edf, agent:ours"):
            ask(policies, other)


def test_a_shipped_name_is_not_given_away():
    with refused("--agent", "default"):
        PolicyCatalogue.of("edf", {"default": "."})


def test_usual_ones_are_those_of_a_comparison_and_the_shipped_agents():
    names = PolicyCatalogue.of("usual").names
    assert {"edf", "sts", "sts-x", "agent:default"} <= set(names)
    assert "sts:ipopt" not in names


def test_policies_that_replay_what_no_request_tells_are_not_served():
    assert "as-traced" not in PolicyCatalogue.of("all").names
    with refused("--policies", "as-traced"):
        PolicyCatalogue.of("as-traced")


@pytest.mark.parametrize("key", ["", "fifteen bytes !"])
def test_a_key_that_can_be_guessed_is_refused(key: str):
    pytest.importorskip("fastapi", reason="needs the extra `serve`")
    result = CliRunner().invoke(app, ["serve", "--policies", "edf", "--port", "70000"], env={"GPUSCHED_SERVE_KEY": key})
    assert result.exit_code == 2
    said = f"error: GPUSCHED_SERVE_KEY = '{len(key)} bytes'; allowed: at least 16 bytes, or no such variable\n"
    assert result.stderr == said


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--workers", "0"], "--workers = 0; allowed: a whole number >= 1"),
        (["--timeout", "0"], "--timeout = 0.0; allowed: a number > 0"),
        (["--max-jobs", "5000"], "--max-jobs = 5000; allowed: a whole number from 1 to 4,000"),
        (["--receive-timeout", "0"], "--receive-timeout = 0.0; allowed: a number > 0"),
        (["--max-waiting", "-1"], "--max-waiting = -1; allowed: a whole number >= 0"),
        (
            ["--policies", "edf,other"],
            "--policies = 'other'; allowed: all, usual, FILE.py:Class of your own, or some of ",
        ),
        (["--agent", "mine"], "--agent = 'mine'; allowed: NAME=DIR, each name once"),
        (["--agent", "mine=/nowhere"], "--agent mine = 'agent:/nowhere'; allowed: one of agent:"),
        (["--port", "70000"], "--host, --port = '127.0.0.1:70000'; allowed: a free address of this machine"),
    ],
)
def test_bad_options_end_in_one_line_before_anything_is_compiled(options: list[str], said: str):
    pytest.importorskip("fastapi", reason="needs the extra `serve`")
    assert_one_error(gpusched("serve", "--policies", "edf", *options), [f"error: {said}"])
