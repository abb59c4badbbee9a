"""Commands in processes of their own: as the console script, and as modules."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numba
import pytest

from gpusched_experiments.report import warm_up as record


def run(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "COLUMNS": "200"}
    command = [sys.executable, "-m", *words]
    return subprocess.run(command, check=False, capture_output=True, text=True, cwd=folder, env=environment)


def test_a_comparison_in_processes_is_written_with_the_command_that_made_it(tmp_path):
    arguments = "compare -p fifo,edf,agent:default -s tiny --seeds 0-1 --workers 2 --out results"
    done = run(tmp_path, "gpusched_experiments", *arguments.split())
    assert done.returncode == 0, done.stderr
    assert "saving vs edf" in done.stdout
    assert (tmp_path / "results" / "report.html").exists()
    made = json.loads((tmp_path / "results" / "results.json").read_text(encoding="utf-8"))["provenance"]
    assert made["command"] == f"gpusched {arguments}"


def test_bad_input_leaves_one_line_and_no_traceback(tmp_path):
    done = run(tmp_path, "gpusched_experiments.cli.main", "compare", "--scenario", "nowhere")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("error: scenario = 'nowhere'; allowed: one of default")
    assert done.stderr.count("\n") == 1
    assert not list(tmp_path.iterdir())


def test_the_package_says_how_the_command_is_called(tmp_path):
    done = run(tmp_path, "gpusched_env")
    assert done.returncode == 2
    assert "python -m gpusched_experiments" in done.stderr


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
    assert "!! CYIPOPT IS MISSING: sts:ipopt WAS NOT TESTED !!" in said[0]
    assert said[1].startswith("2 tests were skipped")
    assert "scripts/install_ipopt.sh" in said[2]


compiled_only = pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="NUMBA_DISABLE_JIT is set: nothing is kept")


@compiled_only
def test_the_other_process_takes_all_steps_and_ends_with_its_input():
    code = f"from {record.__name__} import compile_from_the_other_end as c; c(); print('all', flush=True)"
    command = [sys.executable, "-c", code, "fifo", "nobody"]
    kept = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, env=kept) as process:
        assert process.stdout.readline() == "all\n"
    code = code.replace("; print", "; import time; time.sleep(600); print")
    with subprocess.Popen([*command[:2], code], stdin=pipe, stdout=pipe, text=True, env=kept) as process:
        process.stdin.close()
        assert process.wait(timeout=300) == 0
        assert process.stdout.read() == ""
