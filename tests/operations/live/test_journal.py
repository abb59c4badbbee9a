"""Journals: what was appended is read, whatever a crash left; a file a day; states as what changed."""

from __future__ import annotations

import gzip
import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gpusched_env.errors import InputError, RunError
from gpusched_operations.live.journal import Journal, read_journal, read_states
from gpusched_operations.live.state import LiveCluster, LiveJob, LiveNode

NOON = 1_800_014_400.0  # 2027-01-15 12:00 UTC
DAY = 86_400.0


def clock_of(times: list[float]):
    """Return a clock that tells the first of these times, which the caller changes."""
    return lambda: times[0]


def kinds(path: Path) -> list[str]:
    return [line["kind"] for line in read_journal(path)]


def test_a_journal_begins_with_how_it_was_made_and_goes_on(tmp_path: Path) -> None:
    with Journal(tmp_path / "j", seed=7) as journal:
        journal.append("event", event="begin", text="naïve €\ud800")
    with Journal(tmp_path / "j") as journal:
        journal.append("round", read=1.5)
    head, first, second = read_journal(tmp_path / "j")
    assert head["kind"] == "head"
    assert head["packages"]["gpusched-env"]
    assert head["facts"] == {"seed": 7}
    assert (first["text"], second["read"]) == ("naïve €\ud800", 1.5)


def test_a_line_that_a_crash_tore_at_any_byte_is_no_error_and_is_cut_off(tmp_path: Path) -> None:
    with Journal(tmp_path / "j", clock=clock_of([NOON])) as journal:
        journal.append("event", event="one")
    file = next((tmp_path / "j").glob("*.jsonl"))
    whole = file.read_bytes()
    torn = json.dumps({"time": NOON, "kind": "event", "event": "two"}).encode() + b"\n"
    for cut in range(len(torn)):
        file.write_bytes(whole + torn[:cut])
        assert kinds(tmp_path / "j") == ["head", "event"]
        with Journal(tmp_path / "j", clock=clock_of([NOON])) as journal:
            journal.append("event", event="three")
        assert [line.get("event") for line in read_journal(tmp_path / "j")] == [None, "one", "three"]
    for cut in range(0, len(whole), 29):  # even in the head
        file.write_bytes(whole[:cut])
        with Journal(tmp_path / "j", clock=clock_of([NOON])) as journal:
            journal.append("round", read=NOON)
        assert kinds(tmp_path / "j")[0] == "head"
        assert kinds(tmp_path / "j")[-1] == "round"


def test_a_day_has_a_file_and_former_days_are_compressed(tmp_path: Path) -> None:
    now = [NOON]
    with Journal(tmp_path, clock=clock_of(now)) as journal:
        for day in range(3):
            now[0] = NOON + day * DAY
            journal.append("event", event=f"day {day}")
        now[0] = NOON  # the clock is set back by two days: the newest file goes on
        journal.append("event", event="back")
    names = sorted(file.name for file in tmp_path.glob("journal-*"))
    assert names == ["journal-2027-01-15.jsonl.gz", "journal-2027-01-16.jsonl.gz", "journal-2027-01-17.jsonl"]
    assert [line["event"] for line in read_journal(tmp_path) if line["kind"] == "event"] == [
        "day 0", "day 1", "day 2", "back",
    ]  # fmt: skip
    assert gzip.decompress((tmp_path / names[0]).read_bytes()).count(b"\n") == 2
    with Journal(tmp_path, clock=clock_of(now)) as journal:  # begun again, with the clock still back
        journal.append("event", event="again")
    assert [line["event"] for line in read_journal(tmp_path) if line["kind"] == "event"][-1] == "again"


def test_only_one_writes(tmp_path: Path) -> None:
    with Journal(tmp_path), pytest.raises(RunError, match="another process writes"):
        Journal(tmp_path)
    Journal(tmp_path).close()


def test_what_is_no_journal_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="gpusched slurm watch"):
        list(read_journal(tmp_path))
    (tmp_path / "journal-2027-01-15.jsonl").write_text('{"time": 1, "kind": "head"}\n{"kind": "event"}\n')
    with pytest.raises(InputError, match="line 2"):
        list(read_journal(tmp_path))
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="a folder"):
        Journal(tmp_path / "file")


jobs = st.builds(
    LiveJob,
    id=st.sampled_from(["1", "2", "3_1"]),
    name=st.sampled_from(["", "a"]),
    comment=st.text(max_size=3),
    phase=st.sampled_from(["pending", "running", "ending", "ended"]),
    start_s=st.none() | st.floats(0, 10),
    gpus=st.integers(0, 3),
    holds=st.sampled_from([(), (("v1", 2),), (("v1", 1), ("v2", 1))]),
    gpu_numbers=st.sampled_from([(), (("v1", (0, 1)),)]),
)
nodes = st.builds(
    LiveNode,
    name=st.sampled_from(["v1", "v2"]),
    gpu_type=st.sampled_from(["", "v100"]),
    gpus=st.integers(0, 4),
    on=st.booleans(),
    partitions=st.sampled_from([(), ("gpu", "all")]),
)
states = st.builds(
    lambda nodes, jobs: LiveCluster("slurm", 0.0, tuple(nodes), tuple(jobs)),
    st.lists(nodes, unique_by=lambda node: node.name, max_size=2),
    st.lists(jobs, unique_by=lambda job: job.id, max_size=3),
)


def in_order(cluster: LiveCluster) -> tuple[object, ...]:
    return cluster.read_s, sorted(cluster.nodes, key=lambda n: n.name), sorted(cluster.jobs, key=lambda j: j.id)


@given(st.lists(st.tuples(states, st.booleans()), min_size=1, max_size=6))
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_states_are_read_as_they_were_and_only_changes_are_written(
    tmp_path_factory: pytest.TempPathFactory, given_states: list[tuple[LiveCluster, bool]]
) -> None:
    path, now = tmp_path_factory.mktemp("j"), [NOON]
    written: list[LiveCluster] = []
    journal = Journal(path, clock=clock_of(now))
    last = None
    for cluster, again in given_states:
        now[0] += 0.4 * DAY
        known = replace(cluster, read_s=now[0])
        if again:  # the command is started anew
            journal.close()
            journal = Journal(path, clock=clock_of(now))
        line = journal.append_state(known)
        if line is None:
            assert last is not None
            assert in_order(replace(last, read_s=now[0])) == in_order(known)
        else:
            written.append(known)
            last = known
    assert journal.append_state(known) is None  # nothing has changed since
    journal.close()
    assert [in_order(each) for each in read_states(path)] == [in_order(each) for each in written]
