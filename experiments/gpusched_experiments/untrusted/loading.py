"""Making the policy of an entry, in the process that nobody trusts."""

from __future__ import annotations

import sys
import traceback
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from gpusched_env.simulator import Policy

if TYPE_CHECKING:
    from collections.abc import Callable

AGENT_FOLDER = "agent"
MODULE = "submitted"


class Refused(Exception):  # noqa: N818 - it is an answer
    """What the entry has is no policy; says why."""


def agent_maker() -> Callable[[], Policy]:
    """Load the agent in the present folder."""
    from gpusched_agents.policy import load_policy  # noqa: PLC0415 - a Python file may do without

    agent: Policy = load_policy(f"./{AGENT_FOLDER}")
    return lambda: agent


def python_maker(source: bytes, file: str, made_by: str) -> Callable[[], Policy]:
    """Run a Python file, and give what makes its policy for every run.

    Args:
        source: Its content.
        file: Its name.
        made_by: Name of the policy in it, or of what makes it without arguments.

    Raises:
        Refused: There is none.
    """
    module = ModuleType(MODULE)
    sys.modules[MODULE] = module
    exec(compile(source, file, "exec", dont_inherit=True), module.__dict__)  # noqa: S102 - this process is for it
    found: Any = getattr(module, made_by, None)
    if found is None:
        raise Refused(f"has no {made_by}: give the policy that name, or submit {file}:NAME")
    make: Callable[[], Any] = found if isinstance(found, type) or not isinstance(found, Policy) else lambda: found
    if not callable(make):
        raise Refused(f"{made_by} is no policy: it has no name, preemption and decide")
    return lambda: checked(make(), made_by)


def checked(policy: object, made_by: str) -> Policy:
    """Check that something is a policy.

    Raises:
        Refused: It is none.
    """
    if isinstance(policy, type) or not isinstance(policy, Policy):
        raise Refused(f"{made_by} makes no policy: it has no name, preemption and decide")
    if not isinstance(policy.preemption, bool):
        raise Refused("preemption is neither True nor False")
    return policy


def said_of(error: BaseException, file: str) -> str:
    """Say what went wrong, and on which line of the file."""
    if isinstance(error, Refused):
        return str(error)
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if Path(frame.filename).name == file]
    if isinstance(error, SyntaxError):
        lines = [error.lineno]
    where = f"line {lines[-1]}: " if lines else ""
    return f"{where}{type(error).__name__}" + (f": {error}" if str(error) else "")
