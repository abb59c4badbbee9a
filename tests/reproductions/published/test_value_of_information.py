"""What it is worth to know, to plan and to preempt: savings of made-up runs by hand, and small tracks to files."""

import csv

import pytest

from gpusched_baselines.registry import ablation_names
from gpusched_env.workload import Track, list_tracks, load_scenario, load_track
from gpusched_experiments.report import figures as drawing
from gpusched_experiments.report.experiment import Selection, Size, Sizes, available
from gpusched_experiments.report.experiment_run import reproduce
from gpusched_experiments.report.run import Runs
from gpusched_reproductions.published import value_of_information as module
from gpusched_reproductions.published.changes import Misspecified
from gpusched_reproductions.published.value_of_information import VALUE_OF_INFORMATION_EXPERIMENT, Contrast
from refusals import refused
from watching import Watching

PARTS = ablation_names("sts-x")
CONTRASTS = 3 + 3 + 1 + len(PARTS) - 2  # two parts are asked for by a question already


def made_up(costs, seeds=5):
    """Runs of these total costs (for seed s times s + 1), by track and by policy, or policy and what it is told."""
    named = {
        (track, *(key if isinstance(key, tuple) else (key, "the truth"))): cost
        for track, policies in costs.items()
        for key, cost in policies.items()
    }
    return Runs.of(
        ({"track": track, "distribution": informed}, policy, seed, values(cost * (seed + 1)))
        for (track, policy, informed), cost in named.items()
        for seed in range(seeds)
    )


def values(cost):
    return {
        "total_eur": cost, "energy_eur": cost, "tardiness_eur": 0.0, "late_jobs": 1, "jobs": 10, "switches": 0,
    }  # fmt: skip


WORST = ("sts-x", "the worst case")
RUNS = made_up({
    "a": {"sts-x": 6.0, WORST: 8.0, "atc": 12.0, "sts-x:no-price": 5.0, "edf": 10.0, "edf:preemptive": 5.0},
    "b": {"sts-x": 4.0, WORST: 4.0, "atc": 5.0, "sts-x:no-price": 8.0, "edf": 10.0, "edf:preemptive": 40.0},
})  # fmt: skip


def table(name, runs=RUNS):
    return {row["track"]: row for row in VALUE_OF_INFORMATION_EXPERIMENT.more[name](runs).as_dicts()}


def test_every_policy_runs_on_the_test_seeds_of_every_track_and_only_the_subject_is_told_the_worst_case():
    cells = VALUE_OF_INFORMATION_EXPERIMENT.cells(Selection(), VALUE_OF_INFORMATION_EXPERIMENT.policies)
    names = [name for name in list_tracks() if name != "fleet"]
    seeds = sum(len(load_track(name).seeds("test")) for name in names)
    assert len(cells) == seeds * (len(VALUE_OF_INFORMATION_EXPERIMENT.policies) + 1)
    assert {dict(cell.labels)["track"] for cell in cells} == set(names)
    assert all(cell.scenario == load_track(dict(cell.labels)["track"]).scenario for cell in cells[::100])
    informed = {(cell.policy, cell.change) for cell in cells if dict(cell.labels)["distribution"] == "the worst case"}
    assert informed == {("sts-x", Misspecified("worst case"))}
    assert all(cell.change is None for cell in cells if dict(cell.labels)["distribution"] == "the truth")
    quick = VALUE_OF_INFORMATION_EXPERIMENT.cells(Selection(quick=True), ("edf",))
    assert {cell.seed for cell in quick} == {30000, 30001}
    assert all(cell.scenario.prices.series is None for cell in quick)  # a run with prices by period takes long
    assert len(quick) == 6
    assert {cell.seed for cell in VALUE_OF_INFORMATION_EXPERIMENT.cells(Selection(seeds=(7,)), ("edf",))} == {7}


