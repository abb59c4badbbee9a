import json
from html.parser import HTMLParser
from operator import itemgetter

import pytest

from gpusched_experiments.report.estimate import Estimate
from gpusched_experiments.report.table import MONEY, PERCENT, TABLE_FORMATS, Column, Table, table_text
from refusals import refused

TABLE = Table.of(
    "Costs & <more>",
    (
        Column("policy", "policy", itemgetter(0)),
        Column("total_eur", "total €", itemgetter(1), MONEY),
        Column("saving", "saved, 100 %", itemgetter(2), PERCENT, interval=True),
    ),
    [
        ("agent:a_b", 1234.5, Estimate(0.25, (0.2, 0.3), 40)),
        ("<script>", float("nan"), Estimate(-0.5, None, 3)),
        ("edf", 2000.0, "reference"),
    ],
    ("A note: 5 % & <b>.",),
)


class Cells(HTMLParser):
    def __init__(self, html):
        super().__init__()
        self.rows, self.cells, self.tags = [], [], []
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in {"th", "td"}:
            self.rows[-1].append("")
            self.cells.append((tag, dict(attrs)))

    def handle_data(self, data):
        if self.rows and self.tags[-1] in {"th", "td", "span"} and data.strip():
            self.rows[-1][-1] += data


def test_json_has_numbers_in_full_and_null_for_what_is_none():
    document = json.loads(table_text(TABLE, "json"))
    assert document["columns"][1] == {"name": "total_eur", "title": "total €"}
    assert document["rows"] == [
        {"policy": "agent:a_b", "total_eur": 1234.5, "saving": {"value": 0.25, "low": 0.2, "high": 0.3, "seeds": 40}},
        {"policy": "<script>", "total_eur": None, "saving": {"value": -0.5, "low": None, "high": None, "seeds": 3}},
        {"policy": "edf", "total_eur": 2000.0, "saving": "reference"},
    ]
    assert document["notes"] == list(TABLE.notes)


def test_html_says_the_same_as_markdown_with_scopes_and_numbers_to_sort_by():
    html = table_text(TABLE, "html")
    cells = Cells(html)
    assert cells.rows == [["policy", "total\N{NO-BREAK SPACE}€", "saved, 100 %"], *TABLE.texts()]
    assert "script" not in cells.tags
    assert "<caption>Costs &amp; &lt;more&gt;</caption>" in html
    assert '<p class="note">A note: 5 % &amp; &lt;b&gt;.</p>' in html
    cells = Cells(table_text(TABLE, "html")).cells
    assert [(tag, attrs["scope"]) for tag, attrs in cells if "scope" in attrs] == [("th", "col")] * 3 + [
        ("th", "row")
    ] * 3
    assert [attrs["data-value"] for _, attrs in cells if "data-value" in attrs] == ["1234.5", "0.25", "-0.5", "2000.0"]


def test_latex_escapes_what_latex_would_take_for_its_own():
    assert table_text(TABLE, "tex") == (
        "\\begin{tabular}{lrr}\n\\toprule\npolicy & total \\texteuro{} & saved, 100 \\% \\\\\n\\midrule\n"
        "agent:a\\_b & 1,234.50 & +25.0\\% [+20.0\\%, +30.0\\%] \\\\\n"
        "$<$script$>$ & n/a & -50.0\\% \\\\\n"
        "edf & 2,000.00 & reference \\\\\n"
        "\\bottomrule\n\\end{tabular}\n"
        "% Costs & <more>. Needs the package booktabs.\n% A note: 5 % & <b>.\n"
    )


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("a\\b{c}", "a\\textbackslash{}b\\{c\\}"),
        ("50%_$#~^", "50\\%\\_\\$\\#\\textasciitilde{}\\textasciicircum{}"),
        ("[0, 1]", "{[0, 1]}"),
        ("CO₂ × 2", "CO$_2$ $\\times$ 2"),  # noqa: RUF001 - the sign itself
    ],
)
def test_latex_writes_every_sign_of_its_own_as_text(text, written):
    table = Table.of("t", (Column("a", "a", itemgetter(0)),), [(text,)])
    assert f"\\midrule\n{written} \\\\\n" in table_text(table, "tex")


def test_a_line_break_in_a_note_does_not_leave_the_comment():
    table = Table.of("t", (Column("a", "a", itemgetter(0)),), [("x",)], ("one\n\\input{two}",))
    assert "% one \\input{two}\n" in table_text(table, "tex")


@pytest.mark.parametrize("form", TABLE_FORMATS)
def test_every_format_ends_in_a_line_break(form):
    assert table_text(TABLE, form).endswith("\n")


def test_another_format_is_an_error_that_names_those_there_are():
    with refused("format", "xlsx", "one of md, csv, json, html, tex"):
        table_text(TABLE, "xlsx")
