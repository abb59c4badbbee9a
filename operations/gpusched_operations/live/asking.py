"""Asking a policy, in this process or a service over HTTP, and which jobs its answer defers."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeAlias

from gpusched_operations.live.state import Clock
from gpusched_operations.service.client import asked
from gpusched_operations.service.decision import Decider, PolicyCatalogue

Ask: TypeAlias = Callable[[Mapping[str, Any]], Mapping[str, Any]]
"""Returns the answer to a request; an InputError names the field that is not allowed."""
KEY_FILE, KEY_BYTES = "key", 32


def key_of(folder: Path) -> bytes:
    """Return the key that signs what policies remember; it is made once, and read by nobody else."""
    path = folder / KEY_FILE
    try:
        key = path.read_bytes()
    except FileNotFoundError:
        key = b""
    if len(key) < KEY_BYTES:
        key = secrets.token_bytes(KEY_BYTES)
        draft = path.with_name(f".{KEY_FILE}-{secrets.token_hex(8)}")
        try:
            with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
                file.write(key)
            draft.replace(path)
        finally:
            draft.unlink(missing_ok=True)
    return key


def decider_of(policy: str, key: bytes) -> Decider:
    return Decider(PolicyCatalogue.of(policy), key)


def deferrals(answer: Mapping[str, Any], clock: Clock) -> dict[str, str]:
    """Return until when jobs wait while GPUs are idle, and what that saves, by id."""
    return {
        job["id"]: f"waits until {_time(clock.unix_s(job['waits_until_s']))}, to save {job['saves_eur']:.2f} EUR"
        for job in answer["jobs"]
        if job.get("waits_until_s") is not None
    }


def _time(unix_s: float) -> str:
    return f"{datetime.fromtimestamp(unix_s, UTC):%Y-%m-%d %H:%M} UTC"


def ask_service(url: str) -> Ask:
    """Return what asks the service at an address such as http://127.0.0.1:8000; errors as those of `asked`."""
    return lambda fields: asked(f"{url.rstrip('/')}/v1/decide", fields, ("energy_eur_per_h",), ("id", "action"))
