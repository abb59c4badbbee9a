"""The lane of each folder and file of tests: `make test` runs the core, `make test-slow` what is real and slow.

What is not named here is in the core. A test of the core takes at most 5 s of processor time, compiles no kernel of
the packages, starts no server or daemon, and depends on no clock.
"""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parents[1]

SLOW: dict[str, str] = {
    "tests/slurm": "Slurm's daemons and munge",
    "tests/browser": "Chromium and playwright",
    "tests/ray": "Ray",
    "tests/processes": "processes, signals, sockets, fresh interpreters",
    "tests/libraries": "Stable-Baselines3's zoo, TorchRL, MO-Gymnasium, moviepy and others",
    "tests/examples": "the extra `dev`",
    "tests/reproductions": "public data, where there is some",
    "tests/benchmarks": "nothing: minutes",
    "tests/baselines/solvers/test_ipopt.py": "Ipopt",
    "tests/baselines/solvers/test_nlp.py": "Ipopt",
}
"""Folders and files of the slow lane, from the root of the repository, each with what it needs beside Python."""


FIRST: tuple[str, ...] = (
    "tests/model/test_synchronisation.py",
    "tests/simulator/test_forecasts.py",
    "tests/simulator/test_interconnect_slowdown.py",
)
"""Files whose tests call kernels that no command calls by itself: `make kernels` runs them once, before the workers."""


def lane_of(path: Path) -> str:
    """Return the lane of a file or folder of tests: `core`, `slow`, or `both` for a folder that has some of each."""
    place = path.resolve().relative_to(ROOT).as_posix()
    if any(place == slow or place.startswith(f"{slow}/") for slow in SLOW):
        return "slow"
    return "both" if path.is_dir() else "core"


def in_lane(path: Path, lane: str) -> bool:
    """Return whether a file or folder has tests of a lane, or of the files that run `first`."""
    if lane == "first":
        place = path.resolve().relative_to(ROOT).as_posix()
        return any(file == place or file.startswith(f"{place}/") for file in FIRST)
    return lane_of(path) in (lane, "both")
