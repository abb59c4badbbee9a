"""Compiled kernels are kept on disk: they must not outlive a change of what they were compiled from."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import numba
import pytest

from gpusched_baselines.planning.plan import solve
from gpusched_env.kernel import kernel
from gpusched_env.simulator.placement.placement import place

if TYPE_CHECKING:
    from pathlib import Path

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


@compiled_only
def test_the_cache_of_a_kernel_carries_its_digest():
    """The attribute is Numba's own and private: should it move, kernels would silently lose their digest."""
    assert len(place._digest) == 64
    assert place._cache._cache_file._source_stamp == place._digest != solve._digest


@compiled_only
@pytest.mark.parametrize("taken", ["from tiny.constants import HEIGHT", "from tiny import constants as c"])
def test_a_kernel_is_compiled_anew_when_a_kernel_below_it_reads_what_has_changed_elsewhere(tiny, taken):
    name = "c.HEIGHT" if " as c" in taken else "HEIGHT"
    (tiny / "area.py").write_text(
        f"from gpusched_env.kernel import kernel\n{taken}\n\n\n"
        "@kernel\ndef area(width):\n    return below(width)\n\n\n"
        f"@kernel\ndef below(width):\n    return width * {name}\n",
        encoding="utf-8",
    )
    assert run(tiny) == (6.0, 0)
    assert run(tiny) == (6.0, 1)
    (tiny / "constants.py").write_text("HEIGHT = 50.0\n", encoding="utf-8")
    assert run(tiny) == (100.0, 0)


@compiled_only
def test_two_versions_of_a_kernel_do_not_share_files(tiny):
    """The older one ends its work after the newer one: its code is not taken for that of the newer."""
    assert run(tiny) == (6.0, 0)
    first = {path.name for path in (tiny.parent / "cache").rglob("*.nbc")}
    (tiny / "constants.py").write_text("HEIGHT = 50.0\n", encoding="utf-8")
    assert run(tiny) == (100.0, 0)
    assert first < {path.name for path in (tiny.parent / "cache").rglob("*.nbc")}


@compiled_only
def test_a_kernel_is_kept_when_only_a_comment_or_another_kernel_of_its_file_changes(tiny):
    assert run(tiny) == (6.0, 0)
    with (tiny / "area.py").open("a", encoding="utf-8") as file:
        file.write("\n\n# A comment.\n@kernel\ndef twice(width):\n    return 2.0 * width\n")
    assert run(tiny) == (6.0, 1)


@compiled_only
@pytest.mark.parametrize(
    ("before", "after", "result"),
    [
        ("return helped(width)", "return helped(width) + 1.0", 7.0),
        ("return width * c.HEIGHT", "return width * c.HEIGHT + 2.0", 8.0),
        ("wide: float\n    high: float", "high: float\n    wide: float", 12.0),
        ("HEIGHT = 3.0", "HEIGHT = 5.0", 10.0),
    ],
)
def test_a_kernel_is_compiled_anew_when_anything_changes_that_it_is_made_of(tiny, before, after, result):
    """Its own code, that of a kernel from another file, the order of a tuple's fields, a constant of a module."""
    (tiny / "helper.py").write_text(
        "from typing import NamedTuple\n"
        "from gpusched_env.kernel import kernel\n"
        "from tiny import constants as c\n\n\n"
        "class Sides(NamedTuple):\n"
        "    wide: float\n    high: float\n\n\n"
        "@kernel\ndef helped(width):\n    return width * c.HEIGHT\n\n\n"
        "@kernel\ndef wide(sides):\n    return sides.wide\n",
        encoding="utf-8",
    )
    (tiny / "area.py").write_text(
        "from gpusched_env.kernel import kernel\n"
        "from tiny.helper import Sides, helped, wide\n\n\n"
        "@kernel\ndef area(width):\n    return helped(width)\n",
        encoding="utf-8",
    )
    program = PRINT
    if "wide" in before and "float" in before:
        program = "from tiny.helper import Sides, wide; print(wide(Sides(6.0, 12.0)), len(wide.stats.cache_hits))"
    assert run(tiny, program) == (6.0, 0)
    assert run(tiny, program) == (6.0, 1)
    for path in tiny.glob("*.py"):
        path.write_text(path.read_text(encoding="utf-8").replace(before, after), encoding="utf-8")
    assert run(tiny, program) == (result, 0)


@compiled_only
def test_a_kernel_that_reads_what_stands_below_it_depends_on_its_whole_file(tiny):
    text = (
        "from gpusched_env.kernel import kernel\n\n\n"
        "@kernel\ndef area(width):\n    return below(width)\n\n\n"
        "@kernel\ndef below(width):\n    return 3.0 * width\n"
    )
    (tiny / "area.py").write_text(text, encoding="utf-8")
    assert run(tiny) == (6.0, 0)
    assert run(tiny) == (6.0, 1)
    (tiny / "area.py").write_text(text.replace("3.0", "4.0"), encoding="utf-8")
    assert run(tiny) == (8.0, 0)


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


@compiled_only
def test_a_kernel_is_compiled_anew_when_the_module_of_a_type_that_it_takes_has_moved(tiny):
    record = "from typing import NamedTuple\n\n\nclass Side(NamedTuple):\n    wide: float\n"
    (tiny / "old.py").write_text(record, encoding="utf-8")
    (tiny / "area.py").write_text(
        "from gpusched_env.kernel import kernel\n\n\n@kernel\ndef area(side):\n    return 3.0 * side.wide\n",
        encoding="utf-8",
    )
    program = (
        "from tiny.area import area; from tiny.old import Side; print(area(Side(2.0)), len(area.stats.cache_hits))"
    )
    assert run(tiny, program) == (6.0, 0)
    assert run(tiny, program) == (6.0, 1)
    (tiny / "old.py").rename(tiny / "new.py")
    assert run(tiny, program.replace("tiny.old", "tiny.new")) == (6.0, 0)


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
