import pytest

from gpusched_experiments.report.chart import Band, Chart, Level, Panel, Series, series
from gpusched_experiments.report.estimate import Estimate
from gpusched_experiments.report.figures import chart_figure, chart_files


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


def test_points_without_a_value_are_left_out():
    nothing = Estimate(float("nan"), None, 0)
    assert series("sts", [(1, nothing), (2, Estimate(1.0, None, 1))]).points == ((2, Estimate(1.0, None, 1)),)


def test_charts_are_saved_as_svg_without_a_date():
    files = chart_files(Chart("a chart", ((LINES, BARS),)))
    drawn = files["figure.svg"].decode()
    assert drawn.startswith("<?xml")
    assert "dc:date" not in drawn


def test_equal_charts_make_equal_files():
    chart = Chart("a chart", ((LINES, BARS),))
    assert chart_files(chart) == chart_files(chart)


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


def test_files_have_the_name_that_is_asked_for():
    assert set(chart_files(Chart("", ((LINES,),)), "know")) == {"know.svg"}
