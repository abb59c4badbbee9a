import sys
import tomllib
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest
from typer.testing import CliRunner

from gpusched_experiments.cli.app import ENTRY_POINTS, FROM_A_CHECKOUT, OWN_COMMANDS, Commands, app, command_places
from gpusched_experiments.cli.main import run

ROOT = Path(__file__).parents[3]


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


@pytest.fixture
def packages(monkeypatch):
    """Give the function that sets the packages that are there besides this one: by entry point, and by name."""
    found = Commands.get_command.__globals__
    places = found["command_places"]

    def set_to(points: list[EntryPoint], names: tuple[str, ...]) -> None:
        monkeypatch.setitem(found, "entry_points", lambda group: [point for point in points if point.group == group])
        monkeypatch.setitem(found, "find_spec", lambda name: name if name in names else None)
        places.cache_clear()

    yield set_to
    places.cache_clear()


@pytest.mark.parametrize("name", FROM_A_CHECKOUT)
def test_a_command_that_is_not_installed_says_where_it_runs(name, packages):
    packages([], ())
    done = CliRunner().invoke(app, [name, "--seeds", "3"])
    assert done.exit_code == 2
    assert done.stderr == (
        f"error: command = '{name}'; allowed: in a checkout of the project only, as "
        "certify, reproduce, conform, study are\n"
    )


OPERATIONS = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["entry-points"][ENTRY_POINTS]
POINTS = [EntryPoint(name, value, ENTRY_POINTS) for name, value in OPERATIONS.items()]
NAMES = {"report", "serve", "forecast", "slurm", "progress", "warm-up"}


@pytest.mark.parametrize(("points", "names"), [(POINTS, ()), ([], ("gpusched_operations",))], ids=["points", "names"])
def test_commands_of_operations_are_found_by_entry_points_and_in_a_checkout_by_name(points, names, packages):
    packages(points, names)
    assert command_places().keys() == {*OWN_COMMANDS, *FROM_A_CHECKOUT, *NAMES}
    for words in (["report"], ["slurm", "release"]):
        assert "Usage" in CliRunner().invoke(app, [*words, "--help"]).stdout


def test_without_the_package_its_commands_are_not_there(packages):
    packages([], ())
    assert "No such command 'serve'" in CliRunner().invoke(app, ["serve"]).stderr
