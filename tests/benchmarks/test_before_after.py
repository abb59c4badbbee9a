"""The present sources beside those of an earlier commit: what does not depend on how fast the machine is."""

from __future__ import annotations

import signal
import subprocess
from pathlib import Path

import pytest

from benchmarks import __main__ as command
from benchmarks import before_after, either_tree, trees
from benchmarks.before_after import Case
from benchmarks.child import REPOSITORY
from benchmarks.figure import at_least
from benchmarks.table import render
from refusals import refused

needs_git = pytest.mark.skipif(not (REPOSITORY / ".git").exists(), reason="needs the repository's history")

SMALL = {
    "rounds": ("fifo", "tiny", "jobs.count=4"),
    "steps": (),
    "vector": ("2", "3", "mean"),
}


def git(folder: Path, *arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=folder, check=True, capture_output=True, text=True).stdout  # noqa: S607


@pytest.fixture
def plain_python(monkeypatch):
    """Other processes compile nothing: that would take longer than what they do."""
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")


@pytest.mark.parametrize("name", either_tree.MEASUREMENTS)
def test_every_measurement_gives_seconds(name, monkeypatch):
    for constant in ("ROUNDS", "STEPS", "WALKS"):
        monkeypatch.setattr(either_tree, constant, 2)
    measure = either_tree.MEASUREMENTS[name](*SMALL[name])
    assert measure() > 0.0
    assert measure() > 0.0


@needs_git
@pytest.mark.parametrize(("number", "raised"), [(signal.SIGINT, KeyboardInterrupt), (signal.SIGTERM, SystemExit)])
def test_a_commit_is_checked_out_beside_the_present_sources_and_removed_even_after_a_signal(number, raised):
    def interrupted() -> None:
        with trees.checked_out("HEAD") as tree:
            places.append(tree)
            assert (tree / "gpusched_env/__init__.py").is_file()
            assert tree != REPOSITORY
            signal.raise_signal(number)

    places: list[Path] = []
    previous = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(raised):
            interrupted()
    finally:
        signal.signal(signal.SIGINT, previous)
    assert not places[0].exists()
    assert not places[0].parent.exists()
    assert str(places[0]) not in git(REPOSITORY, "worktree", "list")


@needs_git
def test_an_unknown_commit_is_one_clear_error(tmp_path, capsys):
    with refused("before", "nowhere"):
        before_after.measure("nowhere")
    with pytest.raises(SystemExit) as stopped:
        command.main(["before-after", "--before", "nowhere", "--out", str(tmp_path / "figures.json")])
    assert stopped.value.code == 2
    assert "a commit of this repository" in capsys.readouterr().err


@needs_git
@pytest.mark.usefixtures("plain_python")
def test_both_trees_are_measured_and_counted_in_one_run():
    case = Case("rounds of fifo: tiny", ("rounds", "fifo", "tiny"), at_least(0.0), pairs=1)
    other = Case("noise", ("vector", "2", "2", "median"), before=False, pairs=2)
    figures = {figure.name: figure for figure in before_after.measure("HEAD", (case, other), 1, 1, 1)}
    assert {name: len(figures[name].values) for name in ("cold start", "warm start", case.name, other.name)} == {
        "cold start": 1,
        "warm start": 1,
        case.name: 1,
        other.name: 2,
    }
    assert figures[case.name].met is True
    assert all(value > 0.0 for name in (case.name, other.name) for value in figures[name].values)
    assert figures[other.name].note == before_after.NOISE
    assert "rounds of fifo: tiny" in render("Title", list(figures.values()))


@pytest.mark.usefixtures("plain_python")
def test_a_process_measures_the_sources_of_its_tree(tmp_path):
    package = tmp_path / "gpusched_env"
    package.mkdir()
    (package / "__init__.py").write_text('raise ImportError("this one")\n')
    worker = trees.Worker(tmp_path, tmp_path, ("steps",))
    with pytest.raises(RuntimeError, match="the measurement failed: steps in"):
        worker.wait()
    worker.close()
