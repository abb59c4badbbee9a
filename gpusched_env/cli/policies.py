"""`gpusched policies`."""

from rich.box import SIMPLE_HEAD
from rich.table import Table

from gpusched_baselines.registry import make_policy, policy_descriptions, policy_names, usual_policy_names
from gpusched_env.cli.terminal import output
from gpusched_env.errors import InputError
from gpusched_env.simulator import Policy


def policies_command() -> None:
    """List the policies, and say which of them `gpusched compare` runs if none are named."""
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("policy", style="bold", no_wrap=True)
    table.add_column("default", no_wrap=True)
    table.add_column("what it does")
    for name, line in policy_descriptions().items():
        table.add_row(name, "yes" if name in usual_policy_names() else "", line)
    output().print(table)
    output().print("`gpusched compare` runs the default ones, those of --policies, or with --policies all every one.")


def parse_policies(text: str) -> tuple[Policy, ...]:
    """Make the policies named in `text`, separated by commas; `all` is every one.

    Raises:
        InputError: There is no such policy, or one stands twice.
    """
    names = list(policy_names()) if text.strip() == "all" else [name.strip() for name in text.split(",")]
    policies = tuple(make_policy(name) for name in names)
    if len(set(names)) != len(names):
        raise InputError("--policies", text, "names of policies separated by commas, each once")
    return policies
