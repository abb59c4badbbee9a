import pytest

from gpusched_agents.training.algorithm_config import EsConfig
from gpusched_agents.training.config import TrainingConfig
from gpusched_experiments.report import RunSummary, summarise
from gpusched_experiments.report.chart import Band, Chart, Level, Panel, Series, series, training_chart
from gpusched_experiments.report.estimate import Estimate
from gpusched_experiments.report.figures import chart_figure, chart_files, cost_figure, figure_files


def line(name, *values):
    return Series(name, tuple((10.0 * (i + 1), Estimate(v, (v - 1.0, v + 1.0), 5)) for i, v in enumerate(values)))


LINES = Panel("high", "nodes", "cost [€]", (line("edf", 5.0, 6.0), line("sts", 3.0, 4.0)))
SAVED = Panel("", "nodes", "saved", (line("sts", 0.2, 0.3),), percent=True, bands=(Band(0.38, 0.4, "reported"),))
BARS = Panel(
    "bars", "", "cost [€]",
    (Series("greedy", (("a", Estimate(2.0, (1.0, 4.0), 5)),)), Series("mine", (("b", Estimate(3.0, None, 1)),))),
    kind="bars",
)  # fmt: skip


def texts(figure):
    return [text.get_text() for text in figure.findobj(lambda artist: hasattr(artist, "get_text"))]


def test_lines_are_drawn_where_their_points_are_with_bands_for_the_intervals():
    axes = chart_figure(Chart("a chart", ((LINES,),))).axes[0]
    edf, sts = (line for line in axes.lines if len(line.get_xdata()) == 2)
    assert (list(edf.get_xdata()), list(edf.get_ydata())) == ([10.0, 20.0], [5.0, 6.0])
    assert list(sts.get_ydata()) == [3.0, 4.0]
    heights = axes.collections[0].get_paths()[0].vertices[:, 1]
    assert (heights.min(), heights.max()) == (4.0, 7.0)


def test_everything_is_named_once():
    figure = chart_figure(Chart("a chart", ((LINES, SAVED), (BARS,))))
    found = texts(figure)
    for name in ("a chart", "high", "cost [€]", "nodes", "edf", "sts", "reported", "greedy", "mine"):
        assert name in found
    named = [text.get_text() for text in figure.legends[0].get_texts()]
    assert sorted(named) == ["edf", "greedy", "mine", "reported", "sts"]


def test_bars_stand_at_their_category_with_whiskers():
    axes = chart_figure(Chart("", ((BARS,),))).axes[0]
    assert [label.get_text() for label in axes.get_xticklabels()] == ["a", "b"]
    assert [bar.get_height() for bar in axes.patches] == [2.0, 3.0]
    assert [round(bar.get_x() + bar.get_width() / 2, 9) for bar in axes.patches] == [-0.2, 1.2]
    whiskers = [segment[:, 1].tolist() for c in axes.collections for segment in c.get_segments()]
    assert whiskers == [[1.0, 4.0], [3.0, 3.0]]


def test_logarithmic_axes_are_marked_at_the_points_themselves():
    panel = Panel("", "nodes", "time [ms]", (line("sts", 5.0, 60.0, 700.0),), logarithmic="xy")
    axes = chart_figure(Chart("", ((panel,),))).axes[0]
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")
    assert axes.get_xticks().tolist() == [10.0, 20.0, 30.0]


def test_a_policy_has_one_colour_in_every_figure():
    first = chart_figure(Chart("", ((LINES,),))).axes[0].lines[1]
    second = chart_figure(Chart("", ((Panel("", "", "", (line("other", 1.0), line("sts", 1.0))),),))).axes[0].lines[1]
    assert first.get_label() == second.get_label() == "sts"
    assert first.get_color() == second.get_color()


def test_panels_of_a_row_that_show_the_same_have_the_same_scale():
    tall = Panel("low", "nodes", "cost [€]", (line("edf", 50.0, 60.0),))
    one, two, three = chart_figure(Chart("", ((LINES, tall, SAVED),))).axes
    assert one.get_ylim() == two.get_ylim() != three.get_ylim()
    assert one.get_ylim()[0] <= 0.0


def test_charts_are_saved_as_svg_without_a_date_or_points_without_a_value():
    nothing = Estimate(float("nan"), None, 0)
    assert series("sts", [(1, nothing), (2, Estimate(1.0, None, 1))]).points == ((2, Estimate(1.0, None, 1)),)
    files = chart_files(Chart("a chart", ((LINES, BARS),)))
    drawn = files["figure.svg"].decode()
    assert drawn.startswith("<?xml")
    assert "dc:date" not in drawn
    chart = Chart("a chart", ((LINES, BARS),))
    assert chart_files(chart) == chart_files(chart)
    assert set(chart_files(Chart("", ((LINES,),)), "know")) == {"know.svg"}