def test_knowing_is_worth_what_the_policy_saves_and_over_all_tracks_ratios_are_averaged_geometrically():
    rows = table("know")
    (saved,) = (rows["a"][name] for name in rows["a"] if name != "track")  # of the others a side did not run
    assert (saved.value, saved.interval) == (pytest.approx(0.25), pytest.approx((0.25, 0.25)))
    assert rows["b"]["sts-x_against_itself_assuming_the_worst_case"].value == 0.0
    # Preemption halves the cost on one track and makes it four times as high on the other: √2 times on average.
    rows = table("preempt")
    assert [rows[track]["edf:preemptive_against_edf"].value for track in ("a", "b", "all tracks")] == pytest.approx(
        [0.5, -3.0, 1.0 - 2.0**0.5]
    )
    rows = VALUE_OF_INFORMATION_EXPERIMENT.summary(
        made_up({"a": {"edf": 2.0, "edf:preemptive": 1.0}}, seeds=2)
    ).as_dicts()
    assert [(row["saving"], row["saves"], row["loses"]) for row in rows] == [(pytest.approx(0.5), None, None)]


def test_the_short_table_has_every_comparison_once_with_its_least_and_its_most():
    rows = {row["contrast"]: row for row in VALUE_OF_INFORMATION_EXPERIMENT.summary(RUNS).as_dicts()}
    assert [(row["ablation"], name) for name, row in rows.items()] == [
        ("know", "sts-x against itself assuming the worst case"), ("plan", "sts-x against atc"),
        ("plan", "sts-x against sts-x:no-price"), ("preempt", "edf:preemptive against edf"),
    ]  # fmt: skip
    price = rows["sts-x against sts-x:no-price"]
    assert (price["least"].value, price["least_track"]) == (pytest.approx(-0.2), "a")
    assert (price["most"].value, price["most_track"]) == (pytest.approx(0.5), "b")
    assert (price["saves"], price["loses"]) == (1, 1)
    knowing = rows["sts-x against itself assuming the worst case"]
    assert (knowing["saves"], knowing["loses"]) == (1, 0)  # on the other track it is worth nothing


def test_every_part_is_compared_with_the_whole_on_every_track():
    assert set(module.PARTS.contrasts) == {Contrast("sts-x", name) for name in PARTS}
    assert [row["sts-x_against_sts-x:no-price"].value for row in table("parts").values()] == pytest.approx(
        [-0.2, 0.5, 1.0 - (1.2 * 0.5) ** 0.5]
    )
    panel = VALUE_OF_INFORMATION_EXPERIMENT.chart(RUNS).rows[0][0]
    assert panel.categories == ("a", "b", "all tracks")
    assert [(row.name, [x for x, _ in row.points]) for row in panel.series] == [
        ("sts-x:no-price", ["a", "b", "all tracks"])
    ]


def test_each_question_has_a_figure_with_its_tracks_in_falling_order_of_the_first_saving():
    panel = VALUE_OF_INFORMATION_EXPERIMENT.figures["plan"](RUNS).rows[0][0]
    assert panel.categories == ("a", "b")  # half is saved against a fifth
    assert [each.name for each in panel.series] == ["sts-x against atc", "sts-x against sts-x:no-price"]
    assert dict(panel.series[0].points)["b"].value == pytest.approx(0.2)
    assert VALUE_OF_INFORMATION_EXPERIMENT.figures["preempt"](RUNS).rows[0][0].categories == ("a", "b")
    reverse = made_up({"a": {"edf": 1.0, "edf:preemptive": 2.0}, "b": {"edf": 1.0, "edf:preemptive": 0.5}})
    assert VALUE_OF_INFORMATION_EXPERIMENT.figures["preempt"](reverse).rows[0][0].categories == ("b", "a")


@pytest.fixture
def small(monkeypatch):
    scenario = load_scenario("tiny")
    tracks = {
        name: Track(name=name, hard="nothing", weights="none", scenario=scenario.replace({"jobs.count": jobs}))
        for name, jobs in (("three", 3), ("five", 5))
    }
    monkeypatch.setattr(module, "list_tracks", lambda: tuple(tracks))
    monkeypatch.setattr(module, "QUICK_TRACKS", tuple(tracks))
    monkeypatch.setattr(module, "load_track", tracks.__getitem__)


