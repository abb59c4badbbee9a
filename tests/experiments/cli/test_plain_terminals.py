"""Streams that know only ASCII, pipes, and progress without a terminal."""

import io

import pytest
from rich.console import Console

from gpusched_experiments.cli import progress
from gpusched_experiments.cli.terminal import note_if_one_seed, output, print_table, write_plainly
from gpusched_experiments.report.table import Column, Table

TABLE = Table.of("T", (Column("a", "cost €", lambda row: row), Column("b", "more", lambda _: "x")), ["1 €", "12 €"])


def test_a_stream_that_knows_only_ascii_gets_other_characters_unless_it_has_its_own_way():
    stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    write_plainly(stream)
    stream.write("3 € · 4 \N{MULTIPLICATION SIGN} 5 ≥ 6 … 中")
    stream.flush()
    assert stream.buffer.getvalue() == b"3 EUR * 4 x 5 >= 6 ... ?"
    stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    write_plainly(stream)
    print_table(Console(file=stream, width=80), TABLE)
    stream.flush()
    assert b"12 EUR" in stream.buffer.getvalue()
    stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii", errors="replace")
    write_plainly(stream)
    assert stream.errors == "replace"


def test_lines_of_a_table_in_a_pipe_have_no_blanks_at_their_ends():
    stream = io.StringIO()
    print_table(Console(file=stream, width=80), TABLE, title="A title")
    lines = stream.getvalue().splitlines()
    assert lines[0] == "A title"
    assert any("12 €" in line for line in lines)
    assert [line for line in lines if line != line.rstrip()] == []


def test_output_without_a_terminal_is_as_wide_as_columns_says_or_else_wide(monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    assert output().width == 100
    monkeypatch.delenv("COLUMNS")
    assert output().width == 190


@pytest.mark.parametrize(
    ("seeds", "said"), [("40", "40 seeds are 0-39"), ("0-39", ""), ("0", ""), ("3,5", ""), (None, "")]
)
def test_a_lone_seed_is_explained(capsys, seeds, said):
    note_if_one_seed(seeds)
    told = capsys.readouterr().err
    assert said in told
    assert bool(told) == bool(said)


def test_without_a_terminal_progress_is_a_line_now_and_then(monkeypatch):
    clock, stream = [0.0], io.StringIO()
    monkeypatch.setattr(progress, "monotonic", lambda: clock[0])
    monkeypatch.setattr(progress, "progress_output", lambda: Console(file=stream))
    bar = progress.count_bar("edf", 30)
    for seconds in range(25):
        clock[0] = float(seconds)
        bar.advance()
    assert stream.getvalue() == "edf: 11 of 30\nedf: 21 of 30\n"
