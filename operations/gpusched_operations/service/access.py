"""Who may ask a service: API keys, each with a name, so that a new one can be given out before the old one is taken."""

from __future__ import annotations

import hashlib
import hmac
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from gpusched_env.errors import InputError

API_KEY = "GPUSCHED_API_KEY"
"""The variable of the environment from which a service takes its key, and clients the one that they send."""
LEAST_BYTES = 16
"""Shorter keys can be guessed."""
NAME_IN_ENVIRONMENT = "environment"
OPEN_PATHS = ("/healthz", "/metrics", "/docs", "/openapi.json")
"""Paths that need no key, and are answered however many connections are open: they tell of no job."""


@dataclass(frozen=True, slots=True)
class ApiKeys:
    """The keys that a service takes; with none, everybody may ask.

    Args:
        digests: SHA-256 of every key, by the name of the key.
    """

    digests: Mapping[str, bytes] = field(default_factory=dict)

    @classmethod
    def load(cls, file: Path | None = None, environment: Mapping[str, str] = os.environ) -> Self:
        """Take the key of the environment, and those of a file.

        Args:
            file: Lines of a name and a key, with a space between; empty ones and those that begin with # are skipped.
        """
        keys = [(API_KEY, NAME_IN_ENVIRONMENT, environment[API_KEY])] if API_KEY in environment else []
        digests: dict[str, bytes] = {}
        for place, name, key in [*keys, *(_lines_of(file) if file else ())]:
            if name in digests:
                raise InputError(place, name, "each name once")
            if len(key.encode()) < LEAST_BYTES or not (key.isascii() and key.isprintable()) or " " in key:
                allowed = f"a key of at least {LEAST_BYTES} letters, digits and signs, such as of openssl rand -hex 32"
                raise InputError(place, f"{len(key)} characters", allowed)
            digests[name] = _digest(key)
        if file and not digests:
            raise InputError("--api-keys", str(file), "a file with at least one line: a name and a key")
        return cls(digests)

    def name_of(self, header: str | None) -> str | None:
        """Return the name of the key that a header `Authorization: Bearer KEY` brings; None if it is none of them.

        Every key is compared, each in a time that does not depend on how much of it is right.
        """
        kind, _, key = (header or "").partition(" ")
        given, found = _digest(key.strip()), None
        for name, digest in self.digests.items():
            if hmac.compare_digest(digest, given) and kind.lower() == "bearer":
                found = name
        return found


def authorization() -> dict[str, str]:
    key = os.environ.get(API_KEY, "").strip()
    return {"Authorization": f"Bearer {key}"} if key else {}


def _lines_of(file: Path) -> list[tuple[str, str, str]]:
    """Return place, name and key of the lines of a file."""
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError("--api-keys", str(file), f"a file that can be read ({error})") from None
    found = []
    for number, line in enumerate(lines, 1):
        if line.strip() and not line.lstrip().startswith("#"):
            place, parts = f"{file}, line {number}", line.split()
            if len(parts) != 2:
                raise InputError(place, f"{len(parts)} words", "a name and a key")
            found.append((place, parts[0], parts[1]))
    return found


def _digest(key: str) -> bytes:
    return hashlib.sha256(key.encode(errors="surrogateescape")).digest()
