"""What each experiment runs, and what it makes of runs that were made up."""

import csv
import io
import math

import pytest

from gpusched_experiments.report.experiment import Selection
from gpusched_experiments.report.run import Runs
from gpusched_experiments.report.table import csv_text
from gpusched_reproductions.published import EXPERIMENTS
from gpusched_reproductions.published.changes import WAYS
from gpusched_reproductions.published.scaling import growth

QUICK = Selection(quick=True)
SEEDS = {
    "scaling": range(5),
    "agents": range(100, 150),
    "value-of-information": range(30000, 30100),
    "forecasts": range(30000, 30006),
}  # of the full set; all others 0 to 19
DRAWN = [name for name in EXPERIMENTS if name != "conformance"]  # it has instances of its own: test_conformance.py


def made_up(name, policies, value_of, choice=QUICK):
    """Make the runs of an experiment's own cells, with values from `value_of(labels, policy, seed)`."""
    cells = EXPERIMENTS[name].cells(choice, policies)
    return Runs.of((dict(c.labels), c.policy, c.seed, value_of(dict(c.labels), c.policy, c.seed)) for c in cells)


def costs(energy, tardiness=0.0, late=0):
    values = {"energy_eur": energy, "tardiness_eur": tardiness, "total_eur": energy + tardiness}
    return {**values, "late_jobs": late, "jobs": 10, "switches": 3}


def read(table):
    return list(csv.DictReader(io.StringIO(csv_text(table))))


@pytest.mark.parametrize("name", DRAWN)
@pytest.mark.parametrize("quick", [True, False])
def test_the_cells_of_every_experiment_have_its_labels_and_are_all_different(name, quick):
    experiment = EXPERIMENTS[name]
    cells = experiment.cells(Selection(quick=quick), ("edf", "random-greedy", "sts", "path-relinking"))
    assert {tuple(label for label, _ in cell.labels) for cell in cells} == {experiment.labels}
    assert len({(cell.labels, cell.policy, cell.seed) for cell in cells}) == len(cells)
    measured = {"round" if experiment.alone else "run"}
    assert {cell.measure.name.split()[0] for cell in cells} == ({name} if name == "forecasts" else measured)
    if not quick:
        assert {cell.seed for cell in cells} == set(SEEDS.get(name, range(20)))


@pytest.mark.parametrize(
    "name", [name for name in DRAWN if name not in {"value-of-information", "forecasts"}]
)  # tracks have their own sizes
def test_nodes_seeds_and_policies_are_as_chosen(name):
    cells = EXPERIMENTS[name].cells(Selection(nodes=(4, 7), seeds=(3, 9)), ("greedy",))
    assert {cell.scenario.cluster.nodes for cell in cells} == {4, 7}
    assert {cell.seed for cell in cells} == {3, 9}
    assert {cell.policy for cell in cells} == {"greedy"}


def test_costs_are_of_the_published_workloads_and_of_the_measured_one():
    cells = EXPERIMENTS["cost"].cells(Selection(), ("sts",))
    assert {dict(cell.labels)["arrivals"] for cell in cells} == {"high", "exponential", "low", "mixed", "measured"}
    for cell in cells:
        scenario, labels = cell.scenario, dict(cell.labels)
        assert scenario.jobs.count == 10 * labels["nodes"] == 10 * scenario.cluster.nodes
        measured = labels["arrivals"] == "measured"
        assert scenario.applications == (None if measured else "published")
        assert scenario.cluster.gpu_types == (("V100", "A100", "T4") if measured else ("K80", "M60"))
        assert measured or scenario.arrivals.kind == labels["arrivals"]


