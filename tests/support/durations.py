"""Processor time of tests, printed beside the figures that are kept: a pytest plugin.

A test's time is that of its process and of the processes that it waited for [s]. It includes the fixtures that the test
is the first to use.
"""

import csv
import os
from collections import defaultdict
from collections.abc import Generator
from pathlib import Path

import pytest

BUDGET_S = 5.0
"""What a test of the core may take [s of processor time]."""
SLOWER = 1.5
"""A file is reported from this many times its kept time on."""
SHORT_S = 2.0
"""Files that take less than this [s] are not reported."""
KEPT = Path(__file__).parents[1] / "durations.csv"
PROPERTY = "processor_s"


def processor_s() -> float:
    """Return the processor time of this process and of those that it waited for [s]."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> Generator[None]:
    item.stash[_BEGIN] = processor_s()
    return (yield)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None]:
    try:
        return (yield)
    finally:
        item.user_properties.append((PROPERTY, round(processor_s() - item.stash[_BEGIN], 2)))


_BEGIN = pytest.StashKey[float]()


class Durations:
    """The times of the tests of one run, in the process that reports.

    Args:
        lane: The lane of the run; None for tests that were named. The budget is that of the core.
        keep: Whether the figures of this run replace those that are kept.
    """

    def __init__(self, *, lane: str | None, keep: bool) -> None:
        self.lane, self.keep = lane, keep
        self.seconds: dict[str, float] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "teardown":
            self.seconds[report.nodeid] = dict(report.user_properties).get(PROPERTY, 0.0)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Write the totals, the tests above the budget, and the files that take longer than they did."""
        if self.lane is None and not self.keep:
            return
        files = by_file(self.seconds)
        kept = read()
        total, before = (sum(each.values()) for each in (files, {name: kept[name] for name in files if name in kept}))
        terminalreporter.section("processor time")
        terminalreporter.line(f"{total:.0f} s in {len(self.seconds)} tests; kept for these files: {before:.0f} s")
        for name, seconds in sorted(self.seconds.items(), key=lambda item: -item[1]):
            if self.lane == "core" and seconds > BUDGET_S:
                terminalreporter.line(f"above {BUDGET_S:g} s: {seconds:6.1f} s  {name}")
        for name, seconds in files.items():
            if seconds > max(SHORT_S, SLOWER * kept.get(name, 0.0)):
                terminalreporter.line(f"slower: {kept.get(name, 0.0):6.1f} → {seconds:6.1f} s  {name}")
        if self.keep:
            write(kept | files)
            terminalreporter.line(f"kept in {KEPT}")


def by_file(seconds: dict[str, float]) -> dict[str, float]:
    """Add up the times of the tests of each file [s]."""
    files: dict[str, float] = defaultdict(float)
    for name, each in seconds.items():
        files[name.partition("::")[0]] += each
    return dict(files)


def read() -> dict[str, float]:
    """Return the kept time of each file [s]."""
    if not KEPT.exists():
        return {}
    with KEPT.open(encoding="utf-8", newline="") as file:
        return {row["file"]: float(row["processor_s"]) for row in csv.DictReader(file)}


def write(files: dict[str, float]) -> None:
    """Keep the times of files that are there [s]."""
    rows = sorted((name, seconds) for name, seconds in files.items() if (KEPT.parents[1] / name).exists())
    lines = ["file,processor_s", *(f"{name},{seconds:.1f}" for name, seconds in rows)]
    KEPT.write_text("\n".join(lines) + "\n", encoding="utf-8")
