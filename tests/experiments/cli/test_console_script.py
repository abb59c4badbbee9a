import sys

import pytest
from typer.testing import CliRunner

from gpusched_experiments.cli.app import FROM_A_CHECKOUT, Commands, app
from gpusched_experiments.cli.main import run


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
