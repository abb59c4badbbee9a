"""Compiled kernels are kept on disk: they must not outlive a change of what they were compiled from."""

import os
import subprocess
import sys
from pathlib import Path

import numba
import pytest

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
def test_a_kernel_is_kept_until_a_constant_in_another_file_changes_and_versions_do_not_share_files(tiny):
    """The older one may end its work after the newer one: its code is not taken for that of the newer."""
    assert run(tiny) == (6.0, 0)
    assert run(tiny) == (6.0, 1)
    first = {path.name for path in (tiny.parent / "cache").rglob("*.nbc")}
    (tiny / "constants.py").write_text("HEIGHT = 50.0\n", encoding="utf-8")
    assert run(tiny) == (100.0, 0)
    assert first < {path.name for path in (tiny.parent / "cache").rglob("*.nbc")}


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


def volume(package: Path) -> None:
    """Add a kernel `volume` that calls one of 400 products, too long to become part of it, by a short one."""
    lines = "".join(f"    x[{i % 7}] = 0.5 * x[{i % 7}] + x[{i % 5}] * HEIGHT\n" for i in range(400))
    (package / "long.py").write_text(
        "from gpusched_env.kernel import kernel\nfrom tiny.constants import HEIGHT\n\n\n"
        f"@kernel\ndef long(x):\n{lines}    return x[0]\n\n\n"
        "@kernel\ndef short(x):\n    return long(x)\n",
        encoding="utf-8",
    )
    (package / "volume.py").write_text(
        "import numba\nfrom gpusched_env.kernel import kernel\nfrom tiny.long import short\n\n\n"
        "@kernel\ndef volume(x):\n    return short(x)\n\n\n"
        "@numba.njit(cache=True)\ndef other(x):\n    return short(x)\n",
        encoding="utf-8",
    )


CALLS = (
    "import numpy as np; import tiny.volume as v; from tiny.long import long; "
    "print(v.{0}(np.full(7, 0.125)), len(v.{0}.stats.cache_hits) + 10 * len(long.stats.cache_hits))"
)


@compiled_only
def test_a_kept_kernel_loads_those_that_it_calls_by_symbol_and_compiles_them_where_they_are_lost(tiny):
    volume(tiny)
    program = CALLS.format("volume")
    first, none = run(tiny, program)
    assert none == 0
    assert run(tiny, program) == (first, 11)
    for path in (tiny.parent / "cache").rglob("long.long*"):
        path.unlink()
    assert run(tiny, program) == (first, 1)
    assert run(tiny, program) == (first, 11)


@compiled_only
def test_a_function_that_is_no_kernel_is_not_kept_where_it_would_not_load_what_a_kernel_calls(tiny):
    volume(tiny)
    first, none = run(tiny, CALLS.format("other"))
    assert none == 0
    assert run(tiny, CALLS.format("other")) == (first, 10)
    (tiny / "plain.py").write_text(
        "import numba\nfrom tiny.area import area\n\n\n@numba.njit(cache=True)\ndef plain(x):\n    return area(x)\n",
        encoding="utf-8",
    )
    program = "from tiny.plain import plain; print(plain(2.0), len(plain.stats.cache_hits))"
    assert [run(tiny, program), run(tiny, program)] == [(6.0, 0), (6.0, 1)]


@compiled_only
def test_a_kernel_in_a_function_loads_what_it_calls_also_for_kernels_that_are_compiled_later(tiny):
    volume(tiny)
    text = "from gpusched_env.kernel import kernel\nfrom tiny.{0} import {1} as called\n\n\n"
    inner = "def make():\n    @kernel\n    def inner(x):\n        return called(x)\n\n    return inner\n\n\n"
    (tiny / "local.py").write_text(f"{text.format('long', 'short')}{inner}made = make()\n", encoding="utf-8")
    (tiny / "late.py").write_text(
        f"{text.format('local', 'made')}@kernel\ndef late(x):\n    return called(x)\n", encoding="utf-8"
    )
    program = "import numpy as np; from tiny.{0} import {1} as f; print(f(np.full(7, 0.125)), 0)"
    first, _ = run(tiny, program.format("local", "made"))
    assert [run(tiny, program.format("late", "late"))[0] for _ in range(2)] == [first] * 2


@compiled_only
def test_records_of_one_name_in_two_modules_are_two_types_to_a_kernel_that_is_called_by_symbol(tiny):
    volume(tiny)
    record = "from typing import NamedTuple\n\n\nclass Side(NamedTuple):\n    {0}: float\n    {1}: float\n"
    (tiny / "a.py").write_text(record.format("wide", "high"), encoding="utf-8")
    (tiny / "b.py").write_text(record.format("high", "wide"), encoding="utf-8")
    with (tiny / "long.py").open("a", encoding="utf-8") as file:
        file.write("\n\n@kernel\ndef wide(side, x):\n    return side.wide + 0.0 * long(x) * long(x[1:])\n")
        file.write("\n\n@kernel\ndef area(side, x):\n    return 3.0 * wide(side, x)\n")
    program = "import numpy as np; from tiny.long import area, wide; from tiny import a, b; x = np.zeros(8); "
    assert run(tiny, f"{program}print(wide(a.Side(1.0, 2.0), x), 0)") == (1.0, 0)
    program += "print(wide(a.Side(1.0, 2.0), x) + wide(b.Side(1.0, 2.0), x), int(area(a.Side(1.0, 2.0), x)))"
    assert [run(tiny, program) for _ in range(2)] == [(3.0, 3)] * 2


@compiled_only
def test_a_kernel_that_calls_by_symbol_is_compiled_anew_when_what_it_calls_changes(tiny):
    volume(tiny)
    before, _ = run(tiny, CALLS.format("volume"))
    (tiny / "constants.py").write_text("HEIGHT = 0.25\n", encoding="utf-8")
    after, kept = run(tiny, CALLS.format("volume"))
    assert kept == 0
    assert after != before


@compiled_only
def test_the_machine_code_of_a_long_kernel_stands_in_none_of_its_callers(tiny):
    volume(tiny)
    program = (
        "import numpy as np; import tiny.volume as v; from tiny.long import long; v.volume(np.ones(7)); "
        "code = next(iter(v.volume.inspect_llvm().values())); symbol = long.overloads[long.signatures[0]].fndesc; "
        "print(code.count('fmul'), int(symbol.llvm_func_name in code))"
    )
    assert run(tiny, program) == (0.0, 1)