def test_the_saving_of_sts_stands_beside_what_was_reported():
    def value(labels, policy, seed):
        of_edf = (100.0 + seed) * labels["nodes"]
        return {"edf": costs(of_edf, of_edf, late=1), "sts": costs(0.6 * of_edf), "greedy": costs(0.75 * of_edf)}[
            policy
        ]

    experiment = EXPERIMENTS["cost"]
    runs = made_up("cost", ("edf", "greedy", "sts"), value)
    rows = {(row["policy"], row["against"], row["arrivals"]): row for row in read(experiment.summary(runs))}
    assert len(rows) == 2 * 6
    row = rows["sts", "edf", "mean of the published"]
    assert rows["sts", "edf", "measured"]["reported_energy_saving"] == ""
    assert [float(row[f"energy_saving{end}"]) for end in ("", "_low", "_high")] == pytest.approx([0.4] * 3)
    assert float(row["total_saving"]) == pytest.approx(0.7)
    assert (row["reported_energy_saving"], row["reported_total_saving"]) == ("38 to 40 %", "32 to 80 %")
    assert (float(row["late_share"]), float(row["late_share_against"])) == (0.0, 0.1)
    against_greedy = rows["sts", "greedy", "high"]
    assert float(against_greedy["energy_saving"]) == pytest.approx(1 - 0.6 / 0.75)
    assert against_greedy["reported_energy_saving"] == ""
    details = read(experiment.details(runs))
    assert len(details) == 5 * 2 * 3
    assert (details[0]["policy"], details[0]["energy_saving"]) == ("edf", "")
    assert float(details[0]["energy_eur"]) == pytest.approx(102.0 * 3)
    chart = experiment.chart(runs)
    assert [len(row) for row in chart.rows] == [3] * 5  # few, so that a page shows them large
    assert {s.name for s in chart.rows[0][0].series} == {"edf", "greedy", "sts"}
    assert {s.name for s in chart.rows[0][1].series} == {"greedy", "sts"}
    assert [[(b.low, b.high) for b in row[1].bands] for row in chart.rows] == [*[[(0.38, 0.4)]] * 4, []]
    assert "energy saved here +40.0%" in experiment.verdict(experiment.summary(runs))[0]


def test_two_stochastic_policies_are_compared_once_and_what_was_reported_stands_only_where_it_was_of_the_same():
    runs = made_up("cost", ("sts", "sts-x"), lambda _, policy, __: costs({"sts": 10.0, "sts-x": 8.0}[policy]))
    rows = read(EXPERIMENTS["cost"].summary(runs))
    assert {(row["policy"], row["against"]) for row in rows} == {("sts-x", "sts")}
    assert {round(float(row["energy_saving"]), 9) for row in rows} == {0.2}
    policies = ("edf", "random-greedy", "greedy", "sts", "sts-x")
    rows = read(EXPERIMENTS["cost"].summary(made_up("cost", policies, lambda *_: costs(1.0))))
    assert {(row["policy"], row["against"]) for row in rows if row["reported_energy_saving"]} == {
        ("sts", "edf"), ("sts", "random-greedy"),
    }  # fmt: skip


def test_sizes_that_slow_policies_hardly_ran_on_do_not_enter_the_mean():
    saved = {10: 0.5, 100: 0.9}

    def value(labels, policy, _):
        return costs(10.0 if policy == "random-greedy" else 10.0 * (1 - saved[labels["nodes"]]))

    cells = EXPERIMENTS["cost"].cells(Selection(nodes=(10, 100)), ("random-greedy", "sts"))
    few = [c for c in cells if (c.policy, dict(c.labels)["nodes"]) != ("random-greedy", 100) or c.seed == 0]
    runs = Runs.of((dict(c.labels), c.policy, c.seed, value(dict(c.labels), c.policy, c.seed)) for c in few)
    row = next(row for row in read(EXPERIMENTS["cost"].summary(runs)) if row["arrivals"] == "mean of the published")
    assert float(row["energy_saving"]) == pytest.approx(0.5)


