"""The one error that bad input raises."""

from __future__ import annotations

SHOWN = 80
"""Most characters that an error shows of a value."""


class InputError(ValueError):
    """Bad input: names the field, the value that was given, and what is allowed.

    The message is one line, whatever the value; of a long value it shows both ends. `value` keeps all of it.

    Args:
        field: Where the value stands, in the user's own terms (`jobs[3].due_s`, `--workers`).
        value: The value that was given.
        allowed: What is allowed there, as a phrase that completes "allowed: ...".
    """

    def __init__(self, field: str, value: object, allowed: str) -> None:
        self.field, self.value, self.allowed = field, value, allowed
        super().__init__(" ".join(f"{field} = {_shown(value)}; allowed: {allowed}".splitlines()))

    def __reduce__(self) -> tuple[type[InputError], tuple[str, object, str]]:
        """Return what rebuilds the error in another process."""
        return type(self), (self.field, self.value, self.allowed)


def _shown(value: object) -> str:
    try:
        text = " ".join(line.strip() for line in repr(value).splitlines())
    except ValueError:  # Python writes no whole number of more than 4300 digits
        text = f"a very long {type(value).__name__}"
    if len(text) <= SHOWN:
        return text
    # The end of a path, or of a list, says as much as its beginning.
    return f"{text[: SHOWN // 2]}…{text[-(SHOWN // 2 - 1) :]}"