def test_levels_are_named_lines_across_the_panel_and_a_range_cuts_off_the_rest():
    levels = (Level(3.5, "sts"), Level(4.5, "sts-x"))
    whole = Panel("all", "steps", "cost [€]", (line("mine", 5.0, 600.0),), logarithmic="y", levels=levels)
    close = Panel("close", "steps", "cost [€]", whole.series, levels=levels, y_range=(3.0, 6.0))
    figure = chart_figure(Chart("", ((whole, close),), (5.0, 3.0)))
    first, second = figure.axes
    assert figure.get_size_inches().tolist() == [2 * 5.0 + 0.4, 3.0 + 1.0]
    assert second.get_ylim() == (3.0, 6.0)
    assert first.get_ylim()[1] > 600.0
    for axes in (first, second):
        across = {each.get_label(): each.get_ydata()[0] for each in axes.lines if list(each.get_xdata()) == [0, 1]}
        assert across == {"sts": 3.5, "sts-x": 4.5}
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["sts", "sts-x", "mine"]


def test_a_map_has_a_cell_with_its_figure_for_each_ratio_that_is_there():
    rows = (
        Series("sts-x", (("a", Estimate(1.0, None, 2)), ("b", Estimate(1.25, None, 2)))),
        Series("agent", (("b", Estimate(25.14, None, 2)),)),
    )
    axes, bar = chart_figure(Chart("", ((Panel("", "", "", rows, kind="map", categories=("a", "b")),),))).axes
    assert [label.get_text() for label in bar.get_yticklabels()] == ["1", "1.05", "1.2", "1.5", "2", "5", "10"]
    shades = axes.images[0].get_array()
    assert shades[0, 0] == 0.0
    assert shades[1, 1] == pytest.approx(1.0)
    assert 0.2 < shades[0, 1] < 0.4  # also small differences are seen
    assert [label.get_text() for label in axes.get_xticklabels()] == ["a", "b"]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["sts-x", "agent"]
    figures = {text.get_position(): text.get_text() for text in axes.texts}
    assert figures == {(0, 0): "1.00", (1, 0): "1.25", (0, 1): "", (1, 1): "25.1"}


def dots(*values):
    return Series("a rule", tuple((f"track {i}", Estimate(v, (v - 0.1, v + 0.1), 5)) for i, v in enumerate(values)))


def test_dots_stand_in_rows_from_above_with_their_intervals_along_the_axis():
    panel = Panel("", "saved", "", (dots(0.5, -0.2),), kind="dots", percent=True, categories=("track 1", "track 0"))
    axes = chart_figure(Chart("", ((panel,),))).axes[0]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["track 1", "track 0"]
    assert axes.yaxis_inverted()
    (places,) = (line for line in axes.lines if line.get_marker() == "o")
    assert (list(places.get_xdata()), list(places.get_ydata())) == ([0.5, -0.2], [1.0, 0.0])
    whiskers = [[round(x, 9) for x in part[:, 0]] for c in axes.collections for part in c.get_segments()]
    assert whiskers == [[0.4, 0.6], [-0.3, -0.1]]
    assert (axes.get_xscale(), axes.get_xlabel()) == ("linear", "saved")


def test_losses_beyond_all_of_the_cost_are_drawn_on_a_logarithmic_scale_and_all_whiskers_are_seen():
    panel = Panel("", "saved", "", (dots(0.5, -12.0),), kind="dots", percent=True, categories=("track 0", "track 1"))
    axes = chart_figure(Chart("", ((panel,),))).axes[0]
    assert (axes.get_xscale(), axes.get_xlabel()) == ("symlog", "saved (losses beyond 100 %: logarithmic)")
    assert axes.get_xticks().tolist() == [-10.0, -3.0, -1.0, -0.75, -0.5, -0.25, 0.0, 0.25, 0.5]
    low, high = axes.get_xlim()
    assert low < -12.1
    assert 0.6 < high < 1.0


def test_a_map_of_savings_has_them_in_percent_red_where_something_is_lost():
    rows = (Series("a part", (("a", Estimate(0.25, None, 2)), ("b", Estimate(-1.0, None, 2)))),)
    panel = Panel("", "", "", rows, kind="map", percent=True, categories=("a", "b"))
    axes = chart_figure(Chart("", ((panel,),))).axes[0]
    assert [text.get_text() for text in axes.texts] == ["+25.0", "-100"]
    saved, lost = axes.images[0].cmap(axes.images[0].norm(axes.images[0].get_array()))[0]
    assert saved[2] > saved[0]
    assert lost[0] > lost[2]


