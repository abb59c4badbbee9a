"""Which code made a run: runs of different code must not be mixed."""

from __future__ import annotations

import hashlib
import platform
import subprocess
from collections.abc import Iterable, Iterator
from functools import cache
from importlib.metadata import version
from importlib.resources import files
from importlib.resources.abc import Traversable
from importlib.util import find_spec
from pathlib import Path

from gpusched_agents.any_policy import SB3, TUNED, archive_path
from gpusched_agents.files.storage import AGENT_FILES, find_agent
from gpusched_env.child_processes import usable_cores

# Everything that can change what a run gives. Reports, the command line and pictures cannot.
_DECIDES = (
    ("gpusched_env", "model"),
    ("gpusched_env", "workload"),
    ("gpusched_env", "simulator"),
    ("gpusched_env", "kernel.py"),
    ("gpusched_env", "named_arrays.py"),
    ("gpusched_reproductions", "published/changes.py"),
    ("gpusched_reproductions", "published/workloads.py"),
    ("gpusched_reproductions", "published/reference_instances.py"),
    ("gpusched_reproductions", "published/forecasts.py"),
    ("gpusched_experiments", "forecast"),
    ("gpusched_experiments", "report/cell.py"),
    ("gpusched_experiments", "report/run_summary.py"),
    ("gpusched_experiments", "report/metrics.py"),
    ("gpusched_experiments", "report/usage.py"),
    ("gpusched_baselines", ""),
)
# What turns a view into an agent's choice; how agents are trained cannot change what one that is there gives.
_DECIDES_FOR_AGENTS = (
    ("gpusched_env", "observation"),
    ("gpusched_agents", "policy.py"),
    ("gpusched_agents", "network/actors.py"),
    ("gpusched_agents", "network/control_policy.py"),
    ("gpusched_agents", "network/type_set.py"),
)
_SOURCES = ("gpusched_env", "baselines", "agents", "experiments", "reproductions")
_PACKAGES = ("gpusched-env", "numpy", "numba", "scipy")


@cache
def code_version() -> str:
    """Return a fingerprint of all that decides a run's result: sources, tables and the packages that compute it.

    Returns:
        16 hexadecimal digits.
    """
    digest = _digest(_DECIDES)
    for package in _PACKAGES:
        digest.update(f"{package} {version(package)}\n".encode())
    digest.update(platform.python_version().encode())
    return digest.hexdigest()[:16]


@cache
def systems_version() -> str:
    """Return a fingerprint of what decides what is shown of systems, beside `code_version`: the code of their parts.

    Returns:
        16 hexadecimal digits.
    """
    return _digest((("gpusched_reproductions", "systems"),)).hexdigest()[:16]


@cache
def commit() -> str | None:
    """Return the commit of the checkout that the code lies in, with `+` if its sources differ from it.

    Returns:
        40 hexadecimal digits, and maybe the `+`; None if the code lies in no checkout, or there is no git.
    """
    here = Path(__file__).parent
    try:
        told = _git(here, "rev-parse", "HEAD", "--show-toplevel")
        if told.returncode != 0:
            return None
        head, root = told.stdout.split("\n")[:2]
        changed = _git(Path(root), "diff", "--quiet", "HEAD", "--", *_SOURCES).returncode
    except (OSError, subprocess.TimeoutExpired):
        return None
    return head + ("+" if changed else "")


def _git(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["git", *arguments], cwd=folder, capture_output=True, text=True, timeout=10.0, check=False)  # noqa: S603, S607 - fixed arguments


def agent_version(name: str) -> str:
    """Return a fingerprint of what decides an agent's choices beside `code_version`: its files, and what applies them.

    Args:
        name: `agent:NAME`, `agent:DIR`, `sb3:FILE.zip` or `tuned:FILE`.

    Returns:
        16 hexadecimal digits.

    Raises:
        InputError: There is no such agent.
    """
    digest = _digest(_DECIDES_FOR_AGENTS)
    if name.startswith(TUNED):
        paths = [Path(name.removeprefix(TUNED))]
    else:
        paths = [archive_path(name)] if name.startswith(SB3) else [find_agent(name) / file for file in AGENT_FILES]
    for path in paths:
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()[:16]


def machine() -> str:
    """Name the machine for times: architecture, processor and number of cores."""
    return f"{platform.machine()}, {_processor()}, {usable_cores()} cores"


def _digest(places: Iterable[tuple[str, str]]) -> hashlib._Hash:
    """Hash every source and table in these places, each a package and a file or folder in it ("" for all of it)."""
    digest = hashlib.sha256()
    for package, path in places:
        if find_spec(package) is None:  # what is reproduced runs from a checkout only
            continue
        root = files(package)
        for name, content in sorted(_contents(root.joinpath(path) if path else root, path)):
            digest.update(f"{package}/{name} {len(content)}\n".encode())
            digest.update(content)
    return digest


def _contents(place: Traversable, name: str) -> Iterator[tuple[str, bytes]]:
    """Yield the name and content of every source and table in `place`, a file or a folder."""
    if place.is_file():
        if name.endswith((".py", ".csv")):
            yield name, place.read_bytes()
        return
    for submission in place.iterdir():
        yield from _contents(submission, f"{name}/{submission.name}")


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, "") or platform.processor() or "unknown processor"
