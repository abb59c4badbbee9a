"""The tables of `docs/results`, made by one commit: commands that are given in turn, and go on after a stop."""

from __future__ import annotations

import shlex
import subprocess
import sys
from typing import TYPE_CHECKING

from gpusched_env.errors import InputError
from gpusched_experiments.report.code_version import code_version, commit
from gpusched_experiments.report.record import recorded_facts
from gpusched_reproductions.published import EXPERIMENTS

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

RANKED = (
    "fifo,edf,edf:preemptive,edf:mean,edf:conditional-mean,priority,greedy,greedy:fill,sts,sts:published,sts:priced,"
    "sts-x,atc,atc:co-located,atc:worst,gittins,sept,sept:worst,las,antman,fill,pack,agent:default"
)
"""Policies of the leaderboard; the others take hours on its largest track."""
NOT_STORED = "agents"
"""An experiment on which no page depends."""


def release_commands(root: Path) -> dict[str, str]:
    """Return the arguments of the command that makes each folder of results, by its name, in their order."""
    to = f"--out {shlex.quote(str(root))}"
    experiments = {name: f"reproduce {name} {to}" for name in EXPERIMENTS if name != NOT_STORED}
    return {
        "leaderboard": f"leaderboard --policies {RANKED} --hindsight 100 --slow rollout {to}/leaderboard",
        "systems": f"reproduce systems {to}",
        **experiments,
    }


def make_release(root: Path, show: Callable[[str], object]) -> int:
    """Run the commands of folders that are not of the present code, until one fails.

    Args:
        root: The folder of all results.
        show: Function that is called with a line before each command.

    Returns:
        The exit status of the last command that ran; 0 if none did.

    Raises:
        InputError: The sources have changes that are not committed, or are not in a checkout of git.
    """
    present, status = commit(), 0
    if present is None or present.endswith("+"):
        raise InputError("--release", present, "a checkout of git without changes that are not committed")
    for name, command in release_commands(root).items():
        facts = recorded_facts(root / name / "record.json")
        if facts.get("finished") is True and facts.get("code") == code_version():
            show(f"{root / name}: made by {facts.get('commit')}")
        elif status == 0:
            show(f"gpusched {command}")
            arguments = [sys.executable, "-m", "gpusched_experiments", *shlex.split(command)]
            status = subprocess.run(arguments, check=False).returncode  # noqa: S603 - the commands above
    return status
