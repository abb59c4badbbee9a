import json
import re
import sys

import pytest

from gpusched_env.errors import MissingExtraError
from gpusched_operations.html_report import Picture, ReportData, report_html
from gpusched_operations.html_report.document import plotly_script
from refusals import refused
from report_pages import Page, comparison, costs, ran

EVIL = "</script><img src=x onerror=alert(1)>&\"'"
SCRIPT = re.compile(r"<script>.*?</script>", re.DOTALL)


@pytest.fixture(scope="module")
def html():
    return report_html(comparison(scenario="name = 'x'", modelled=("Due dates are modelled.",)))


def test_the_page_has_its_question_verdict_table_figures_and_origin(html):
    page = Page(html)
    assert page.unclosed == []
    for text in (
        "What does each of 3 policies cost on 5 workloads", "edf is cheapest: 12.00 €", "saving vs fifo",
        "What every policy costs", "What every policy saves", "How busy the cluster is", "How long jobs take",
        "Who ran where", "Due dates are modelled.", "gpusched compare", "0-4", "Python 3.11.7", "name = 'x'",
    ):  # fmt: skip
        assert text in page.text, text
    assert len(page.all("figure")) == len(page.all("figcaption")) == 5


def test_the_page_loads_nothing(html):
    page = Page(html)
    for tag, attributes in page.elements:
        assert tag not in {"link", "iframe", "object", "embed", "base"}
        assert not {"src", "srcset", "background", "data"} & set(attributes), (tag, attributes)
    own = html.replace(plotly_script(), "")
    assert not re.search(r"https?://|@import|url\(|\bfetch\(|XMLHttpRequest|\bimport\(", own)
    (policy,) = (meta["content"] for meta in page.all("meta") if meta.get("http-equiv") == "Content-Security-Policy")
    assert policy.startswith("default-src 'none';")
    assert "http" not in policy


def test_plotly_is_in_the_page_once(html):
    assert html.count(plotly_script()) == 1


def test_every_figure_says_what_it_shows_and_every_table_is_a_table(html):
    page = Page(html)
    plots = [each for each in page.all("div") if each.get("class") == "chart"]
    assert [plot["role"] for plot in plots] == ["img"] * 5
    assert all(plot["aria-label"] for plot in plots)
    assert {each["scope"] for each in page.all("th")} == {"row", "col"}
    assert page.all("html") == [{"lang": "en"}]
    assert len(page.all("h1")) == len(page.all("caption")) == 1


def test_names_are_written_as_they_are_and_never_run():
    runs = costs(**{EVIL: [1.0] * 5, "edf": [2.0] * 5})
    provenance = {
        "command": EVIL,
        "platform": EVIL,
        "packages": {EVIL: EVIL},
        "facts": {"seeds": EVIL, "machine": EVIL},
    }
    data = comparison()
    evil = ReportData(
        title=EVIL, question=EVIL, tables=data.tables, runs=runs, reference="edf", recorded=data.recorded[:1],
        page=EVIL, modelled=(EVIL,), scenario=EVIL, provenance=provenance,
    )  # fmt: skip
    page = Page(report_html(evil))
    assert page.unclosed == []
    assert page.all("img") == []
    assert len(page.all("script")) == 7  # plotly, five figures, the page's own
    assert page.text.count(EVIL) >= 8


def test_runs_over_time_begin_with_the_cheapest_and_the_reference():
    names = ("fifo", "sept", "edf")
    html = report_html(comparison(recorded=tuple(ran(name) for name in names)))
    views = json.loads(re.search(r'id="data-gantt">(.*?)</script>', html).group(1))
    assert [view["label"] for view in views] == ["edf", "fifo", "sept"]  # fifo is the costliest


def test_without_intervals_the_figures_over_time_are_left_out_and_the_page_says_so():
    page = Page(report_html(comparison(recorded=())))
    assert len(page.all("figure")) == 2
    assert "The figures over time are left out" in page.text


def test_a_page_without_figures_needs_no_plotly(monkeypatch):
    monkeypatch.setitem(sys.modules, "plotly.offline", None)
    page = Page(report_html(ReportData(title="t", question="q", page="### Table\n\n| a |\n| --- |\n| 1 |")))
    assert len(page.all("script")) == 1
    assert len(page.all("table")) == 1


def test_figures_without_plotly_are_one_error_that_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "plotly.offline", None)
    with pytest.raises(MissingExtraError, match=r"gpusched-env\[report\]"):
        report_html(comparison())


@pytest.mark.parametrize("module", ["jinja2", "markdown_it"])
def test_a_page_without_what_writes_it_is_one_error_that_names_the_extra(module, monkeypatch):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingExtraError, match=r"gpusched-env\[report\]"):
        report_html(ReportData(title="t", question="q", page="text"))


def test_pictures_are_in_the_page():
    data = ReportData(title="t", question="q", pictures=(Picture("a.svg", b"<svg/>"), Picture("b.png", b"\x89PNG")))
    assert [image["src"] for image in Page(report_html(data)).all("img")] == [
        "data:image/svg+xml;base64,PHN2Zy8+",
        "data:image/png;base64,iVBORw==",
    ]


def test_equal_data_make_equal_pages():
    assert report_html(comparison()) == report_html(comparison())


def test_a_reference_that_was_not_compared_is_an_error():
    with refused("reference", "sts", "one of the policies compared: edf"):
        ReportData(title="t", question="q", runs=costs(edf=[1.0]), reference="sts")


def test_a_picture_of_another_kind_is_an_error():
    with refused("name", "a.html"):
        Picture("a.html", b"")
