import pytest

from gpusched_experiments.report import RunSummary, summarise
from gpusched_experiments.report.figures import cost_figure, figure_files


def runs(tardiness, seeds=5):
    return [
        RunSummary(policy, seed, 4, 10.0 + 0.25 * seed, cost, 0, 60.0, 0, 5, 0.1, 6.0, 7.0)
        for seed in range(seeds)
        for policy, cost in (("edf", tardiness), ("sts", 0.0))
    ]


def figure_of(these):
    return cost_figure(summarise(these, "edf"), these, "a title")


def texts(figure):
    return [text.get_text() for text in figure.findobj(lambda artist: hasattr(artist, "get_text"))]


def test_bars_show_energy_then_tardiness():
    axes = figure_of(runs(2.0)).axes[0]
    assert [bar.get_x() for bar in axes.patches] == pytest.approx([0.0, 0.0, 10.5, 10.5])
    assert [bar.get_width() for bar in axes.patches] == pytest.approx([10.5, 10.5, 2.0, 0.0])


def test_bounds_stand_where_they_are():
    axes = figure_of(runs(2.0)).axes[0]
    lines = {line.get_xdata()[0] for line in axes.lines if list(line.get_ydata()) == [0, 1]}
    assert lines == {6.0, 7.0}


def test_everything_is_named_with_its_unit():
    found = texts(figure_of(runs(2.0)))
    named = {"a title", "mean cost per run [€]", "energy", "tardiness", "edf", "sts", "12.50 €", "10.50 €"}
    assert named | {"clairvoyant bound", "non-clairvoyant bound", "95 % interval of the mean total"} <= set(found)


def test_few_seeds_have_no_whiskers():
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
