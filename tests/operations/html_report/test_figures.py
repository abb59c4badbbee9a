import json
from dataclasses import replace

import numpy as np
import plotly.graph_objects as go
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpusched_baselines.registry import make_policy
from gpusched_env.mechanisms.prices.model import PriceSeries
from gpusched_env.rendering.lanes import Rows
from gpusched_env.rendering.timeline import Timeline
from gpusched_env.simulator import simulate
from gpusched_experiments.report.statistics import summarise
from gpusched_operations.html_report import gantt
from gpusched_operations.html_report import over_time as axes
from gpusched_operations.html_report.costs import cost_drawing, savings_drawing
from gpusched_operations.html_report.gantt import gantt_drawing
from gpusched_operations.html_report.over_time import completion_drawing, cost_rate, usage_drawing
from gpusched_operations.html_report.report_data import script_json
from report_pages import costs, ran, summary
from small_instances import small_random_instance

RUNS = costs(edf=[10.0, 11, 12, 13, 14], fifo=[20.0, 22, 24, 26, 28], sept=[15.0, 10, 14, 13, 13])


def drawings():
    results = (ran("edf"), ran("fifo"))
    timelines = [Timeline.of(result) for result in results]
    return [
        cost_drawing(summarise(RUNS, "fifo"), RUNS),
        savings_drawing(RUNS, "fifo"),
        usage_drawing(results, timelines),
        completion_drawing(results),
        gantt_drawing(results, timelines),
    ]


def as_plotly_has_it(value):
    """Put a colour where the page's script puts one."""
    if isinstance(value, str) and value.startswith(("var:", "hue:")):
        return "#123456"
    if isinstance(value, list | tuple):
        return [as_plotly_has_it(each) for each in value]
    return {name: as_plotly_has_it(each) for name, each in value.items()} if isinstance(value, dict) else value


@pytest.mark.parametrize("drawing", drawings(), ids=lambda drawing: drawing.name)
def test_every_figure_keeps_to_plotlys_own_schema(drawing):
    for view in drawing.views:
        spec = as_plotly_has_it(json.loads(json.dumps(view.spec(), allow_nan=False)))
        looks = [{"type": "path", "path": "M0,0", **boxes["look"]} for boxes in spec["boxes"]]
        shapes = [*spec["layout"].get("shapes", []), *looks]
        go.Figure(spec["traces"], {**spec["layout"], "shapes": shapes})  # raises on what plotly does not know


@pytest.mark.parametrize("drawing", drawings(), ids=lambda drawing: drawing.name)
def test_every_figure_says_in_words_what_it_shows(drawing):
    assert "edf" in drawing.alt
    assert drawing.caption.endswith(".")


def test_bars_of_cost_are_sorted_and_have_the_mean_of_each_part():
    runs = (
        summary("costly", 0, 3.0, 4.0),
        summary("cheap", 0, 1.0, 0.5),
        summary("costly", 1, 5.0, 4.0),
        summary("cheap", 1, 2.0, 0.5),
    )
    energy, tardiness, *_ = cost_drawing(summarise(runs, "costly"), runs).views[0].traces
    assert (energy["y"], energy["x"], tardiness["x"]) == (["cheap", "costly"], [1.5, 4.0], [0.5, 4.0])


def test_a_policy_that_costs_a_multiple_gets_a_second_view_up_close():
    assert len(cost_drawing(summarise(RUNS, "fifo"), RUNS).views) == 1
    runs = (summary("cheap", 0, 1.0), summary("late", 0, 1.0, 99.0))
    whole, close = (view.layout["xaxis"]["range"][1] for view in cost_drawing(summarise(runs, "late"), runs).views)
    assert whole > 100
    assert 1 < close < 2


def test_whiskers_reach_to_the_ends_of_the_interval():
    (row,) = summarise(costs(edf=[1.0, 2, 3, 4, 5]), "edf")
    whiskers = cost_drawing([row], costs(edf=[1.0])).views[0].traces[2]
    low, high = row.total_interval_eur
    assert whiskers["x"][0] + whiskers["error_x"]["array"][0] == pytest.approx(high)
    assert whiskers["x"][0] - whiskers["error_x"]["arrayminus"][0] == pytest.approx(low)


def test_savings_can_be_seen_against_every_policy_the_reference_first():
    drawing = savings_drawing(RUNS, "fifo")
    assert [view.label for view in drawing.views] == ["fifo", "edf", "sept"]
    against_fifo, against_edf, _ = (view.traces[0] for view in drawing.views)
    assert against_fifo["x"] == pytest.approx([0.5, 1 - 65 / 120])
    assert against_edf["x"] == pytest.approx([1 - 65 / 60, -1.0])


def test_one_policy_saves_nothing_against_another():
    assert savings_drawing(costs(edf=[1.0] * 5), "edf") is None


def test_a_policy_that_cost_nothing_gives_no_share():
    drawing = savings_drawing(costs(free=[0.0] * 5, edf=[1.0] * 5), "free")
    assert drawing.views[0].traces[0]["x"] == [None]
    assert "n/a" in drawing.alt


def test_the_distribution_of_completion_counts_jobs_by_the_time_they_took():
    (trace,) = completion_drawing([ran()]).views[0].traces
    assert (trace["x"], trace["y"]) == ([3600.0, 7200.0], [0.5, 1.0])
    assert trace["hovertext"][0] == "edf<br>50% of the jobs within 1 h"


def test_two_jobs_on_a_node_cost_two_euros_an_hour_then_one():
    times, rate = cost_rate(ran(), Timeline.of(ran()))
    assert (times.tolist(), rate.tolist()) == ([0.0, 3600.0, 7200.0], pytest.approx([2.0, 1.0, 0.0]))


