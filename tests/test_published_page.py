"""The page of published figures has the numbers and verdicts of the stored tables, and commands that there are."""

import re
from pathlib import Path
from typing import NamedTuple

import pytest
from test_docs import anchor

from gpusched_reproductions.cli import reproduce
from gpusched_reproductions.conform import NAMES as CONFORM

RESULTS = Path(__file__).parents[1] / "docs/results"
PAGE = (RESULTS / "published.md").read_text(encoding="utf-8")
SOURCES = dict(re.findall(r"^## (.*)\n((?:(?!## ).*\n)*)", PAGE, re.MULTILINE))
VERDICTS = re.findall(r"^\| \*(.*?)\* \|", PAGE.split("\n## ")[0], re.MULTILINE)
NOT_HERE = {"no public data", "not run here"}
NUMBER = r"(?<![\w.-])-?\d[\d,]*(?:\.\d+)?(?:e-?\d+)?"
COMMANDS = {"reproduce": reproduce.NAMES, "conform": CONFORM}


def cells(text: str) -> list[list[str]]:
    lines = [line for line in text.replace("\N{MINUS SIGN}", "-").splitlines() if re.match(r"\| (?!---|:)", line)]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]


class Row(NamedTuple):
    source: str
    verdict: str
    what: str
    published: str
    here: str
    command: str

    @property
    def name(self) -> str:
        return re.match(r"\*(.*?)\*", self.verdict)[1]


ROWS = [Row(source, *row) for source, text in SOURCES.items() for row in cells(text) if row[0] != "verdict"]


def numbers(text: str) -> list[str]:
    return [each.rstrip(",") for each in re.findall(NUMBER, re.sub(r"\]\(.*?\)", "", text).replace("+", ""))]


def linked(text: str) -> str:
    """Return the sections to which a cell links."""
    found = []
    for file, name in re.findall(r"\]\((\S+?)#(\S+?)\)", text):
        parts = re.split(r"^#+ (.*)$", (RESULTS / file).read_text(encoding="utf-8"), flags=re.MULTILINE)
        found.append(
            {re.sub("-+", "-", anchor(h)): part for h, part in zip(parts[1::2], parts[2::2], strict=True)}[name]
        )
    return "\n".join(found)


def predicted(text: str) -> list[list[str]]:
    """Return kind, published, ours and met of the rows of a section of the table of systems."""
    return [[row[1], row[2], row[3], row[5].strip("*")] for row in cells(text) if len(row) == 7]


def test_numbers_are_read():
    assert numbers("ResNet-50: **-19.2** % [-25.2, 1,168]; v3, 0.5 ([a](b.md#c-7))") == [
        "-19.2",
        "-25.2",
        "1,168",
        "0.5",
    ]
    assert len(SOURCES) == 8
    assert len(VERDICTS) == 7


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.source}: {row.what}")
def test_a_row_has_numbers_of_the_linked_table_and_a_command(row):
    assert row.name in VERDICTS
    assert not set(numbers(row.here)) - set(numbers(linked(row.here)))
    assert numbers(row.here) or row.name in NOT_HERE
    if row.command == "\N{EN DASH}":
        assert row.name in NOT_HERE
    else:
        program, subcommand, experiment = row.command.strip("`").split()
        assert program == "gpusched"
        assert experiment in COMMANDS[subcommand]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.source}: {row.what}")
def test_a_verdict_on_a_system_follows_from_its_table(row):
    name, here = row.name, row.here
    if "systems/" not in here or name in {"no public data", "not comparable"}:
        return
    table = predicted(linked(here))
    bold = [text.startswith("**") for text in re.findall(rf"\*\*{NUMBER}|{NUMBER}", re.sub(r"\(.*", "", here))]
    pairs = list(zip(numbers(row.published), numbers(here), bold, strict=True))
    found = [next(each for each in table if each[1:3] == [theirs, ours]) for theirs, ours, _ in pairs]
    assert bold == [each[3] == "no" for each in found]
    met = {each[3] for each in found}
    fitted = {each[0] for each in found} == {"fitted"}
    assert name == ("fitted" if fitted else {"yes": "agrees", "no": "differs"}.get("".join(met), "partly"))
    assert met <= {"yes", "no"}


def test_each_prediction_of_a_system_has_a_row_and_the_verdicts_are_counted():
    shown = {pair for row in ROWS for pair in zip(numbers(row.published), numbers(row.here), strict=False)}
    table = predicted((RESULTS / "systems/table.md").read_text(encoding="utf-8"))
    predictions = [each for each in table if each[0] == "prediction"]
    assert len(predictions) > 90
    assert [each for each in predictions if (each[1], each[2]) not in shown] == []
    counted = {re.search(r"\w+", name)[0]: counts for name, *counts in cells(PAGE.split("\n## ")[0])[-len(SOURCES) :]}
    assert counted.keys() == SOURCES.keys()
    for source, counts in counted.items():
        found = [row.name for row in ROWS if row.source == source]
        assert counts == [str(found.count(name)) for name in VERDICTS]
