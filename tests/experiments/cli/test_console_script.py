import json
import os
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from gpusched_experiments.cli.app import FROM_A_CHECKOUT, Commands, app
from gpusched_experiments.cli.main import run


@pytest.mark.slow
def test_the_console_script_runs_in_a_process_of_its_own(tmp_path):
    arguments = ["compare", "-p", "fifo,edf", "-s", "tiny", "--seeds", "0-1", "--workers", "2", "--out", "results"]
    command = [sys.executable, "-m", "gpusched_experiments.cli.main", *arguments]
    wide = {**os.environ, "COLUMNS": "200"}
    done = subprocess.run(command, check=False, capture_output=True, text=True, cwd=tmp_path, env=wide)
    assert done.returncode == 0, done.stderr
    assert "saving vs edf" in done.stdout
    assert (tmp_path / "results" / "report.html").exists()


def by_module(*arguments, folder):
    command = [sys.executable, "-m", "gpusched_experiments", *arguments]
    return subprocess.run(command, check=False, capture_output=True, text=True, cwd=folder)


@pytest.mark.slow
@pytest.mark.parametrize("arguments", [("scenarios",), ("simulate", "--seed", "x")])
def test_the_package_as_a_module_is_the_console_script(arguments, tmp_path):
    script = "import sys; from gpusched_experiments.cli.main import run; sys.argv[0] = 'gpusched'; run()"
    command = [sys.executable, "-c", script, *arguments]
    expected = subprocess.run(command, check=False, capture_output=True, text=True, cwd=tmp_path)
    done = by_module(*arguments, folder=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (expected.returncode, expected.stdout, expected.stderr)
    assert "python" not in done.stdout + done.stderr


@pytest.mark.slow
def test_what_the_package_as_a_module_writes_names_the_command(tmp_path):
    done = by_module("simulate", "-p", "fifo", "-s", "tiny", "--out", "run", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    made = json.loads((tmp_path / "run" / "run.json").read_text(encoding="utf-8"))["provenance"]
    assert made["command"] == "gpusched simulate -p fifo -s tiny --out run"


@pytest.mark.slow
def test_bad_input_leaves_one_line_and_no_traceback(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "gpusched_experiments.cli.main", "compare", "--scenario", "nowhere"],
        check=False, capture_output=True, text=True, cwd=tmp_path,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("error: scenario = 'nowhere'; allowed: one of default")
    assert done.stderr.count("\n") == 1
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("package", ["typer", "rich"])
def test_without_the_extra_it_says_how_to_install_it(package, monkeypatch, capsys):
    for name in [
        name for name in sys.modules if name.partition(".")[0] == package or "gpusched_experiments.cli." in name
    ]:
        if name != "gpusched_experiments.cli.main":
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, package, None)
    monkeypatch.setattr("gpusched_experiments.cli.interruption.listen", lambda: None)  # pytest's signals are its own
    with pytest.raises(SystemExit) as stop:
        run()
    assert stop.value.code == 2
    error = capsys.readouterr().err
    assert error.startswith(f"error: the commands of gpusched need {package}")
    assert error.endswith('install it with: pip install "gpusched-env[cli]"\n')
    assert error.count("\n") == 1


@pytest.mark.parametrize("name", FROM_A_CHECKOUT)
def test_a_command_that_is_not_installed_says_where_it_runs(name, monkeypatch):
    monkeypatch.setitem(Commands.get_command.__globals__, "find_spec", lambda _: None)
    done = CliRunner().invoke(app, [name, "--seeds", "3"])
    assert done.exit_code == 2
    assert done.stderr == (
        f"error: command = '{name}'; allowed: in a checkout of the project only, as "
        "certify, reproduce, conform, study are\n"
    )
