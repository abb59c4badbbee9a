"""The notice at the end of a test run without cyipopt."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
SKIPPED = "tests/baselines/solvers/test_ipopt.py::test_slack_takes_the_cheapest_and_late_the_fastest"


def ended(*options: str) -> str:
    """Run two tests that need cyipopt; give what is printed."""
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *options, SKIPPED]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False).stdout


def test_a_run_without_cyipopt_says_so_at_its_end_and_how_many_tests_it_skipped(tmp_path):
    (tmp_path / "hide_cyipopt.py").write_text("import sys\nsys.modules['cyipopt'] = None\n", encoding="utf-8")
    said = ended("-p", "hide_cyipopt", "-o", f"pythonpath=. tests/support {tmp_path}").splitlines()[
        -5:-1
    ]  # the last line counts
    assert "!! CYIPOPT IS MISSING: sts-ipopt WAS NOT TESTED !!" in said[0]
    assert said[1].startswith("2 tests were skipped")
    assert "scripts/install_ipopt.sh" in said[2]