def test_planning_on_mean_times_is_compared_with_the_same_policy_on_the_worst_case():
    values = {"edf": costs(10.0), "edf:mean": costs(8.0, 30.0, late=4), "sts": costs(7.0)}
    values |= {"random-greedy": costs(9.0), "random-greedy:mean": costs(4.5)}
    runs = made_up("mean-times", tuple(values), lambda _, policy, __: values[policy])
    rows = {row["policy"]: row for row in read(EXPERIMENTS["mean-times"].summary(runs))}
    assert float(rows["edf:mean"]["energy_saving"]) == pytest.approx(0.2)
    assert float(rows["edf:mean"]["total_saving"]) == pytest.approx(-2.8)
    assert float(rows["edf:mean"]["late_share"]) == pytest.approx(0.4)
    assert float(rows["edf:mean"]["tardiness_eur_per_job"]) == pytest.approx(3.0)
    assert float(rows["random-greedy:mean"]["energy_saving"]) == pytest.approx(0.5)
    assert {name for name, row in rows.items() if row["reported"]} == {"edf:mean", "random-greedy:mean"}
    assert [rows[name]["plans_on"] for name in values][:4] == ["worst case", "mean times", "distribution", "worst case"]
    assert (rows["edf"]["energy_saving"], rows["sts"]["energy_saving"]) == ("", "")


def test_sharing_is_compared_with_the_same_policy_without():
    def value(labels, policy, _):
        own = 20.0 if policy == "edf" else 10.0
        return costs(own if labels["sharing"] == "off" else 0.75 * own)

    experiment = EXPERIMENTS["sharing"]
    rows = read(experiment.summary(made_up("sharing", ("edf", "sts"), value)))
    assert {round(float(row["energy_saving"]), 9) for row in rows} == {0.25}
    assert [(row["memory"], row["sharing"], row["reported"]) for row in rows if row["policy"] == "sts"] == [
        ("24 and 16 GiB", "inflation drawn", "17 to 29 %"),
        ("80 GiB", "inflation drawn", "17 to 29 %"),
        ("16 and 40 GiB", "inflation drawn", ""),
        ("16 and 40 GiB", "measured pairs", ""),
    ]
    verdict = experiment.verdict(experiment.summary(made_up("sharing", ("edf", "sts"), value)))
    assert [sentence.split(":")[0] for sentence in verdict] == [
        f"{policy}, inflation drawn, {memory}" for policy in ("edf", "sts") for memory in ("24 and 16 GiB", "80 GiB")
    ]
    assert all("here +25.0%" in sentence and "reported 17 to 29 %" in sentence for sentence in verdict)
    (panels,) = experiment.chart(made_up("sharing", ("edf", "sts"), value)).rows
    assert [[x for x, _ in panel.series[0].points] for panel in panels] == [
        ["high", "exponential", "low", "mixed"], ["high", "exponential", "low", "mixed"],
        ["inflation drawn", "measured pairs"],
    ]  # fmt: skip
    assert {round(e.value, 9) for panel in panels for s in panel.series for _, e in s.points} == {0.25}


def rounds(exponent, jitter=0.0):
    def value(labels, _, seed):
        time_s = 1e-4 * labels["jobs"] ** exponent * math.exp(jitter * seed)
        return {"round_s": time_s, "placed": labels["jobs"], "fallbacks": 2.0, "solver_share": 0.9}

    return value


def test_the_growth_is_the_exponent_of_the_jobs_from_twenty_nodes_on():
    runs = made_up("scaling", ("sts",), rounds(1.5), Selection())
    found = growth(runs.where("sts", arrivals="high"))
    assert found.value == pytest.approx(1.5)
    assert found.interval == pytest.approx((1.5, 1.5))
    assert found.seeds == 5

    def slow_at_ten(labels, policy, seed):
        return rounds(1.5)(labels, policy, seed) | ({"round_s": 1.0} if labels["nodes"] == 10 else {})

    slow_start = made_up("scaling", ("sts",), slow_at_ten, Selection())
    assert growth(slow_start.where("sts", arrivals="high")).value == pytest.approx(1.5)
    assert math.isnan(growth(runs.where("sts", arrivals="high", nodes=50)).value)


