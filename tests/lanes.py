"""The lane of each folder and file of tests: `make test` runs the core, `make test-slow` what is real and slow.

What is not named here is in the core. A test of the core takes at most 5 s of processor time, compiles no kernel of
the packages, starts no server or daemon, and depends on no clock.
"""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parents[1]

SLOW: dict[str, str] = {}
"""Folders and files of the slow lane, from the root of the repository, each with what it needs beside Python."""


def lane_of(path: Path) -> str:
    """Return the lane of a file or folder of tests: `core`, `slow`, or `both` for a folder that has some of each."""
    place = path.resolve().relative_to(ROOT).as_posix()
    if any(place == slow or place.startswith(f"{slow}/") for slow in SLOW):
        return "slow"
    return "both" if path.is_dir() else "core"
