from pathlib import Path

import pytest

from gpusched_operations.html_report.document import markdown_html
from report_pages import Page

PAGES = sorted(Path("docs/results").glob("*/table.md"))


def test_headings_paragraphs_lists_and_code():
    html = markdown_html("# Top\n\n### Sub & more\n\none\ntwo **bold** `a<b`\n\n- x\n- y\n")
    assert html.replace("\n", "") == (
        "<h2>Top</h2><h3>Sub &amp; more</h3><p>one<br>two <strong>bold</strong> <code>a&lt;b</code></p>"
        "<ul><li>x</li><li>y</li></ul>"
    )


def test_a_table_has_its_headings_its_alignment_and_numbers_to_sort_by():
    html = markdown_html("| a | b |\n| --- | ---: |\n| x | +4.0% [+1.0%, +7.0%] |\n| 2 d 3 h | 1,234 |").replace(
        "\n", ""
    )
    assert '<thead><tr><th scope="col">a</th><th scope="col" class="number">b</th></tr></thead>' in html
    assert '<td>x</td><td class="number" data-value="4.0">+4.0% [+1.0%, +7.0%]</td>' in html
    assert '<td>2 d 3 h</td><td class="number" data-value="1234.0">1,234</td>' in html


def test_a_long_table_is_folded():
    rows = "\n".join(f"| {i} |" for i in range(101))
    assert markdown_html(f"| a |\n| --- |\n{rows}").startswith("<details><summary>101 rows</summary>")


def test_only_links_to_the_web_are_links():
    html = markdown_html("[tracks](../../tracks.md) [site](https://example.org/a?b&c) [x](javascript:alert(1))")
    assert '<a href="https://example.org/a?b&amp;c">site</a>' in html
    assert html.count("<a ") == 1


@pytest.mark.parametrize("evil", ["<img src=x>", "`<b>`", "**<i>**", "| <u> |\n| --- |\n| <s> |", "# <h1>", "- <li>"])
def test_everything_is_escaped(evil):
    assert not {name for name, _ in Page(markdown_html(evil)).elements} & {"img", "b", "i", "u", "s", "h1"}


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.parent.name)
def test_every_result_page_is_written_with_all_its_rows(path):
    text = path.read_text(encoding="utf-8")
    page = Page(markdown_html(text))
    assert page.unclosed == []
    rules = sum(set(line) <= set("|-: ") for line in text.splitlines() if line.startswith("|"))
    assert len(page.all("tr")) == sum(line.startswith("|") for line in text.splitlines()) - rules
    assert "| --" not in page.text
