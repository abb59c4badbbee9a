"""The gates of the sources: size, imports, and what the first step of an environment loads and compiles."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.child import REPOSITORY, run_python
from benchmarks.circles import circles
from benchmarks.figure import Figure, at_least, at_most
from benchmarks.trees import checked_out, environment_of

if TYPE_CHECKING:
    from benchmarks.figure import Target

BEFORE = "267f4fef"
"""The commit with which the present sources are compared."""
FOLDERS = {"gpusched_env": "gpusched_env"} | {
    f"gpusched_{room}": f"{room}/gpusched_{room}"
    for room in ("baselines", "agents", "experiments", "operations", "reproductions")
}
HOT = ("simulator/rounds", "simulator/events", "simulator/placement/whole_gpus", "simulator/placement/placement",
       "observation/observe")  # fmt: skip
OPTIONS = re.compile("price|cap_|quota|cell|shar|spread|limit|profil|tenant|rack|memory")
FIRST_STEP = """
import json, resource, sys, time
begin = time.perf_counter()
import gymnasium, numpy
env = gymnasium.make("gpusched_env:gpusched_env/Slack-v0")
_, info = env.reset(seed=0)
env.step(int(numpy.flatnonzero(info["action_mask"])[-1]))
taken = time.perf_counter() - begin
used = resource.getrusage(resource.RUSAGE_SELF)
from pathlib import Path
ours = [m.__file__ for name, m in sys.modules.items() if name.startswith("gpusched_") and m.__file__]
lines = sum(len(Path(file).read_text(encoding="utf-8").splitlines()) for file in ours)
print(taken, used.ru_utime + used.ru_stime, len(ours), lines)
"""
COUNTED = """
from gpusched_env.compiling import compiled_kernels
counted = compiled_kernels()
count = counted.__enter__()
""" + FIRST_STEP.replace("print(taken", "print(count(), taken")
SLOW = {
    "warm speed of steps and rounds / 267f4fef": (at_least(0.97), "1", f"before-after --before {BEFORE}"),
    "vector environment / jumanji's JobShop": (at_least(0.85), "0.53, 0.66", "vector"),
    "env.step / CartPole-v1": (at_least(0.7), "0.54, 0.59", "steps"),
    "1,000 constructions of Random Greedy / an STS round": (at_most(90.0), "150", "rounds"),
}
"""Gates that other benchmarks measure: target, figure at `BEFORE`, and the benchmark."""


def measure(*, slow: bool = False) -> list[Figure]:
    """Measure the gates.

    Args:
        slow: Whether the first step is compiled too in empty caches, also on the sources of `BEFORE`: minutes.
    """
    figures = [*sizes(REPOSITORY), _contracts(), *_first_step(), *(_cold() if slow else _not_cold())]
    others = [
        Figure(name, (), "", target, f"python -m benchmarks {command}", before)
        for name, (target, before, command) in SLOW.items()
    ]
    minutes = Figure("time of make test", (), "min", at_most(12.0), "time make test, in a fresh clone", "64")
    return [*figures, *others, minutes]


def package_folders(tree: Path) -> dict[str, Path]:
    """Return the folder of each package of a tree, by name."""
    return {name: tree / folder for name, folder in FOLDERS.items() if (tree / folder).is_dir()}


def sizes(tree: Path) -> list[Figure]:
    """Count what the sources of a tree show: lines, circles of imports, options in the hot path."""
    folders = package_folders(tree)
    sources = sum(_lines(path) for folder in folders.values() for path in folder.rglob("*.py"))
    tests = sum(_lines(path) for path in (tree / "tests").rglob("*.py"))
    hot = (folders["gpusched_env"] / f"{name}.py" for name in HOT)
    options = sum(bool(OPTIONS.search(line)) for path in hot for line in path.read_text(encoding="utf-8").splitlines())
    return [
        _figure("lines of source", sources, at_most(79_000), "87,191"),
        _figure("lines of tests", tests, at_most(54_000), "61,292"),
        _figure("circles of imports", len(circles(folders)), at_most(0), "7"),
        _figure("lines of the hot path that name an option", options, at_most(5), "102"),
    ]


def _contracts() -> Figure:
    command = "from importlinter.cli import lint_imports_command as c; c()"
    done = subprocess.run([sys.executable, "-c", command], cwd=REPOSITORY, capture_output=True, text=True, check=False)  # noqa: S603 - this interpreter
    found = re.search(r"Contracts: \d+ kept, (\d+) broken", done.stdout)
    values = () if found is None else (float(found[1]),)
    return Figure("contracts of imports that are broken", values, "", at_most(0), "" if values else done.stderr[-200:])


def _first_step(repetitions: int = 5) -> list[Figure]:
    """Measure processes that find all compiled: the first one fills the cache where it has to."""
    runs = [run_python(["-c", FIRST_STEP]).split() for _ in range(1 + repetitions)][1:]
    wall, used, modules, lines = zip(*(map(float, run) for run in runs), strict=True)
    return [
        Figure("fresh process to its first step, compiled", wall, "s", at_most(1.0), "", "1.3"),
        Figure("its processor time", used, "s"),
        _figure("modules of the packages that it loads", modules[0], at_most(75), "130"),
        _figure("their lines", lines[0], at_most(11_500), "20,844"),
    ]


def _cold() -> list[Figure]:
    with checked_out(BEFORE) as old, tempfile.TemporaryDirectory() as folder:
        caches = Path(folder, "now"), Path(folder, "before")
        kernels, _, now_s, *_ = _run(REPOSITORY, caches[0], COUNTED)
        _, before_s, *_ = _run(old, caches[1], FIRST_STEP)
        mb = sum(path.stat().st_size for path in caches[0].rglob("*") if path.is_file()) / 1e6
    return [
        _figure("kernels that it compiles", kernels, at_most(125), "280"),
        _figure(f"processor time with an empty cache / {BEFORE}", now_s / before_s, at_most(0.28), "1"),
        _figure("cache after it, MB", mb, at_most(10.0), "38"),
    ]


def _not_cold() -> list[Figure]:
    how = "python -m benchmarks house --slow"
    return [Figure("kernels, time and cache of a first step that compiles", (), "", None, how, "280; 1; 38 MB")]


def _run(tree: Path, cache: Path, program: str) -> list[float]:
    environment = {**os.environ, **environment_of(tree, cache)}
    return [float(word) for word in run_python(["-P", "-c", program], environment=environment).split()]


def _figure(name: str, value: float, target: Target, before: str) -> Figure:
    return Figure(name, (float(value),), "", target, "", before)


def _lines(path: Path) -> int:
    return len(path.read_text(encoding="utf-8").splitlines())
