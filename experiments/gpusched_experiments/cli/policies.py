"""`gpusched policies`."""

from typing import Annotated

import typer
from rich.box import SIMPLE_HEAD
from rich.table import Table

from gpusched_agents.any_policy import make_any_policy
from gpusched_agents.files.find_agent import PREFIX, find_agent, shipped_agents
from gpusched_agents.files.storage import load_description
from gpusched_baselines.registry import POLICIES, policy_descriptions, policy_names, usual_policy_names
from gpusched_env.errors import InputError
from gpusched_env.simulator import Policy
from gpusched_experiments.cli import completion
from gpusched_experiments.cli.policy_view import print_policy
from gpusched_experiments.cli.terminal import output


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
    """List the policies and the agents that are shipped, and say which `gpusched compare` runs if none are named.

    Example: **gpusched policies**, **gpusched policies --show sts**
    """
    if show is not None:
        print_policy(show)
        return
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("policy", style="bold", no_wrap=True)
    table.add_column("default", no_wrap=True)
    table.add_column("by", no_wrap=True)
    table.add_column("what it does")
    for name, line in policy_descriptions().items():
        table.add_row(name, "yes" if name in usual_policy_names() else "", POLICIES[name].origin, line)
    for name in shipped_agents():
        table.add_row(f"{PREFIX}{name}", "", "ours", _agent_line(name))
    output().print(table)
    output().print("`gpusched compare` runs the default ones, those of --policies, or with --policies all every one.")
    output().print("Published ones do what the authors of the STS method published; ours are this project's own.")
    output().print("An agent runs if it is named: agent:NAME if it is shipped, agent:DIR from its folder.")


def parse_policies(text: str) -> tuple[Policy, ...]:
    """Make the policies named in `text`, separated by commas; `all` is every one, without agents.

    Raises:
        InputError: There is no such policy, or one stands twice.
    """
    names = list(policy_names()) if text.strip() == "all" else [name.strip() for name in text.split(",")]
    policies = tuple(make_any_policy(name) for name in names)
    if len({policy.name for policy in policies}) != len(names):
        raise InputError("--policies", text, "names of policies separated by commas, each once")
    return policies


def _agent_line(name: str) -> str:
    described = load_description(find_agent(PREFIX + name))
    spec = described.spec
    return (
        f"Learned by {described.algorithm}; for up to {spec.max_configurations} {', '.join(spec.kinds)} configurations"
    )
