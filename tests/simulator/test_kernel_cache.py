"""The digest of a kernel, under which it is kept on disk, changes with all that the kernel is made of."""

import sys
from collections.abc import Iterator
from importlib import import_module, invalidate_caches
from pathlib import Path

import numba
import pytest

from gpusched_baselines.planning.plan import solve
from gpusched_env import kernel as own
from gpusched_env.kernel import kernel
from gpusched_env.simulator.placement.placement import place

compiled_only = pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="NUMBA_DISABLE_JIT is set: nothing is kept")
HELPER = (
    "from typing import NamedTuple\nfrom gpusched_env.kernel import kernel\nfrom tiny import constants as c\n\n\n"
    "class Sides(NamedTuple):\n    wide: float\n    high: float\n\n\n"
    "@kernel\ndef helped(width):\n    return width * c.HEIGHT\n"
)


def source(imported: str, returned: str, below: str = "") -> str:
    """Return a file with the kernel `area`, and with a kernel `below` it where that is to return something."""
    text = f"from gpusched_env.kernel import kernel\n{imported}\n\n\n@kernel\ndef area(width):\n    return {returned}\n"
    return f"{text}\n\n@kernel\ndef below(width):\n    return {below}\n" if below else text


IMPORTED, MODULE = "from tiny.constants import HEIGHT", "from tiny import constants as c"
CONSTANT = source(IMPORTED, "width * HEIGHT")
HELPED = source("from tiny.helper import helped", "helped(width)")
CHANGES = {
    "a constant from another file": (CONSTANT, "HEIGHT = 3.0", "HEIGHT = 50.0"),
    "a constant of a module": (source(MODULE, "width * c.HEIGHT"), "HEIGHT = 3.0", "HEIGHT = 50.0"),
    "a constant that a kernel below it reads": (
        source(IMPORTED, "below(width)", "width * HEIGHT"), "HEIGHT = 3.0", "HEIGHT = 50.0",
    ),
    "a constant of a module that a kernel below it reads": (
        source(MODULE, "below(width)", "width * c.HEIGHT"), "HEIGHT = 3.0", "HEIGHT = 50.0",
    ),
    "a kernel below it": (source("", "below(width)", "3.0 * width"), "3.0 * width", "4.0 * width"),
    "a kernel below it that calls it": (
        source("", "below(width) if width > 9.0 else 1.0", "area(3.0 * width)"), "3.0 * width", "4.0 * width",
    ),
    "which of two kernels it calls first": (
        source("from tiny.helper import helped, helped as again", "helped(width) + below(width)", "again(width)"),
        "helped(width) + below(width)", "below(width) + helped(width)",
    ),
    "a number in its own code": (source("", "3.0 * width"), "3.0 * width", "4.0 * width"),
    "its own code": (HELPED, "return helped(width)", "return helped(width) + 1.0"),
    "a kernel from another file": (HELPED, "return width * c.HEIGHT", "return width * c.HEIGHT + 2.0"),
    "the order of a tuple's fields": (HELPED, "wide: float\n    high: float", "high: float\n    wide: float"),
    "a constant of a kernel from another file": (HELPED, "HEIGHT = 3.0", "HEIGHT = 5.0"),
}  # fmt: skip


@pytest.fixture
def tiny(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Make a package with a constant, a kernel `helped` and a named tuple."""
    package = tmp_path / "tiny"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "constants.py").write_text("HEIGHT = 3.0\n", encoding="utf-8")
    (package / "helper.py").write_text(HELPER, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    yield package
    forget()


def forget() -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "tiny"]:
        del sys.modules[name]
    for cached in (own._records, own._package, own._text):
        cached.cache_clear()
    invalidate_caches()


def digest(module: str = "tiny.area") -> str:
    """Return the digest of the kernel `area` of the package as it is now."""
    forget()
    return import_module(module).area._digest


def replace(package: Path, before: str, after: str) -> None:
    for path in package.rglob("*.py"):
        path.write_text(path.read_text(encoding="utf-8").replace(before, after), encoding="utf-8")


@compiled_only
@pytest.mark.parametrize("what", CHANGES)
def test_a_digest_changes_with_anything_that_the_kernel_is_made_of(tiny, what):
    text, before, after = CHANGES[what]
    (tiny / "area.py").write_text(text, encoding="utf-8")
    first = digest()
    assert digest() == first
    replace(tiny, before, after)
    assert digest() != first


@compiled_only
def test_a_digest_of_a_folder_below_changes_with_its_package(tiny):
    (tiny / "deep").mkdir()
    (tiny / "deep" / "__init__.py").touch()
    (tiny / "deep" / "area.py").write_text(CONSTANT, encoding="utf-8")
    first = digest("tiny.deep.area")
    assert digest("tiny.deep.area") == first
    replace(tiny, "HEIGHT = 3.0", "HEIGHT = 50.0")
    assert digest("tiny.deep.area") != first


@compiled_only
def test_a_digest_stays_when_only_a_comment_a_docstring_or_another_kernel_of_its_file_changes(tiny):
    (tiny / "area.py").write_text(CONSTANT, encoding="utf-8")
    first = digest()
    with (tiny / "area.py").open("a", encoding="utf-8") as file:
        file.write("\n\n# A comment.\n@kernel\ndef twice(width):\n    return 2.0 * width\n")
    assert digest() == first
    for text in ('"""Return an area."""', '"""Return the area of a rectangle."""'):
        (tiny / "area.py").write_text(CONSTANT.replace("(width):\n", f"(width):\n    {text}\n"), encoding="utf-8")
        assert digest() == first


@compiled_only
def test_a_kernel_that_reads_a_name_not_yet_there_shares_its_digest_with_none(tiny):
    """So one that is called while its file is imported is compiled again by the next process."""
    (tiny / "area.py").write_text(source("", "below(width)"), encoding="utf-8")
    assert digest() != digest()


@compiled_only
def test_a_kernel_has_neither_a_digest_nor_a_cache_before_its_first_use(tiny):
    (tiny / "area.py").write_text(CONSTANT, encoding="utf-8")
    area = import_module("tiny.area").area
    assert not {"_digest", "_cache"} & set(vars(area))
    assert area(2.0) == 6.0
    assert area._cache._cache_file._source_stamp == area._digest


@compiled_only
def test_the_cache_of_a_kernel_carries_its_digest():
    """The attributes are Numba's own and private."""
    stored = place._cache._cache_file
    assert len(place._digest) == 64
    assert stored._source_stamp == place._digest != solve._digest
    assert place._digest[:16] in stored._data_name_pattern
    names = (stored._index_name, stored._index_path.rpartition("/")[2], stored._data_name_pattern)
    assert [name.partition(".py3")[0] for name in names] == ["placement.place"] * 3, "a line above it moves no file"


def test_a_kernel_without_a_cache_file_or_a_file_of_its_own_is_a_kernel_all_the_same(monkeypatch):
    """So the private attribute is no more than asked for."""

    def compiler(**_):
        return lambda function: function

    monkeypatch.setattr(numba, "njit", compiler)
    assert kernel(lambda x: 2.0 * x)(1.0) == 2.0
    names = {"kernel": kernel}
    exec("@kernel\ndef twice(x):\n    return 2.0 * x", names)  # noqa: S102 - as in an interpreter
    assert names["twice"](1.0) == 2.0
