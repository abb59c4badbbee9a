"""The process in which an entry decides: it gives up what it can, reads the entry, and answers round after round."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from gpusched_experiments.untrusted.channel import Channel
from gpusched_experiments.untrusted.lockdown import CACHE, NETWORK, leave_network, limit_resources, lock


def main(settings: dict[str, Any]) -> None:
    """Serve the process that has started this one until it is gone."""
    limit_resources(settings["memory"], settings["processor_s"])
    held = [NETWORK] if leave_network() else []
    from gpusched_experiments.untrusted.serving import Server  # noqa: PLC0415 - it brings what is large

    _keep_nothing_compiled()
    channel = Channel(settings["in"], settings["out"])
    compiled = [Path(os.environ[CACHE])] if os.environ.get(CACHE) else []
    held += lock([Path.cwd(), *compiled])
    Server(channel).serve(held)
    os._exit(0)  # what it has left to be done at the end is not


def _keep_nothing_compiled() -> None:
    """Let Numba read what it has compiled before, and store nothing: files cannot be written here."""
    from numba.core import caching  # noqa: PLC0415

    def nothing(*_: object) -> None:
        return None

    cache: Any = caching.Cache
    locator: Any = caching._CacheLocator  # noqa: SLF001 - there is no other way
    cache.save_overload = nothing
    locator.ensure_cache_path = nothing  # it looks whether a folder can be written
