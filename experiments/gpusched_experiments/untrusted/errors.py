"""What a policy that nobody trusts did wrong."""

from __future__ import annotations

MOST = 300
"""Most characters that are shown of what such a policy says."""


class EntryError(RuntimeError):
    """A submitted policy did what ends its run: the message is one line that says what."""


def one_line(text: object) -> str:
    """Give a text from outside as one line without control characters, which could write over a terminal."""
    line = " ".join(str(text).split())
    shown = "".join(letter if letter.isprintable() else "?" for letter in line[: MOST + 1])
    return shown if len(shown) <= MOST else f"{shown[:MOST]}…"