@pytest.mark.parametrize("seed", range(6))
def test_the_cost_rate_over_time_sums_to_the_energy_cost_shares_and_several_nodes_too(seed):
    result = ran("fifo", small_random_instance(seed, jobs=6, kinds=True))
    times, rate = cost_rate(result, Timeline.of(result))
    assert float((rate[:-1] * np.diff(times)).sum()) / 3600.0 == pytest.approx(result.energy_eur, rel=1e-6)


def test_a_run_that_is_billed_otherwise_has_no_cost_rate_and_the_figure_says_so():
    result = replace(ran(), energy_kwh=2.0 * ran().energy_kwh)
    timeline = Timeline.of(result)
    assert cost_rate(result, timeline) is None
    drawing = usage_drawing([result], [timeline])
    assert "The cost rate is left out" in drawing.caption
    assert len(drawing.views[0].traces) == 1


def test_the_busy_share_is_that_of_all_gpus():
    busy = usage_drawing([ran()], [Timeline.of(ran())]).views[0].traces[0]
    assert (busy["x"], busy["y"]) == ([0.0, 1.0, 2.0], [1.0, 0.5, 0.0])  # hours


@given(st.lists(st.tuples(st.floats(0.01, 10), st.floats(0, 5)), min_size=2, max_size=60))
def test_a_thinned_line_keeps_the_sum_over_time(steps):
    times, values = np.cumsum([length for length, _ in steps]), np.array([value for _, value in steps])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(axes, "MOST_STEPS", 10)
        fewer, means = axes.thinned(times, values)
    assert len(fewer) == min(10, len(times))
    assert (means[:-1] * np.diff(fewer)).sum() == pytest.approx((values[:-1] * np.diff(times)).sum())


def test_gantt_bars_say_who_held_what_from_when_to_when():
    view = gantt_drawing([ran()], [Timeline.of(ran())]).views[0]
    bars = {boxes.labels[0]: boxes for boxes in view.boxes if boxes.labels}
    assert bars["1"].edges == [[0.0], [1.0], [1.06], [1.94]]  # hours
    assert bars["1"].texts == [
        "job 1\n1 x V on node 0 (GPU 1)\nfrom 0 s to 1 h (1 h)\ndue at 30 min, ended 30 min late"
    ]
    assert bars["0"].texts[0].endswith("from 0 s to 2 h (2 h)\ndue at 4 h, ended 2 h early")
    late = {boxes.look["name"]: boxes.edges for boxes in view.boxes if not boxes.labels}
    assert late == {"after the due date": [[0.5], [1.0], [1.06], [1.94]], "late job": bars["1"].edges}


def test_due_dates_far_beyond_the_end_are_left_out():
    due = next(
        trace for trace in gantt_drawing([ran()], [Timeline.of(ran())]).views[0].traces if trace["name"] == "due date"
    )
    assert due["x"] == [0.5]


def test_views_share_one_axis_so_that_policies_can_be_compared():
    timelines = [Timeline.of(ran("edf")), replace(Timeline.of(ran("fifo")), now_s=9 * 3600.0)]
    one, other = gantt_drawing([ran(), ran()], timelines).views
    assert one.layout["xaxis"]["range"] == other.layout["xaxis"]["range"]
    assert one.layout["uirevision"] == other.layout["uirevision"]


def test_runs_with_too_many_bars_are_left_out_and_named(monkeypatch):
    timelines = [Timeline.of(ran("edf")), Timeline.of(ran("fifo"))]
    monkeypatch.setattr(gantt, "MOST_BARS", 3)
    drawing = gantt_drawing([ran(), ran()], timelines)
    assert [view.label for view in drawing.views] == ["edf"]
    assert "Without fifo, whose intervals are too many to draw." in drawing.caption
    monkeypatch.setattr(gantt, "MOST_BARS", 1)
    assert gantt_drawing([ran(), ran()], timelines) is None


@pytest.mark.parametrize("seed", range(8))
def test_no_two_bars_of_a_moment_lie_on_each_other(seed):
    timeline = Timeline.of(ran("fifo", small_random_instance(seed, jobs=6, kinds=True)))
    rows = Rows.of(timeline.instance.nodes)
    boxes = [(bar.start_s, bar.end_s, low, high) for bar in timeline.bars for low, high in rows.boxes(bar)]
    assert boxes
    for i, (start, end, low, high) in enumerate(boxes):
        assert 0 <= low < high <= rows.count
        for other_start, other_end, other_low, other_high in boxes[:i]:
            apart = min(end, other_end) - max(start, other_start) <= 1e-9
            assert apart or min(high, other_high) <= max(low, other_low)


def test_nothing_in_a_script_ends_it():
    text = script_json({"name": "</script><!--", "sum": 1})
    assert "<" not in text
    assert json.loads(text)["name"] == "</script><!--"


def test_the_price_is_drawn_below_the_cost_rate_which_follows_it():
    series = PriceSeries(np.array([-7200.0, -3600.0, 0.0, 3600.0]), np.array([7.0, 8.0, 1.0, 3.0]))  # history first
    result = simulate(ran().instance.with_mechanisms(series), make_policy("edf"))
    *_, rate, price = usage_drawing([result], [Timeline.of(result)]).views[0].traces
    assert price["y"] == [100.0, 300.0, 300.0]
    before = cost_rate(ran(), Timeline.of(ran()))[1]
    reference = ran().instance.energy_price_eur_per_kwh
    assert rate["y"] == pytest.approx([before[0] / reference, 3.0 * before[1] / reference, 0.0])
