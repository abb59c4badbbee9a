"""The one error that bad input raises."""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import get_close_matches

SHOWN = 80
"""Most characters that an error shows of a value."""


class InputError(ValueError):
    """Bad input: names the field, the value that was given, and what is allowed.

    The message is one line, whatever the value; of a long value it shows both ends. `value` keeps all of it. Where
    `allowed` lists names ("one of ...", "no such setting; there are ..."), it suggests a similar name.

    Args:
        field: Where the value stands, in the user's own terms (`jobs[3].due_s`, `--workers`).
        value: The value that was given.
        allowed: What is allowed there, as a phrase that completes "allowed: ...".
    """

    def __init__(self, field: str, value: object, allowed: str) -> None:
        self.field, self.value, self.allowed = field, value, allowed
        text = f"{field} = {_shown(value)}; allowed: {allowed}{_hint(field, value, allowed)}"
        super().__init__(" ".join(text.splitlines()))

    def __reduce__(self) -> tuple[type[InputError], tuple[str, object, str]]:
        return type(self), (self.field, self.value, self.allowed)


def _shown(value: object) -> str:
    try:
        text = " ".join(line.strip() for line in repr(value).splitlines())
    except (ValueError, RecursionError):  # Python writes no whole number of more than 4300 digits
        text = f"a very long {type(value).__name__}"
    if len(text) <= SHOWN:
        return text
    # The end of a path, or of a list, is as useful as its beginning.
    return f"{text[: SHOWN // 2]}…{text[-(SHOWN // 2 - 1) :]}"


def _hint(field: str, value: object, allowed: str) -> str:
    """Return a suggestion of a similar name: of the value, or of the field if there is no such setting."""
    of_field = re.match(r"no such \w+; (?:there are|one of) (.*)", allowed)
    of_value = re.match(r"one of (.*)", allowed)
    if of_field:
        given, listed = re.split(r"[.\[\]]", field.rstrip("]"))[-1], of_field[1]
    elif of_value and isinstance(value, str):
        given, listed = value, of_value[1]
    else:
        return ""
    known = {name.lower(): name for name in re.findall(r"[\w.:-]+", listed)}
    near = get_close_matches(given.strip().lower(), known, n=1, cutoff=0.65)
    return f"; did you mean {known[near[0]]}?" if near else ""


def nearest_first(given: str, names: Iterable[str], room: int = 120) -> str:
    """List names, those like `given` first, in about `room` characters; then how many there are in all."""
    known = list(dict.fromkeys(names))
    ordered = dict.fromkeys([*get_close_matches(given, known, n=len(known) or 1, cutoff=0.4), *known])
    listed = ", ".join(ordered)
    if len(listed) <= room:
        return listed
    return f"{listed[:room].rpartition(',')[0] or listed[:room]}, … ({len(known)} in all)"


class MissingExtraError(ImportError):
    """An optional package is not installed: names it and the command that installs it.

    Args:
        package: The package that is missing.
        extra: The extra of this distribution that contains it.
        purpose: What it is needed for, as a noun phrase.
    """

    def __init__(self, package: str, extra: str, purpose: str) -> None:
        self.package, self.extra, self.purpose = package, extra, purpose
        super().__init__(f'{purpose} need {package}; install it with: pip install "gpusched-env[{extra}]"')

    def __reduce__(self) -> tuple[type[MissingExtraError], tuple[str, str, str]]:
        return type(self), (self.package, self.extra, self.purpose)


class RunError(RuntimeError):
    """A run fails, or the process in which it runs: the message is one line that says why."""
