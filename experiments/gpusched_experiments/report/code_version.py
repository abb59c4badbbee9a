"""Which code made a run: runs of different code must not be mixed."""

from __future__ import annotations

import hashlib
import platform
import subprocess
from collections.abc import Iterable
from functools import cache
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from gpusched_agents.any_policy import SB3, TUNED, archive_path, is_own_policy, maker_of, parameters_path
from gpusched_agents.files.imported_files import digest_of, files_from
from gpusched_agents.files.own_code import own_files
from gpusched_agents.files.storage import AGENT_FILES, find_agent
from gpusched_baselines.registry import POLICIES
from gpusched_env.child_processes import usable_cores
from gpusched_env.mechanisms import USED
from gpusched_env.simulator.builds import build_of, facts_of
from gpusched_experiments.report.import_graph import TABLES, ImportGraph

if TYPE_CHECKING:
    from gpusched_env.model import Instance

_RUN = ("gpusched_experiments.report.cell", "gpusched_experiments.report.compared_run")
"""What makes an instance, runs a policy on it and measures the run."""
_PASSING = ("gpusched_agents.any_policy", "gpusched_experiments.report.warm_up")
"""Modules of a run that make a policy by its name, or compile ahead: they import what other policies use."""
_MECHANISMS = "gpusched_env.mechanisms"
_SOURCES = ("gpusched_env", "baselines", "agents", "experiments", "operations", "reproductions")
_PACKAGES = ("gpusched-env", "numpy", "numba", "scipy")


@cache
def code_version() -> str:
    """Return a fingerprint of all that decides any run's result: sources, tables and the packages that compute it.

    Sources are all modules that a run of any registered policy loads. Reports, the command line and pictures are not
    among them.

    Returns:
        16 hexadecimal digits.
    """
    return _with_packages(_run_modules())


@cache
def run_version(policy: str, mechanisms: tuple[str, ...] = (), modules: tuple[str, ...] = ()) -> str:
    """Return a fingerprint of what decides one run's result; what only other policies or instances use is left out.

    For code of the user, a policy or a mechanism, which may import anything, it has all that `code_version` has. Files
    of agents are left out (`agent_version`).

    Args:
        policy: Name of a registered policy or an agent.
        mechanisms: Those of the instance (`mechanisms_of`).
        modules: Further ones that the run loads: of its measure, and of a change of its instance.

    Returns:
        16 hexadecimal digits.
    """
    graph = _graph()
    own = (f"{_MECHANISMS}.{name}" for name in mechanisms if "." not in name)
    packages = [*own, *(name for name in mechanisms if "." in name)]
    roots = [maker_of(policy), *modules, *(module for package in packages for module in graph.modules_in(package))]
    loaded = graph.modules_of(_RUN, passing=_PASSING) | graph.modules_of(roots, passing=_PASSING)
    others = [package for package in packages if not graph.modules_in(package)]
    found = _with_packages(loaded | (_run_modules() if others or is_own_policy(policy) else frozenset()))
    return "-".join([found, *(digest_of(_files_of(package)) for package in others)])


def mechanisms_of(instance: Instance) -> tuple[str, ...]:
    """Return the mechanisms whose code a run of an instance uses, by name: those of its build and of its models."""
    build = build_of(instance, facts_of(instance)).mechanisms
    return tuple(sorted({*build, *(own.mechanism for own in instance.mechanisms)}))


@cache
def version_beside(*modules: str) -> str:
    """Return a fingerprint of all that modules, or `module:name`, load and `code_version` leaves out; may be empty."""
    beside = _graph().modules_of(modules) - _run_modules()
    return _digest(beside).hexdigest()[:16] if beside else ""


@cache
def reproductions_version() -> str:
    return version_beside(*_graph().modules_in("gpusched_reproductions"))


@cache
def commit() -> str | None:
    """Return the commit of the code's checkout, with `+` if its sources differ from it; None where there is none."""
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


def same_sources(earlier: str) -> bool:
    """Whether the sources of another commit are those of the present one; false if git does not know it."""
    here = Path(__file__).parent
    root = Path(_git(here, "rev-parse", "--show-toplevel").stdout.strip())
    return _git(root, "diff", "--quiet", earlier, "HEAD", "--", *_SOURCES).returncode == 0


def _git(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["git", *arguments], cwd=folder, capture_output=True, text=True, timeout=10.0, check=False)  # noqa: S603, S607 - fixed arguments


def agent_version(name: str) -> str:
    """Return a fingerprint of what decides an agent's choices and `code_version` lacks: its files, and their reader."""
    digest = hashlib.sha256(version_beside(maker_of(name)).encode())
    if is_own_policy(name):
        digest.update(name.rpartition(":")[2].encode())
        paths = list(own_files(name))
    elif name.startswith(TUNED):
        paths = [Path(name.removeprefix(TUNED))]
    else:
        paths = [archive_path(name)] if name.startswith(SB3) else [find_agent(name) / file for file in AGENT_FILES]
        paths += [path for path in map(parameters_path, paths) if name.startswith(SB3) and path.is_file()]
    for path in paths:
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()[:16]


def machine() -> str:
    return f"{platform.machine()}, {_processor()}, {usable_cores()} cores"


@cache
def _graph() -> ImportGraph:
    return ImportGraph.installed()


@cache
def _run_modules() -> frozenset[str]:
    makers = (maker_of(name) for name in POLICIES)
    mechanisms = (f"gpusched_env.mechanisms.{name}.kernels" for name in USED)
    return _graph().modules_of((*_RUN, *makers, *mechanisms))


def _with_packages(modules: Iterable[str]) -> str:
    digest = _digest(modules)
    for package in _PACKAGES:
        digest.update(f"{package} {version(package)}\n".encode())
    digest.update(platform.python_version().encode())
    return digest.hexdigest()[:16]


def _files_of(package: str) -> tuple[Path, ...]:
    """Return the modules and tables in the folder of a package of the user's, and other modules that it imports."""
    spec = find_spec(package)
    folders = [Path(place) for place in (spec and spec.submodule_search_locations) or ()]
    here = [path for folder in folders for path in folder.rglob("*") if path.name.endswith((".py", *TABLES))]
    known: dict[Path, list[Path]] = {}
    imported = [file for path in here if path.suffix == ".py" for file in files_from(path, known)]
    return tuple(sorted({*(path.resolve() for path in here), *imported}))


def _digest(modules: Iterable[str]) -> hashlib._Hash:
    digest = hashlib.sha256()
    for name, of_file in _graph().digests(modules):
        digest.update(f"{name} {of_file}\n".encode())
    return digest


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, "") or platform.processor() or "unknown processor"