def test_times_of_rounds_stand_beside_what_was_reported():
    experiment = EXPERIMENTS["scaling"]
    runs = made_up("scaling", ("sts", "path-relinking"), rounds(1.0), Selection())
    rows = {(row["policy"], row["arrivals"]): row for row in read(experiment.summary(runs))}
    row = rows["sts", "high"]
    assert (row["nodes"], row["jobs"], row["most_nodes"], row["most_jobs"]) == ("100", "400", "1000", "4000")
    assert (float(row["round_s"]), float(row["largest_round_s"])) == pytest.approx((0.04, 0.4))
    assert row["reported"] == "thesis: under 60 s; paper: under 5 s"
    assert float(row["fallbacks"]) == 2.0
    assert rows["path-relinking", "as reported"]["jobs"] == "450"
    assert rows["path-relinking", "as reported"]["reported"] == "under 7 s with 450 jobs"
    (panels,) = experiment.chart(runs).rows
    assert [panel.logarithmic for panel in panels] == ["xy"] * 3
    line = panels[0].series[0]
    assert line.points[0][0] == 10
    assert line.points[0][1].value == pytest.approx(4.0)  # milliseconds


def test_ipopt_is_asked_to_decide_the_400_jobs_of_the_thesis_and_its_share_of_the_time_is_shown():
    experiment = EXPERIMENTS["scaling"]
    runs = made_up("scaling", ("sts", "sts:ipopt"), rounds(1.0), Selection())
    rows = {(row["policy"], row["arrivals"]): row for row in read(experiment.summary(runs))}
    row = rows["sts:ipopt", "high"]
    assert (row["nodes"], row["jobs"]) == ("100", "400")
    assert [float(row[f"solver_share{end}"]) for end in ("", "_low", "_high")] == pytest.approx([0.9] * 3)
    assert row["reported"] == "thesis: under 60 s, 90 % of it in Ipopt"
    assert rows["sts", "high"]["solver_share"] == ""


def test_why_changes_one_thing_at_a_time():
    cells = EXPERIMENTS["why"].cells(QUICK, ("sts",))
    by_axis = {}
    for cell in cells:
        by_axis.setdefault(dict(cell.labels)["axis"], []).append(cell)
    base = {c.key("x") for c in by_axis["published"]}
    for axis, setting in (
        ("misspecified", "the truth"), ("due dates", 1.0), ("load", 1.0), ("weights", 1.0), ("arrivals", "high"),
        ("distributions", "as published"),
    ):  # fmt: skip
        assert {c.key("x") for c in by_axis[axis] if dict(c.labels)["setting"] == setting} == base, axis
    assert {dict(c.labels)["setting"] for c in by_axis["misspecified"]} == {"the truth", *WAYS}
    assert {c.scenario.due_dates.slack for c in by_axis["due dates"]} == {0.75, 1.0, 1.25, 1.5, 2.0, 4.0}
    assert {c.scenario.arrivals.rate for c in by_axis["load"]} == {0.5, 1.0, 2.0, 2.5, 3.0}
    for axis in ("speed-up", "slower type", "base power"):
        assert all(c.change is not None for c in by_axis[axis]), axis
    assert all(c.scenario.applications is None for c in by_axis["measured"])


def test_why_says_of_every_change_what_sts_saves_against_both_kinds_of_edf():
    def value(labels, policy, _):
        wrong = labels["axis"] == "misspecified" and labels["setting"] != "the truth"
        return costs({"edf": 20.0, "edf:preemptive": 16.0, "sts": 11.0 if wrong else 10.0}[policy])

    experiment = EXPERIMENTS["why"]
    runs = made_up("why", ("edf", "edf:preemptive", "sts"), value)
    rows = read(experiment.summary(runs))
    assert len(rows) == len(
        {(dict(c.labels)["axis"], dict(c.labels)["setting"]) for c in experiment.cells(QUICK, ("sts",))}
    )
    published = rows[0]
    assert (published["axis"], published["setting"]) == ("published", "as published")
    assert float(published["saving_against_edf"]) == pytest.approx(0.5)
    assert float(published["saving_against_edf:preemptive"]) == pytest.approx(1 - 10.0 / 16.0)
    extra = {row["setting"]: row["extra_energy"] for row in rows if row["axis"] == "misspecified"}
    assert extra.pop("the truth") == ""
    assert {round(float(each), 9) for each in extra.values()} == {0.1}
    panels = [panel for row in experiment.chart(runs).rows for panel in row]
    assert [s.name for s in panels[-1].series] == ["sts"]
    assert {round(estimate.value, 9) for _, estimate in panels[-1].series[0].points} == {0.1}
    slack = next(panel for panel in panels if panel.x_label == "due_dates.slack")
    assert [x for x, _ in slack.series[0].points] == [0.75, 1.0, 1.25, 1.5, 2.0, 4.0]


