"""Commands in processes of their own: as the console script, and as modules."""

import json
import os
import subprocess
import sys
from pathlib import Path


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
