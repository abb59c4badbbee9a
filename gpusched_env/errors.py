"""The one error that bad input raises."""

from __future__ import annotations


class InputError(ValueError):
    """Bad input: names the field, the value that was given, and what is allowed.

    Args:
        field: Where the value stands, in the user's own terms (`jobs[3].due_s`, `--workers`).
        value: The value that was given.
        allowed: What is allowed there, as a phrase that completes "allowed: ...".
    """

    def __init__(self, field: str, value: object, allowed: str) -> None:
        self.field, self.value, self.allowed = field, value, allowed
        super().__init__(f"{field} = {value!r}; allowed: {allowed}")

    def __reduce__(self) -> tuple[type[InputError], tuple[str, object, str]]:
        """Return what rebuilds the error in another process."""
        return type(self), (self.field, self.value, self.allowed)
