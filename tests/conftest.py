"""What every test begins with; and what a run ends with: a notice that cannot be overlooked if the solver that STS was
published with was not tested.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Generator

INSTALL = "bash scripts/install_ipopt.sh .venv/bin/python   (Debian, by hand: see docs/theory.md)"


@pytest.fixture(autouse=True, scope="session")
def no_width() -> None:
    """Let nothing say how wide the output is: processes that share the tests are told the width of the terminal."""
    os.environ.pop("COLUMNS", None)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> Generator[None]:
    """Return, after all else, how many tests were skipped because cyipopt is missing, and how to get it."""
    yield
    skipped = terminalreporter.stats.get("skipped", [])
    reasons = [report.longrepr[2] for report in skipped if isinstance(report.longrepr, tuple)]
    missing = sum("cyipopt" in reason for reason in reasons)
    if not missing:
        return
    terminalreporter.section("CYIPOPT IS MISSING: sts-ipopt WAS NOT TESTED", sep="!", red=True, bold=True)
    terminalreporter.line(f"{missing} tests were skipped: the published solver of STS and our form of it did not run.")
    terminalreporter.line(f"Install it with: {INSTALL}")
    terminalreporter.section("CYIPOPT IS MISSING", sep="!", red=True, bold=True)
