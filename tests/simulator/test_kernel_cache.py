"""Compiled kernels are kept on disk: they must not outlive a change of what they were compiled from."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numba
import pytest

import gpusched_baselines
import gpusched_env
from gpusched_baselines.planning.plan import solve
from gpusched_env import kernel as module
from gpusched_env.kernel import kernel
from gpusched_env.simulator.placement.placement import place

compiled_only = pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="NUMBA_DISABLE_JIT is set: nothing is kept")
PRINT = "from tiny.area import area; print(area(2.0), len(area.stats.cache_hits))"


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    """Make a package of one kernel, and of the constant that it takes from another file."""
    package = tmp_path / "tiny"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "constants.py").write_text("HEIGHT = 3.0\n", encoding="utf-8")
    (package / "area.py").write_text(
        "from gpusched_env.kernel import kernel\n"
        "from tiny.constants import HEIGHT\n\n\n"
        "@kernel\n"
        "def area(width):\n"
        "    return width * HEIGHT\n",
        encoding="utf-8",
    )
    return package


def run(package: Path, program: str = PRINT) -> tuple[float, int]:
    """Call the kernel with 2.0 in a process of its own; give the result, and how many kernels came from the disk."""
    path = os.pathsep.join([str(package.parent), *sys.path])
    environment = os.environ | {"PYTHONPATH": path, "NUMBA_CACHE_DIR": str(package.parent / "cache")}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    result, hits = done.stdout.split()
    return float(result), int(hits)


def stamp(*packages: Path) -> tuple[float, int]:
    return module._stamp.__wrapped__(frozenset(packages))


@compiled_only
def test_a_kernel_is_kept_until_a_constant_in_another_file_changes(tiny):
    assert run(tiny) == (6.0, 0)
    assert run(tiny) == (6.0, 1)
    (tiny / "constants.py").write_text("HEIGHT = 50.0\n", encoding="utf-8")
    assert run(tiny) == (100.0, 0)


@compiled_only
def test_the_cache_of_a_kernel_carries_the_stamp_of_all_its_sources():
    """The attribute is Numba's own and private: should it move, kernels would silently lose their stamp."""
    assert place._cache._cache_file._source_stamp == stamp(Path(gpusched_env.__file__).parent)


def test_a_changed_constant_in_another_file_changes_the_stamp(tiny):
    before = stamp(tiny)
    assert stamp(tiny) == before
    (tiny / "constants.py").write_text("HEIGHT = 50.0\n", encoding="utf-8")
    assert stamp(tiny) != before


def test_a_file_that_was_changed_without_changing_its_size_changes_the_stamp(tiny):
    before = stamp(tiny)
    (tiny / "constants.py").write_text("HEIGHT = 5.0\n", encoding="utf-8")
    later = before[0] + 10.0
    os.utime(tiny / "constants.py", (later, later))
    assert stamp(tiny) != before


def test_a_changed_file_in_a_folder_below_changes_the_stamp(tiny):
    (tiny / "deeper").mkdir()
    (tiny / "deeper" / "constants.py").write_text("WIDTH = 3.0\n", encoding="utf-8")
    before = stamp(tiny)
    (tiny / "deeper" / "constants.py").write_text("WIDTH = 50.0\n", encoding="utf-8")
    assert stamp(tiny) != before


@compiled_only
def test_the_stamp_of_a_kernel_covers_all_packages_that_it_takes_kernels_from():
    """Whole packages: kernels in one folder take constants and kernels from others."""
    env, baselines = (Path(package.__file__).parent for package in (gpusched_env, gpusched_baselines))

    def of_its_own() -> None:
        """Stand in a file that imports `solve` and `layout`."""

    assert module._packages(place.py_func) == {env}
    assert module._packages(solve.py_func) == {env, baselines}
    assert module._packages(of_its_own) == {env, baselines, Path(__file__).parent}


@compiled_only
def test_a_kernel_of_a_folder_below_is_compiled_anew_when_its_package_changes(tiny):
    (tiny / "deep").mkdir()
    (tiny / "deep" / "__init__.py").touch()
    (tiny / "area.py").rename(tiny / "deep" / "area.py")
    deep = PRINT.replace("tiny.area", "tiny.deep.area")
    assert run(tiny, deep) == (6.0, 0)
    assert run(tiny, deep) == (6.0, 1)
    (tiny / "constants.py").write_text("HEIGHT = 50.0\n", encoding="utf-8")
    assert run(tiny, deep) == (100.0, 0)


def test_a_kernel_without_a_cache_file_is_a_kernel_all_the_same(monkeypatch):
    """So the private attribute is no more than asked for."""

    def compiler(**_):
        return lambda function: function

    monkeypatch.setattr(numba, "njit", compiler)
    assert kernel(lambda x: 2.0 * x)(1.0) == 2.0


def test_a_kernel_that_stands_in_no_file_is_compiled_too_but_not_kept():
    names = {"kernel": kernel}
    exec("@kernel\ndef twice(x):\n    return 2.0 * x", names)  # noqa: S102 - as in an interpreter
    assert names["twice"](1.0) == 2.0