def test_the_load_shows_where_sts_begins_to_lose():
    def value(labels, policy, _):
        return costs(10.0 if policy == "edf" else 4.0 * labels["rate"], late=1 if policy == "edf" else 0)

    experiment = EXPERIMENTS["load"]
    runs = made_up("load", ("edf", "sts"), value)
    rows = {(row["arrivals"], row["rate"]): row for row in read(experiment.summary(runs))}
    assert float(rows["high", "1.0"]["saving_of_sts"]) == pytest.approx(0.6)
    assert float(rows["high", "3.0"]["saving_of_sts"]) == pytest.approx(-0.2)
    assert (float(rows["low", "2.5"]["late_edf"]), float(rows["low", "2.5"]["late_sts"])) == (0.1, 0.0)
    saved, late = zip(*experiment.chart(runs).rows, strict=True)
    assert [panel.title for panel in saved] == ["high", "exponential", "low", "measured"]
    assert [x for x, _ in saved[0].series[0].points] == [0.5, 1.0, 1.5, 2.0, 2.5, 3.0]
    assert [len(panel.series) for panel in late] == [2] * 4
    rates = {dict(c.labels)["rate"]: c.scenario.arrivals.rate for c in experiment.cells(QUICK, ("sts",))}
    assert all(rate == applied for rate, applied in rates.items())


def test_at_the_rates_of_the_thesis_its_baseline_and_its_method_run_too():
    experiment = EXPERIMENTS["load"]
    policies = ("edf", "random-greedy", "sts", "sts:published", "sts:ipopt")
    places, seeds = {}, {}
    for cell in experiment.cells(Selection(), policies):
        labels = dict(cell.labels)
        places.setdefault(cell.policy, set()).add((labels["arrivals"], labels["rate"]))
        seeds.setdefault(cell.policy, set()).add(cell.seed)
    thesis = {("high", 2.5), ("exponential", 1.5), ("low", 2.5)}
    assert {name for name in policies if places[name] == thesis} == {"random-greedy", "sts:published", "sts:ipopt"}
    assert len(places["sts"]) == 24
    assert {name: len(of) for name, of in seeds.items()} == {
        "edf": 20, "random-greedy": 5, "sts": 20, "sts:published": 20, "sts:ipopt": 5,
    }  # fmt: skip


def test_the_saving_at_the_rates_of_the_thesis_is_against_both_and_the_mean_of_three():
    energy = {"edf": 10.0, "random-greedy": 8.0, "sts": 5.0}

    def value(labels, policy, _):
        if policy == "sts:ipopt":
            return costs({"high": 12.0, "exponential": 6.0, "low": 6.0}.get(labels["arrivals"], 1.0), late=2)
        return costs(energy[policy])

    runs = made_up("load", (*energy, "sts:ipopt"), value)
    rows = {(row["arrivals"], row["policy"]): row for row in read(EXPERIMENTS["load"].more["thesis"](runs))}
    assert len(rows) == 4 * 4
    high, mean = rows["high", "sts:ipopt"], rows["mean of the three", "sts:ipopt"]
    assert (high["rate"], mean["rate"]) == ("2.5", "")
    assert float(high["saving_against_edf"]) == pytest.approx(-0.2)
    assert float(mean["saving_against_edf"]) == pytest.approx(0.2)
    assert float(mean["saving_against_random-greedy"]) == pytest.approx(0.0)
    assert float(mean["late_share"]) == pytest.approx(0.2)
    assert rows["low", "edf"]["saving_against_edf"] == ""
    assert {place for place, row in rows.items() if row["reported"]} == {("mean of the three", "sts:ipopt")}
    assert "late_sts:ipopt" not in read(EXPERIMENTS["load"].summary(runs))[0]


