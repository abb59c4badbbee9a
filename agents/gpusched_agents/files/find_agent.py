"""Agents by name: `agent:NAME` is one that is shipped, `agent:DIR` any folder."""

from __future__ import annotations

from pathlib import Path

from gpusched_agents.files.storage import A_FOLDER, DESCRIPTION
from gpusched_env.errors import InputError

PREFIX = "agent:"
SHIPPED = Path(__file__).parents[1] / "shipped"


def shipped_agents() -> tuple[str, ...]:
    """List the names of the shipped agents."""
    return tuple(sorted(path.parent.name for path in SHIPPED.glob(f"*/{DESCRIPTION}")))


def find_agent(text: str) -> Path:
    """Find the folder of an agent; whether it is one shows when it is loaded.

    Args:
        text: `agent:NAME` or `agent:DIR`, or the same without `agent:`. A shipped name wins over a folder of that
            name in the present one, which is `./NAME`.

    Raises:
        InputError: There is no shipped agent of that name, and no such path.
    """
    name = text.removeprefix(PREFIX)
    if name in shipped_agents():
        return SHIPPED / name
    if name and _is_there(name):
        return Path(name)
    shipped = ", ".join(f"{PREFIX}{name}" for name in shipped_agents())
    raise InputError("agent", text, f"{f'one of {shipped} (shipped), or ' if shipped else ''}{A_FOLDER}")


def _is_there(name: str) -> bool:
    """Say whether there is such a folder, or a file that `load_agent` has more to say about."""
    try:
        return Path(name).exists() or Path(f"{name}.zip").exists()
    except OSError:  # such as a name that is too long
        return False
