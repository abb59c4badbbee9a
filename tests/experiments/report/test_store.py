from dataclasses import replace

import pytest

from gpusched_env.workload import load_scenario
from gpusched_experiments.report.cell import Cell
from gpusched_experiments.report.store import Store, stored_values
from refusals import refused

VALUES = {"jobs": 7, "energy_eur": 0.1 + 0.2, "gap": float("inf")}


def cell(seed, nodes=3):
    return Cell((("arrivals", "a, b"), ("nodes", nodes)), load_scenario("tiny"), "edf", seed)


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "cells.csv", ("arrivals", "nodes"))


def test_what_is_appended_is_read_back_to_the_last_digit(store):
    store.append("k0", cell(0), VALUES)
    store.append("k1", cell(1), {**VALUES, "jobs": 8})
    assert store.path.read_text() == (
        "key,arrivals,nodes,policy,seed,jobs,energy_eur,gap\n"
        'k0,"a, b",3,edf,0,7,0.30000000000000004,inf\n'
        'k1,"a, b",3,edf,1,8,0.30000000000000004,inf\n'
    )
    assert stored_values(store.path) == {"k0": VALUES, "k1": {**VALUES, "jobs": 8}}
    assert isinstance(stored_values(store.path)["k0"]["jobs"], int)


def test_a_last_line_that_was_cut_off_is_passed_over_wherever_it_was_cut(store):
    store.append("k0", cell(0), VALUES)
    store.append("k1", cell(1), VALUES)
    text = store.path.read_text()
    second = text.index("k1")
    for end in range(second, len(text)):
        store.path.write_text(text[:end])
        assert stored_values(store.path) == {"k0": VALUES}
    for end in range(text.index("k0")):
        store.path.write_text(text[:end])
        assert stored_values(store.path) == {}


def test_written_anew_it_holds_just_these_cells_and_none_is_no_file(store):
    store.append("k0", cell(0), VALUES)
    store.write([("k1", cell(1), VALUES)])
    assert stored_values(store.path) == {"k1": VALUES}
    store.write([])
    assert not store.path.exists()
    assert stored_values(store.path) == {}


def test_a_policy_that_a_spreadsheet_would_run_is_guarded_and_kept_as_it_is(store):
    store.append("k0", replace(cell(0), policy="=x"), VALUES)
    text = store.path.read_text()
    assert ",'=x,0," in text
    store.keep({"k0"})
    assert store.path.read_text() == text


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("policy,seed\n", "policy,seed"),
        ("key,policy,seed,jobs\nk0,edf,0,many\n", "line 2: k0,edf,0,many"),
        ("key,policy,seed,jobs\nk0,edf,0\n", "line 2: k0,edf,0"),
        ("\n\n", ""),
    ],
)
def test_a_foreign_file_is_refused_and_named(store, text, value):
    store.path.write_text(text)
    with refused(str(store.path), value):
        stored_values(store.path)


def test_a_file_that_is_no_text_is_refused(store):
    store.path.write_bytes(b"\xff\xfe\x00")
    with refused(str(store.path)):
        stored_values(store.path)