def test_agents_are_run_on_workloads_of_two_sizes_and_on_other_gpus():
    cells = EXPERIMENTS["agents"].cells(Selection(), ("random-greedy", "sts", "agent:default"))
    seeds = {}
    for cell in cells:
        assert cell.scenario.jobs.count == 10 * cell.scenario.cluster.nodes == 10 * dict(cell.labels)["nodes"]
        seeds.setdefault((*dict(cell.labels).values(), cell.policy), set()).add(cell.seed)
    assert {place[:2] for place in seeds} == {
        *((name, nodes) for name in ("default", "high", "low", "mixed") for nodes in (10, 30)), ("published-high", 10),
    }  # fmt: skip
    assert {len(of) for (*_, policy), of in seeds.items() if policy != "random-greedy"} == {50}
    assert {nodes for _, nodes, policy in seeds if policy == "random-greedy"} == {10}
    assert {dict(cell.labels)["nodes"] for cell in EXPERIMENTS["agents"].cells(QUICK, ("sts",))} == {10}


def timed(labels, policy, seed):
    total = {"edf": 100.0, "sts": 10.0 + seed, "agent:a": 8.0 + 0.8 * seed}[policy] * labels["nodes"]
    values = costs(total, 0.5 * total)
    return {**values, "decision_s": 0.02 if policy == "agent:a" else 0.01, "clairvoyant_eur": total, "rounds": 4}


def test_what_an_agent_saves_stands_beside_every_other_policy_and_without_one_the_last_is_compared():
    runs = made_up("agents", ("edf", "sts"), timed)
    rows = [row for row in read(EXPERIMENTS["agents"].summary(runs)) if row["scenario"] == "high"]
    assert [row["saving_of_sts"] for row in rows][1] == ""
    assert float(rows[0]["saving_of_sts"]) == pytest.approx(1 - 112.0 / 100.0)  # the mean seed is 102
    experiment = EXPERIMENTS["agents"]
    runs = made_up("agents", ("edf", "sts", "agent:a"), timed, Selection(seeds=tuple(range(6))))
    rows = {(row["scenario"], row["nodes"], row["policy"]): row for row in read(experiment.summary(runs))}
    assert len(rows) == 9 * 3
    sts, agent = rows["low", "30", "sts"], rows["low", "30", "agent:a"]
    assert [float(sts[f"saving_of_agent:a{end}"]) for end in ("", "_low", "_high")] == pytest.approx([0.2] * 3)
    assert float(rows["default", "10", "edf"]["saving_of_agent:a"]) == pytest.approx(1 - 10.0 / 100.0)
    assert agent["saving_of_agent:a"] == ""
    assert float(agent["total_eur"]) == pytest.approx(1.5 * 30 * 10.0)
    assert float(agent["tardiness_eur"]) == pytest.approx(0.5 * 30 * 10.0)
    assert [float(row["decision_s_per_job"]) for row in (sts, agent)] == pytest.approx([0.001, 0.002])
    details = read(experiment.details(runs))
    assert len(details) == 9 * 3
    assert {round(float(row["clairvoyant_gap"]), 9) for row in details} == {0.5}
    costs_row, saved_row, times_row = experiment.chart(runs).rows
    assert [panel.title for panel in costs_row] == ["10 nodes, 100 jobs", "30 nodes, 300 jobs"]
    assert [[s.name for s in panel.series] for panel in saved_row] == [["edf", "sts"]] * 2
    assert {round(estimate.value, 9) for _, estimate in saved_row[0].series[1].points} == {0.2}
    assert [len(panel.series[0].points) for panel in times_row] == [5, 4]
    assert times_row[0].series[2].points[0][1].value == pytest.approx(2.0)  # milliseconds
