"""`gpusched policies`: reading names of policies, and showing what each is."""

import inspect
import re
from dataclasses import MISSING, fields, is_dataclass
from typing import Annotated

import typer
from rich.box import SIMPLE_HEAD
from rich.markup import escape
from rich.table import Table

from gpusched_agents.any_policy import SB3, full_name, is_agent, is_own_policy, make_any_policy
from gpusched_agents.files.storage import PREFIX, find_agent, load_description, shipped_agents, track_agents
from gpusched_baselines.registry import FAITHFUL, POLICIES, ablation_names, policy_descriptions, policy_names
from gpusched_env.errors import InputError
from gpusched_env.simulator import Policy
from gpusched_experiments.cli import terminal as completion
from gpusched_experiments.cli.terminal import output


def print_policy(name: str) -> None:
    policy, console = make_any_policy(name), output()
    console.print(f"[bold]{escape(name)}[/bold]", "" if is_agent(name) else escape(POLICIES[name].line), sep="  ")
    if not is_agent(name):
        usual = _by_default(name) or "no"
        console.print(f"among those that `gpusched compare` runs by default: {usual}")
        shipped = POLICIES[name]
        faithful = f"{shipped.faithful}: {FAITHFUL[shipped.faithful]}"
        console.print(f"source: {shipped.source} ({faithful})", soft_wrap=True)
    console.print(f"takes GPUs from jobs that run: {'yes' if policy.preemption else 'no'}")
    _print_settings(policy)
    parts = ablation_names(name)
    if parts:
        console.print(f"without one of its parts: {', '.join(parts)}", soft_wrap=True, markup=False)
    made = ("load_sb3" if name.startswith(SB3) else "load_policy") if is_agent(name) else "make_policy"
    made = "make_any_policy" if is_own_policy(name) else made
    where = "gpusched_agents" if is_agent(name) else "gpusched_baselines"
    console.print(f'in Python: from {where} import {made}; {made}("{name}")', soft_wrap=True, markup=False)


def _by_default(name: str) -> str:
    return "yes" if POLICIES[name].usual else "on traces" if POLICIES[name].on_clusters else ""


def _print_settings(policy: Policy) -> None:
    if not is_dataclass(policy):
        return
    said = _arguments(inspect.getdoc(type(policy)) or "")
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for title in ("setting", "value", "what it is"):
        table.add_column(title, no_wrap=title != "what it is")
    for field in fields(policy):
        plain = isinstance(getattr(policy, field.name), str | int | float | bool | None)
        if field.init and field.name != "name" and (plain or field.default is not MISSING):
            table.add_row(field.name, escape(repr(getattr(policy, field.name))), escape(said.get(field.name, "")))
    if table.row_count:
        output().print(table)


def _arguments(doc: str) -> dict[str, str]:
    """Read what a docstring in Google's style says of each argument."""
    section = re.search(r"^(?:Args|Attributes):\n((?: .*\n?|\n)*)", doc, re.MULTILINE)
    said: dict[str, str] = {}
    name = ""
    for line in section[1].splitlines() if section else []:
        start = re.match(r" {4}(\w+): (.*)", line)
        if start:
            name, text = start[1], start[2]
        else:
            text = f"{said.get(name, '')} {line.strip()}"
        said[name] = text.strip()
    return said


def policies_command(
    show: Annotated[
        str | None,
        typer.Option(
            "--show",
            metavar="NAME",
            help="Describe this policy, with its settings, in place of the list.",
            autocompletion=completion.a_policy,
        ),
    ] = None,
) -> None:
    """List the policies and the agents that are shipped, and print which `gpusched compare` runs if none are named.

    Example: **gpusched policies**, **gpusched policies --show sts**
    """
    if show is not None:
        print_policy(show)
        return
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("policy", style="bold", no_wrap=True)
    table.add_column("default", no_wrap=True)
    table.add_column("source", no_wrap=True)
    table.add_column("faithful", no_wrap=True)
    table.add_column("what it does")
    for name, line in policy_descriptions().items():
        table.add_row(name, _by_default(name), POLICIES[name].source, POLICIES[name].faithful, line)
    for name in (*shipped_agents(), *track_agents()):
        table.add_row(f"{PREFIX}{name}", "", "own", "own", _agent_line(name))
    output().print(table)
    output().print("`gpusched compare` runs the default ones, those of --policies, or with --policies all every one.")
    for word, meaning in FAITHFUL.items():
        output().print(f"{word}: {meaning}.")
    output().print("An agent runs if it is named: agent:NAME if it is shipped, agent:DIR from its folder.")
    output().print("A policy of your own runs if its file is named, FILE.py:Class: the code in it runs.")


def parse_policies(text: str) -> dict[str, Policy]:
    """Make the policies named in `text`, separated by commas, by name; `all` is every one, without agents.

    A name of code of the user is given with the absolute path of its file.
    """
    names = list(policy_names()) if text.strip() == "all" else [full_name(name.strip()) for name in text.split(",")]
    policies = {name: make_any_policy(name) for name in names}
    if len({policy.name for policy in policies.values()}) != len(names):
        raise InputError("--policies", text, "names of policies separated by commas, each once")
    return policies


def _agent_line(name: str) -> str:
    described = load_description(find_agent(PREFIX + name))
    spec = described.spec
    return (
        f"Learned by {described.algorithm}; for up to {spec.max_configurations} {', '.join(spec.kinds)} configurations"
    )