def runs(tardiness, seeds=5):
    return [
        RunSummary(policy, seed, 4, 10.0 + 0.25 * seed, cost, 0, 60.0, 0, 5, 0.1, 6.0, 7.0)
        for seed in range(seeds)
        for policy, cost in (("edf", tardiness), ("sts", 0.0))
    ]


def figure_of(these):
    return cost_figure(summarise(these, "edf"), these, "a title")


def test_bars_show_energy_then_tardiness_beside_bounds_all_named_with_units():
    axes = figure_of(runs(2.0)).axes[0]
    assert [bar.get_x() for bar in axes.patches] == pytest.approx([0.0, 0.0, 10.5, 10.5])
    assert [bar.get_width() for bar in axes.patches] == pytest.approx([10.5, 10.5, 2.0, 0.0])
    lines = {line.get_xdata()[0] for line in axes.lines if list(line.get_ydata()) == [0, 1]}
    assert lines == {6.0, 7.0}
    found = texts(figure_of(runs(2.0)))
    named = {"a title", "mean cost per run [€]", "energy", "tardiness", "edf", "sts", "12.50 €", "10.50 €"}
    assert named | {"clairvoyant bound", "non-clairvoyant bound", "95 % interval of the mean total"} <= set(found)
    assert "95 % interval of the mean total" not in texts(figure_of(runs(2.0, seeds=4)))


def test_a_policy_that_costs_a_multiple_gets_a_second_panel_for_the_others():
    assert len(figure_of(runs(2.0)).axes) == 1
    panels = figure_of(runs(5_000.0)).axes
    assert len(panels) == 2
    assert panels[0].get_xlim()[1] > 5_000.0
    assert panels[1].get_xlim()[1] < 50.0


def test_a_figure_is_saved_in_three_forms():
    files = figure_files("costs", figure_of(runs(2.0)), ("png", "svg", "pdf"))
    assert list(files) == ["costs.png", "costs.svg", "costs.pdf"]
    for content, begin in zip(files.values(), (b"\x89PNG", b"<?xml", b"%PDF"), strict=True):
        assert content.startswith(begin)


def test_only_what_is_drawn_is_named():
    these = runs(0.0)
    found = texts(cost_figure(summarise(these, "edf"), these, "a title", of_trace=True))
    assert "clairvoyant bound" in found
    assert not {"tardiness", "non-clairvoyant bound"} & set(found)


ES = TrainingConfig(agent=EsConfig(), scenarios=("track:slack",), validation_seeds=(500, 501))

REFERENCES = {"sts-x": 100.0, "sts": 120.0, "edf": 140.0}


def point(steps, total_eur, **more):
    return {"steps": steps, "seconds": 1.0, "phase": "learning", "total_eur": total_eur} | more


def only_panel(chart):
    ((panel,),) = chart.rows
    return panel


def test_it_has_a_point_for_each_evaluation_and_a_line_for_each_reference_policy():
    chart = training_chart(ES, [point(0, 100.0, relative=1.0), point(2_000, 90.0, relative=0.9)], REFERENCES)
    panel = only_panel(chart)
    assert chart.title == "Training on the track slack"
    assert [(x, estimate.value) for x, estimate in panel.series[0].points] == [(0.0, 100.0), (2.0, 90.0)]
    assert {level.name: level.value for level in panel.levels} == REFERENCES
    assert panel.y_range == pytest.approx((84.0, 146.0))
    assert "2 validation workloads" in panel.y_label


def test_what_an_untrained_network_costs_is_cut_off_but_not_a_trained_one_that_is_costly():
    untrained = training_chart(TrainingConfig(), [point(0, 90_000.0), point(1, 130.0)], REFERENCES)
    assert only_panel(untrained).y_range[1] < 150.0
    costly = training_chart(TrainingConfig(), [point(0, 90_000.0), point(1, 500.0)], REFERENCES)
    assert only_panel(costly).y_range[1] > 500.0


def test_of_several_tracks_it_shows_the_ratio_by_which_the_agent_is_chosen():
    config = TrainingConfig(agent=EsConfig(), scenarios=("track:slack", "track:busy"))
    curve = [point(0, 900.0, relative=1.0), point(1_000, 950.0, relative=0.9)]
    panel = only_panel(training_chart(config, curve, REFERENCES))
    assert [estimate.value for _, estimate in panel.series[0].points] == pytest.approx([0.0, -0.1])
    assert panel.percent
    assert [(level.name, level.value) for level in panel.levels] == [("sts-x", 0.0)]


def test_a_curve_of_one_cost_can_be_drawn():
    low, high = only_panel(training_chart(ES, [point(0, 100.0)], {"sts": 100.0})).y_range
    assert low < 100.0 < high
