"""What every test run begins with: its lane, the guard against compiling, and the times that are printed at its end.

All runs use the build with every mechanism, so that each kernel is compiled once; not those of `test_builds.py`.
`--lane core` and `--lane slow` are the two commands `make test` and `make test-slow`. Without it, all tests that are
named run. `--compiled` fails a test that compiles a kernel of the packages.
"""

import os
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))  # for lanes.py
os.environ["GPUSCHED_BUILD"] = "everything"

from collections.abc import Generator

from lanes import FIRST, in_lane

INSTALL = "bash scripts/install_ipopt.sh .venv/bin/python   (Debian, by hand: see docs/theory.md)"


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("gpusched")
    group.addoption("--lane", choices=("core", "slow", "first"), help="Run these tests only (tests/lanes.py).")
    group.addoption("--compiled", action="store_true", help="Fail a test that compiles a kernel of the packages.")
    group.addoption("--durations-keep", action="store_true", help="Keep this run's times in tests/durations.csv.")


def pytest_configure(config: pytest.Config) -> None:
    import durations  # noqa: PLC0415 - `pythonpath` holds from here on

    config.pluginmanager.register(durations)
    if not hasattr(config, "workerinput"):
        keep = config.getoption("--durations-keep")
        config.pluginmanager.register(durations.Durations(lane=config.getoption("--lane"), keep=keep))
    if config.getoption("--compiled"):
        import compiling  # noqa: PLC0415

        config.pluginmanager.register(compiling)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    lane = config.getoption("--lane")
    return True if lane and not in_lane(collection_path, lane) else None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what does not run first of the files that have such tests."""
    if config.getoption("--lane") == "first":
        items[:] = [item for item in items if item.nodeid.startswith(FIRST)]


@pytest.fixture(autouse=True, scope="session")
def no_width() -> None:
    """Remove the width of the terminal from the environment, so that output is as wide as by default."""
    os.environ.pop("COLUMNS", None)


@pytest.fixture
def _needs_highs() -> None:
    pytest.importorskip("pyomo", reason="Pyomo is not installed: pip install 'gpusched-env[solvers]'")
    pytest.importorskip("highspy", reason="highspy is not installed: pip install 'gpusched-env[solvers]'")


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> Generator[None]:
    """Write, after all else, how many tests were skipped because cyipopt is missing, and how to get it."""
    yield
    skipped = terminalreporter.stats.get("skipped", [])
    reasons = [report.longrepr[2] for report in skipped if isinstance(report.longrepr, tuple)]
    missing = sum("cyipopt" in reason for reason in reasons)
    if not missing:
        return
    terminalreporter.section("CYIPOPT IS MISSING: sts:ipopt WAS NOT TESTED", sep="!", red=True, bold=True)
    terminalreporter.line(f"{missing} tests were skipped: the published solver of STS and our form of it did not run.")
    terminalreporter.line(f"Install it with: {INSTALL}")
    terminalreporter.section("CYIPOPT IS MISSING", sep="!", red=True, bold=True)
