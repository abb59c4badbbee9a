"""The size and the order of the sources, against those of an earlier commit: lines, modules, imports."""

from __future__ import annotations

import ast
import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.child import REPOSITORY, run_python
from benchmarks.figure import Figure, at_most
from benchmarks.trees import checked_out, environment_of, git

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from benchmarks.figure import Target

BEFORE = "78b8e47"
"""The commit with which the present sources are compared by default."""
INSTALLED = ("gpusched_env", "baselines", "agents", "experiments", "operations")
PACKAGES = (*INSTALLED, "reproductions")
FACE = ("gpusched_env.simulator.kernels", "gpusched_env.simulator.stepping")
LOADED = "import sys; print(sum(name.partition('.')[0].startswith('gpusched_') for name in sys.modules))"
PROGRAMS = {
    "modules loaded by import gpusched_env": f"import gpusched_env; {LOADED}",
    "modules loaded by gpusched compare": f"""
import contextlib, os, sys
from gpusched_experiments.cli.main import run
sys.argv = ["gpusched", "compare", "--scenario", "tiny", "--policies", "edf,sts", "--seeds", "1", "--workers", "1",
            "--out", os.environ["OUT"]]
with contextlib.redirect_stdout(sys.stderr), contextlib.suppress(SystemExit):
    run()
{LOADED}
""",
}
TARGETS: dict[str, Target] = {
    "lines of source": at_most(44_000),
    "lines of source in the wheel": at_most(38_000),
    "modules": at_most(340),
    "modules loaded by import gpusched_env": at_most(90),
    "modules loaded by gpusched compare": at_most(180),
    "imports between rooms that import each other": at_most(0),
    "imports of the simulator's inner modules in baselines": at_most(0),
}


def measure(before: str = BEFORE) -> list[Figure]:
    """Count the present sources, and those of the commit `before`.

    Args:
        before: The commit.

    Raises:
        InputError: There is no such commit here.
    """
    with checked_out(before) as path, tempfile.TemporaryDirectory() as folder:
        old, now = counts(path), counts(REPOSITORY)
        for name, program in PROGRAMS.items():
            old[name], now[name] = (_loaded(tree, Path(folder), program) for tree in (path, REPOSITORY))
    return [Figure(name, (float(now[name]),), "", TARGETS.get(name), f"{before}: {old[name]:,}") for name in now]


def counts(tree: Path) -> dict[str, int]:
    """Count the tracked files of a tree: sources of all packages, imports between them, and tests."""
    files = {package: _python_files(tree, package) for package in PACKAGES}
    lines = {package: sum(_lines(path) for path in paths) for package, paths in files.items()}
    sources = [path for paths in files.values() for path in paths]
    parsed = {path: ast.parse(path.read_text(encoding="utf-8")) for path in sources}
    nodes = [node for module in parsed.values() for node in ast.walk(module)]
    tests = [ast.parse(path.read_text(encoding="utf-8")) for path in _python_files(tree, "tests")]
    return {
        "lines of source": sum(lines.values()),
        "lines of source in the wheel": sum(lines[package] for package in INSTALLED),
        "lines of docstrings": sum(_docstring_lines(node) for node in nodes),
        "modules": len(sources),
        "checks (uses of InputError)": sum(_is_check(node) for node in nodes),
        "imports between rooms that import each other": _circular({_name(tree, p): m for p, m in parsed.items()}),
        "imports of the simulator's inner modules in baselines": sum(
            name.startswith("gpusched_env.simulator.") and not name.startswith(FACE)
            for path in files["baselines"]
            for name in _imported(parsed[path], {})
        ),
        "tests": sum(isinstance(n, ast.FunctionDef) and n.name.startswith("test_") for t in tests for n in ast.walk(t)),
        "lines of gpusched_env/audit": sum(_lines(path) for path in _python_files(tree, "gpusched_env/audit")),
    }


def _loaded(tree: Path, folder: Path, program: str) -> int:
    environment = {**environment_of(tree, folder / tree.name), "OUT": str(folder / f"{tree.name}-out"), "TERM": "dumb"}
    return int(run_python(["-P", "-c", program], environment={**os.environ, **environment}).splitlines()[-1])


def _circular(modules: Mapping[str, ast.Module]) -> int:
    """Count the run-time imports between subpackages of one package that import each other; layers have none."""
    arrows = {
        (_room(importer), _room(name))
        for importer, module in modules.items()
        for name in _imported(module, modules)
        if name.partition(".")[0] == importer.partition(".")[0] and _room(name) != _room(importer)
    }
    reached = set(arrows)
    while True:
        further = {(a, d) for a, b in reached for c, d in reached if b == c} - reached
        if not further:
            return sum((b, a) in reached for a, b in arrows)
        reached |= further


def _room(module: str) -> str:
    return ".".join(module.split(".")[:2])


def _imported(module: ast.Module, known: Mapping[str, object]) -> Iterator[str]:
    """Yield the modules that a file imports when it is loaded or runs; not those for annotations."""
    typing = {
        id(inner)
        for node in ast.walk(module)
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
        for inner in ast.walk(node)
    }
    for node in ast.walk(module):
        if isinstance(node, ast.ImportFrom) and node.module and id(node) not in typing:
            for alias in node.names:
                full = f"{node.module}.{alias.name}"
                yield full if full in known else node.module
        elif isinstance(node, ast.Import) and id(node) not in typing:
            yield from (alias.name for alias in node.names)


def _name(tree: Path, path: Path) -> str:
    parts = path.relative_to(tree).with_suffix("").parts
    parts = parts if parts[0] == "gpusched_env" else parts[1:]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _python_files(tree: Path, folder: str) -> list[Path]:
    listed = git("-C", str(tree), "ls-files", "-z", "--", folder).split("\0")
    return [path for path in (tree / name for name in listed if name.endswith(".py")) if path.is_file()]


def _lines(path: Path) -> int:
    return len(path.read_text(encoding="utf-8").splitlines())


def _docstring_lines(node: ast.AST) -> int:
    if not isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
        return 0
    return len((ast.get_docstring(node) or "").splitlines())


def _is_check(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "InputError"