@pytest.mark.usefixtures("small")
def test_a_run_ends_in_a_page_four_figures_and_the_numbers_and_goes_on_where_it_was(tmp_path):
    watching = Watching()
    outcome = reproduce(
        VALUE_OF_INFORMATION_EXPERIMENT, Selection(quick=True), tmp_path, watcher=watching, drawing=drawing
    )
    policies = len(VALUE_OF_INFORMATION_EXPERIMENT.policies) + 1
    assert watching.begun == [("value-of-information", 2 * 2 * policies, 0)]
    names = {"know", "plan", "preempt"}
    assert {path.name for path in (tmp_path / "value-of-information").iterdir()} == {
        "cells.csv", "record.json", "table.md", "table.csv", "summary.csv", "parts.csv", "figure.svg",
        *(f"{name}.{kind}" for name in names for kind in ("csv", "svg")),
    }  # fmt: skip
    assert len(outcome.table.rows) == CONTRASTS
    with (tmp_path / "value-of-information/parts.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [row["track"] for row in rows] == ["three", "five", "all tracks"]
    assert set(rows[0]) >= {f"sts-x_against_{name}" for name in PARTS}
    page = (tmp_path / "value-of-information/table.md").read_text()
    for title in (
        "Over all tracks",
        "Know: ",
        "Plan: ",
        "Preempt: ",
        "What each part of sts-x is worth",
        "Every track",
    ):
        assert f"### {title}" in page
    reproduce(VALUE_OF_INFORMATION_EXPERIMENT, Selection(quick=True), tmp_path, watcher=watching)
    assert watching.begun[1:] == [("value-of-information", 2 * 2 * policies, 2 * 2 * policies)]


@pytest.mark.usefixtures("small")
def test_where_nothing_can_be_compared_tables_and_figures_are_empty(tmp_path):
    choice = Selection(policies=("fifo",), seeds=(0,))
    outcome = reproduce(VALUE_OF_INFORMATION_EXPERIMENT, choice, tmp_path, watcher=Watching(), drawing=drawing)
    assert outcome.table.rows == ()


SIZES = Sizes(full=(Size(10, 20, 20), Size(50, 20, 5)), quick=(Size(5, 3, 2),))


def test_the_sizes_and_seeds_are_the_experiments_own_unless_others_are_chosen():
    assert SIZES.nodes(Selection()) == (10, 50)
    assert SIZES.nodes(Selection(quick=True)) == (5,)
    assert SIZES.nodes(Selection(quick=True, nodes=(7, 3))) == (7, 3)
    assert SIZES.seeds(Selection(), 50, "sts") == tuple(range(20))
    assert SIZES.seeds(Selection(), 50, "random-greedy") == tuple(range(5))
    assert SIZES.seeds(Selection(quick=True), 5, "random-greedy") == (0, 1)
    assert SIZES.seeds(Selection(seeds=(9, 4)), 50, "random-greedy") == (9, 4)


def test_sizes_for_slow_policies_seeds_that_begin_elsewhere_and_numbers_of_nodes_that_are_not_listed():
    sizes = Sizes(full=(Size(100, 20, 0),), quick=())
    assert sizes.seeds(Selection(), 100, "random-greedy") == ()
    assert sizes.seeds(Selection(nodes=(100,)), 100, "random-greedy") == (0,)
    assert len(sizes.seeds(Selection(nodes=(100,)), 100, "sts")) == 20
    sizes = Sizes(full=(Size(10, 3, 2),), quick=(), first_seed=100)
    assert sizes.seeds(Selection(), 10, "sts") == (100, 101, 102)
    assert sizes.seeds(Selection(), 10, "random-greedy") == (100, 101)
    assert sizes.seeds(Selection(seeds=(4,)), 10, "sts") == (4,)
    assert len(SIZES.seeds(Selection(), 11, "random-greedy")) == 5
    assert len(SIZES.seeds(Selection(), 3, "random-greedy")) == 20
    assert len(SIZES.seeds(Selection(), 10, "random-greedy")) == 20
    assert len(SIZES.seeds(Selection(), 500, "random-greedy")) == 5
    assert available(("edf", "sts-x", "sts"), ("sts", "edf", "fifo")) == (("edf", "sts"), ("sts-x",))


@pytest.mark.parametrize(
    ("values", "field"),
    [
        ({"seeds": (1, 1)}, "seeds"),
        ({"seeds": (-1,)}, "seeds"),
        ({"seeds": ()}, "seeds"),
        ({"nodes": (0,)}, "nodes"),
        ({"policies": ("edf", "edf")}, "policies"),
    ],
)
def test_choices_that_make_no_sense_are_refused(values, field):
    with refused(field):
        Selection(**values)
