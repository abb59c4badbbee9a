"""Start-up: from the first `import` to the first result, with code to compile or to load."""

from __future__ import annotations

import json
import tempfile
from typing import TYPE_CHECKING

from benchmarks.child import run_python
from benchmarks.figure import Figure

if TYPE_CHECKING:
    from collections.abc import Mapping

# Each prints the seconds that its imports took, and the seconds in all.
FIRST_STEP = """
import json, time
begin = time.perf_counter()
import gymnasium
import gpusched_env
imported = time.perf_counter()
env = gymnasium.make(gpusched_env.ENVIRONMENT_ID, scenario="default")
env.reset(seed=0)
env.step(0)
print(json.dumps([imported - begin, time.perf_counter() - begin]))
"""
ALL_POLICIES = """
import json, time
begin = time.perf_counter()
from gpusched_baselines import make_policy, policy_names
from gpusched_env import load_scenario, make_instance, simulate
imported = time.perf_counter()
for name in policy_names():
    simulate(make_instance(load_scenario("tiny"), 0), make_policy(name))
print(json.dumps([imported - begin, time.perf_counter() - begin]))
"""
DEPENDENCIES = """
import json, time
begin = time.perf_counter()
import gymnasium, numba, polars, pydantic
print(json.dumps([time.perf_counter() - begin]))
"""
PROGRAMS = {"first step": FIRST_STEP, "a run of every policy": ALL_POLICIES}
HEAVIEST = 10


def measure(repetitions: int = 5, programs: Mapping[str, str] = PROGRAMS) -> list[Figure]:
    """Time fresh processes, with Numba's cache in a folder of its own: first empty (cold), then filled (warm).

    Args:
        repetitions: Repetitions with a warm cache; the cold one is run once.
        programs: The programs to run, by the names of their ends.
    """
    figures = [figure for end, program in programs.items() for figure in _cold_and_warm(end, program, repetitions)]
    dependencies = tuple(_timed(DEPENDENCIES)[-1] for _ in range(repetitions))
    compared = Figure("for comparison: import gymnasium, numba, polars, pydantic", dependencies, "s")
    return [*figures, compared, *_heaviest_imports()]


def _cold_and_warm(end: str, program: str, repetitions: int) -> list[Figure]:
    with tempfile.TemporaryDirectory() as cache:
        cold = _timed(program, cache)
        warm = [_timed(program, cache) for _ in range(repetitions)]
    return [
        Figure(f"first import to {end}, cold", (cold[-1],), "s", note="compiles; once per installation"),
        Figure(f"first import to {end}, warm", tuple(run[-1] for run in warm), "s"),
        Figure("  of it, imports", tuple(run[0] for run in warm), "s"),
    ]


def _timed(program: str, cache: str | None = None) -> list[float]:
    environment = {} if cache is None else {"NUMBA_CACHE_DIR": cache}
    seconds: list[float] = json.loads(run_python(["-c", program], environment=environment))
    return seconds


def _heaviest_imports() -> list[Figure]:
    """List the packages with most time in `import gpusched_env`, from `-X importtime` (which slows it down)."""
    own_ms: dict[str, float] = {}
    for line in run_python(["-X", "importtime", "-c", "import gpusched_env"], errors=True).splitlines():
        microseconds, _, rest = line.removeprefix("import time:").partition("|")
        if microseconds.strip().isdecimal():
            package = rest.rpartition("|")[2].strip().partition(".")[0]
            own_ms[package] = own_ms.get(package, 0.0) + int(microseconds) / 1000.0
    ranked = sorted(own_ms.items(), key=lambda item: -item[1])[:HEAVIEST]
    return [Figure(f"  import gpusched_env: modules of {name}", (spent,), "ms") for name, spent in ranked]
