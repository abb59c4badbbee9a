"""The tables of `docs/results`, made by one state of the sources: commands in turn, which go on after a stop."""

from __future__ import annotations

import shlex
import subprocess
import sys
from typing import TYPE_CHECKING

from gpusched_baselines.solvers.ipopt import load_cyipopt
from gpusched_env.errors import InputError
from gpusched_env.parsing import parse_json
from gpusched_experiments.report.code_version import commit, same_sources
from gpusched_reproductions.data_sources import where_from
from gpusched_reproductions.published import EXPERIMENTS
from gpusched_reproductions.published.conformance import FOLDER
from gpusched_reproductions.published.reference_instances import reference_names

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

RANKED = (
    "fifo,edf,edf:preemptive,edf:mean,edf:conditional-mean,priority,greedy,greedy:fill,sts,sts:published,sts:priced,"
    "sts-x,atc,atc:co-located,atc:worst,gittins,sept,sept:worst,las,antman,fill,pack,agent:default"
)
"""Policies of the leaderboard: not those for traces, for caps and power limits, nor of queues and time slices.

`--hindsight`, which takes eight hours, and rollout are left out.
"""
NOT_STORED = "agents"
"""An experiment on which no page depends."""


def release_commands(root: Path) -> dict[str, str]:
    """Return the arguments of the command that makes each folder of results, by its name, in their order."""
    to = f"--out {shlex.quote(str(root))}"
    experiments = {name: f"reproduce {name} {to}" for name in EXPERIMENTS if name != NOT_STORED}
    return {
        "leaderboard": f"leaderboard --policies {RANKED} {to}/leaderboard",
        "systems": f"reproduce systems {to}",
        **experiments,
    }


def make_release(root: Path, show: Callable[[str], object]) -> int:
    """Run the commands of folders that are not of the present sources, until one fails.

    Args:
        root: The folder of all results.
        show: Function that is called with a line before each command.

    Returns:
        The exit status of the last command that ran; 0 if none did.

    Raises:
        InputError: The sources have changes that are not committed, are not in a checkout of git, or have changed since
            the first command.
        SolverMissingError: Ipopt is missing; without it runs of `sts:ipopt` have the plans of another solver.
    """
    load_cyipopt()
    first, commands = _clean_commit(), release_commands(root)
    if not reference_names(FOLDER):
        show(f"note: without conformance, since the reference instances are not in {FOLDER}{where_from(FOLDER)}")
        del commands["conformance"]
    for name, command in commands.items():
        made_by = _made_by(root / name / "record.json", command)
        if made_by is not None:
            show(f"{root / name}: made by {made_by}")
            continue
        if (present := _clean_commit()) != first:
            raise InputError("--release", present, f"{first}, which made the first results")
        show(f"gpusched {command}")
        arguments = [sys.executable, "-m", "gpusched_experiments", *shlex.split(command)]
        status = subprocess.run(arguments, check=False).returncode  # noqa: S603 - the commands above
        if status:
            return status
    return 0


def _clean_commit() -> str:
    present = commit.__wrapped__()  # it is kept for the life of a process otherwise
    if present is None or present.endswith("+"):
        raise InputError("--release", present, "a checkout of git without changes that are not committed")
    return present


def _made_by(record: Path, command: str) -> str | None:
    """Return the commit of a record that this command made, if it has the present sources and all runs; else None."""
    try:
        provenance = parse_json(record.read_bytes())["provenance"]
        facts, same = provenance["facts"], provenance["command"] == f"gpusched {command}"
        made_by = str(facts["commit"])
        return made_by if same and facts["finished"] is True and same_sources(made_by) else None
    except (OSError, ValueError, KeyError, TypeError):
        return None
