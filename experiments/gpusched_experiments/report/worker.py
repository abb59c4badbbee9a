"""What a worker process of a comparison does before its first run."""

from __future__ import annotations

import multiprocessing
import os
import threading
from multiprocessing.connection import wait
from typing import TYPE_CHECKING

from gpusched_experiments.report.warm_up import warm_up

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpusched_env.simulator import Policy


def start_worker(policies: Sequence[Policy]) -> None:
    """Tie this process to its parent's life, and compile what `policies` need."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_end_with, args=(parent.sentinel,), daemon=True).start()
    warm_up(policies)


def _end_with(sentinel: int) -> None:
    """End this process when the parent is gone, however it went: a killed command leaves nobody behind."""
    wait([sentinel])
    os._exit(1)
