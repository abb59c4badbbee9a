"""What a notebook shows of an instance, a scenario and a result is a small table, and nothing in it is markup."""

from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest

from gpusched_baselines import edf
from gpusched_env import load_scenario, make_instance, simulate
from gpusched_env.notebook import dotted_names, facts_table
from gpusched_env.simulator.result import MOST_NODES, busy_chart

SCENARIO = load_scenario("tiny").replace({"cluster.nodes": 4, "jobs.count": 7})
INSTANCE = make_instance(SCENARIO, 0)
RESULT = simulate(INSTANCE, edf())


class Reader(HTMLParser):
    def __init__(self):
        super().__init__()
        self.open, self.words, self.seen = [], [], []

    def handle_starttag(self, tag, attrs):
        self.seen.append(tag)
        self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.seen.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.words.append(data)


def read(html):
    reader = Reader()
    reader.feed(html)
    assert not reader.open
    return reader


@pytest.mark.parametrize("value", [INSTANCE, SCENARIO, RESULT])
def test_it_is_well_formed_and_small(value):
    html = value._repr_html_()
    assert read(html).seen[:3] == ["div", "strong", "table"]
    assert len(html) < 20_000


def test_it_says_the_sizes_and_the_costs():
    assert "4: 2 of 8 x V100, 1 of 8 x A100, 1 of 4 x T4" in read(INSTANCE._repr_html_()).words
    assert f"{RESULT.total_eur:,.2f} €" in read(RESULT._repr_html_()).words
    words = read(SCENARIO._repr_html_()).words
    assert words[words.index("cluster.nodes") + 1] == "4"
    assert "prices.pue" not in words


@pytest.mark.parametrize(
    "value",
    [
        replace(INSTANCE, name="<script>x</script>"),
        SCENARIO.replace({"name": "<script>x</script>", "description": "a & b < c"}),
        replace(RESULT, policy="<script>x</script>"),
    ],
)
def test_names_are_not_taken_for_markup(value):
    html = value._repr_html_()
    assert "<script>" not in html
    assert any("<script>x</script>" in word for word in read(html).words)


def test_the_chart_has_a_row_for_each_node_and_says_when_there_are_more():
    chart = read(busy_chart(INSTANCE, RESULT.log))
    assert chart.seen.count("path") == 4
    assert [word for word in chart.words if word.startswith("0:")] == ["0: 8 x V100"]
    many = make_instance(load_scenario("burst"), 0)
    log = np.array([[0, 0, 0, 0.0, 0.0, 10.0, 1.0, -1, -1][: RESULT.log.shape[1]]])
    assert read(busy_chart(many, log)).seen.count("path") == MOST_NODES
    assert f"the first {MOST_NODES} of 100 nodes" in busy_chart(many, log)
    assert busy_chart(many, log[:0]) == ""


def test_the_area_rises_by_the_gpus_that_are_held():
    first = RESULT.log[RESULT.log[:, 1] == 0][:1]
    gpus = INSTANCE.configurations[int(first[0, 2])].gpus_per_node
    assert f"V{14 - 14 * gpus / 8:.1f}" in busy_chart(INSTANCE, first)


def test_nested_settings_have_dotted_names():
    assert list(dotted_names({"a": 1, "b": {"c": 2, "d": {"e": 3}}})) == [("a", 1), ("b.c", 2), ("b.d.e", 3)]
    assert "<table></table>" in facts_table("nothing", [])
