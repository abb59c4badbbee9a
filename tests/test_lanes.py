"""The two lanes of the tests: every folder is in one, and what a run of the core adds to pytest."""

import re
from types import SimpleNamespace

import numba
import pytest
from lanes import FIRST, ROOT, SLOW, lane_of

import compiling
import durations

TESTS = ROOT / "tests"


class Report:
    """Take the lines that a plugin writes at the end of a run."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def section(self, title: str) -> None:
        self.lines.append(title)

    def line(self, text: str) -> None:
        self.lines.append(text)


def ended(name: str, seconds: float) -> SimpleNamespace:
    return SimpleNamespace(when="teardown", nodeid=name, user_properties=[(durations.PROPERTY, seconds)])


def test_what_the_list_of_the_slow_lane_names_is_there():
    assert [name for name in SLOW if not (ROOT / name).exists()] == []


@pytest.mark.parametrize("test", FIRST)
def test_what_runs_first_is_there_and_in_the_core(test):
    file, _, name = test.partition("::")
    assert f"def {name.partition('[')[0]}" in (ROOT / file).read_text(encoding="utf-8")
    assert lane_of(ROOT / file) == "core"


def test_a_file_has_the_lane_of_its_folder_and_the_root_has_both():
    assert lane_of(TESTS / "slurm" / "test_faults.py") == lane_of(TESTS / "slurm") == "slow"
    assert lane_of(TESTS / "simulator" / "test_events.py") == "core"
    assert lane_of(TESTS / "slurm_like") == lane_of(TESTS / "test_slurm.py") == "core"
    assert lane_of(TESTS) == "both"


def test_the_folders_of_the_slow_lane_are_those_that_the_page_names():
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    row = next(line for line in page.splitlines() if line.startswith("| `make test-slow`"))
    named = re.findall(r"`([\w/.]+)`", row.split("|")[2])
    assert sorted(f"tests/{name.removeprefix('tests/')}" for name in named) == sorted(
        name for name in SLOW if not name.endswith(".py")
    )


def test_a_run_ends_with_its_total_the_tests_above_the_budget_and_the_files_that_got_slower(tmp_path, monkeypatch):
    monkeypatch.setattr(durations, "KEPT", tmp_path / "tests" / "durations.csv")
    (tmp_path / "tests").mkdir()
    for name in ("a.py", "b.py"):
        (tmp_path / name).touch()
    durations.write({"a.py": 4.0, "b.py": 3.0, "gone.py": 9.0})
    assert durations.read() == {"a.py": 4.0, "b.py": 3.0}

    run, report = durations.Durations(lane="core", keep=True), Report()
    for name, seconds in (("a.py::one", 5.5), ("a.py::two", 1.0), ("b.py::three", 2.0)):
        run.pytest_runtest_logreport(ended(name, seconds))
    run.pytest_terminal_summary(report)
    title, total, above, slower, kept = report.lines
    assert (title, total) == ("processor time", "8 s in 3 tests; kept for these files: 7 s")
    assert above.split() == ["above", "5", "s:", "5.5", "s", "a.py::one"]
    assert slower.split() == ["slower:", "4.0", "→", "6.5", "s", "a.py"]
    assert kept.startswith("kept in ")
    assert durations.read() == {"a.py": 6.5, "b.py": 2.0}


def test_tests_that_were_named_end_without_times():
    run, report = durations.Durations(lane=None, keep=False), Report()
    run.pytest_runtest_logreport(ended("a.py::one", 5.5))
    run.pytest_terminal_summary(report)
    assert report.lines == []


@pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="NUMBA_DISABLE_JIT is set: nothing is compiled")
@pytest.mark.parametrize(("module", "fails"), [("a_package.made_up", True), ("made_up", False)])
def test_a_test_fails_that_compiles_a_kernel_of_the_packages(module, fails):
    def half(x: float) -> float:
        return 0.5 * x

    half.__module__ = module
    guard = compiling.nothing_compiled_of(("a_package",))
    next(guard)
    assert numba.njit(half)(3.0) == 1.5
    with pytest.raises(pytest.fail.Exception if fails else StopIteration) as raised:
        next(guard)
    assert fails == ("compiled 1 kernels" in str(raised.value))
