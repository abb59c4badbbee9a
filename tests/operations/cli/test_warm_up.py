"""`gpusched warm-up` compiles what is not on the disk yet, and finds out at once when nothing is left to do."""

from __future__ import annotations

import numba
import pytest

from commands import gpusched, succeeds
from gpusched_agents.any_policy import known_policies
from gpusched_experiments.report import warm_up as record
from gpusched_experiments.report.warm_up import warm_up_steps
from gpusched_operations.cli import warm_up as module

compiled_only = pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="NUMBA_DISABLE_JIT is set: nothing is kept")


@pytest.fixture
def noted(tmp_path, monkeypatch):
    """Keep the note of what is compiled in a folder of its own."""
    monkeypatch.setattr(record, "_file", lambda: tmp_path / record.NAME)
    return tmp_path / record.NAME


def warm_up(*options: str) -> str:
    done = succeeds("warm-up", *options)
    return done.stdout


@compiled_only
def test_it_says_how_much_was_compiled_and_where_and_the_second_time_that_nothing_is_to_do(noted, monkeypatch):
    def compiling() -> None:
        numba.njit(lambda x: x + 1)(1)

    monkeypatch.setattr(module, "steps_of", lambda _: [("one", compiling), ("two", compiling)])
    assert warm_up().startswith("compiled 2 kernels in ")
    assert warm_up().startswith("nothing to do: all is compiled, and kept under /")
    noted.unlink()
    assert warm_up().startswith("compiled 2 kernels")


class Process:
    """In place of a process: it runs until it is ended."""

    def __init__(self, words: list[str], **_: object) -> None:
        self.words, self.ended = words, False

    def kill(self) -> None:
        self.ended = True

    def communicate(self) -> None:
        assert self.ended


@compiled_only
@pytest.mark.parametrize(("cores", "started"), [(1, 0), (2, 1)])
def test_another_process_compiles_too_from_the_first_kernel_on_and_ends_with_the_body(cores, started, monkeypatch):
    processes = []
    monkeypatch.setattr(record, "usable_cores", lambda: cores)
    monkeypatch.setattr(record.subprocess, "Popen", lambda *a, **b: processes.append(Process(*a, **b)) or processes[-1])
    with record.two_processes(["edf"]):
        assert not processes
        numba.njit(lambda x: x + 1)(1)
        numba.njit(lambda x: x + 2)(1)
        assert [(process.ended, process.words[-1]) for process in processes] == [(False, "edf")] * started
    assert all(process.ended for process in processes)


@compiled_only
def test_what_was_noted_of_other_code_does_not_count(noted, monkeypatch):
    record.note_compiled(["fifo"])
    record.note_compiled(["edf"])
    assert record.is_compiled(["edf", "fifo"])
    assert not record.is_compiled(["edf", "sts"])
    monkeypatch.setattr(record, "_stamp", lambda: (0.0, 1))
    assert not record.is_compiled(["edf"])
    noted.write_text("[]", encoding="utf-8")
    assert not record.is_compiled(["edf"])


def test_all_policies_and_agents_are_compiled_unless_some_are_named():
    names = [name for name, _ in warm_up_steps()]
    assert set(known_policies()) < set(names)
    assert [name for name, _ in warm_up_steps(("edf",))] == [*names[: names.index(known_policies()[0])], "edf"]


def test_every_step_runs():
    for _, step in warm_up_steps(("fifo", "agent:default")):
        step()


def test_a_policy_that_there_is_not_is_named():
    done = gpusched("warm-up", "--policies", "nobody")
    assert done.exit_code == 2
    assert done.stderr.startswith("error: policy = 'nobody'")
