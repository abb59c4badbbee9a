import pytest

from gpusched_operations.html_report.verdict import saving_against, verdict
from report_pages import costs, summary


def test_the_verdict_names_the_cheapest_with_its_saving_and_the_next():
    said = verdict(costs(edf=[10.0] * 5, fifo=[20.0] * 5, sept=[12.5] * 5), "fifo")
    assert said == (
        (
            "edf is cheapest: 10.00 € a run, 10.00 € for energy and 0.00 € for late jobs, 50.0 % less than fifo "
            "(95 % interval 50.0 % to 50.0 %)."
        ),
        "The next is sept with 12.50 €: edf costs 20.0 % less than sept (95 % interval 20.0 % to 20.0 %).",
    )


def test_where_the_reference_is_cheapest_the_verdict_says_so_and_by_how_much():
    said = verdict(costs(edf=[10.0] * 5, fifo=[20.0] * 5, sept=[12.5] * 5), "edf")
    assert said == (
        (
            "edf, the reference, is cheapest: 10.00 € a run, 10.00 € for energy and 0.00 € for late jobs. It costs "
            "20.0 % less than sept (95 % interval 20.0 % to 20.0 %), the next."
        ),
    )


def test_a_saving_whose_interval_holds_zero_may_be_chance():
    said = verdict(costs(edf=[10.0, 11, 30, 10, 12], fifo=[12.0, 12, 20, 14, 16]), "fifo")
    assert "edf is cheapest" in said[0]
    assert said[0].endswith("so it may be chance).")


def test_few_seeds_have_no_interval_and_the_verdict_says_so():
    said = verdict(costs(edf=[10.0, 10.0], fifo=[20.0, 20.0]), "fifo")
    assert said[0].endswith("50.0 % less than fifo.")
    assert said[-1].startswith("With 2 seeds there is no interval")


def test_a_policy_that_saves_by_delaying_is_told_on():
    runs = (
        summary("edf", 0, 20.0, mean_completion_s=3600.0),
        summary("slow", 0, 10.0, mean_completion_s=7200.0, late_jobs=2),
    )
    said = " ".join(verdict(runs, "edf"))
    assert "Its jobs take longer: 2 h from submission to completion on average, against 1 h." in said
    assert "More of its jobs are late: 2 jobs a run end late, against 0." in said


def test_nothing_is_said_of_delays_that_are_none():
    runs = (summary("edf", 0, 20.0, mean_completion_s=3600.0), summary("quick", 0, 10.0, mean_completion_s=3600.0))
    assert not any("longer" in sentence or "late:" in sentence for sentence in verdict(runs, "edf"))


def test_policies_that_cost_the_same_are_said_to():
    said = verdict(costs(a=[10.0] * 5, b=[10.0] * 5, costly=[20.0] * 5), "costly")
    assert said[1] == "b costs the same."
    assert verdict(costs(a=[10.0] * 5, b=[10.0] * 5), "b")[0].endswith("as much as b.")


def test_a_reference_that_costs_nothing_has_no_share_to_save():
    assert verdict(costs(a=[0.0] * 5, b=[0.0] * 5), "b")[0].endswith("as much as b.")


def test_one_policy_alone_is_not_compared():
    assert verdict(costs(edf=[10.0] * 5), "edf") == (
        "edf costs 10.00 € a run, 10.00 € for energy and 0.00 € for late jobs.",
    )


def test_a_saving_is_paired_by_seed_whatever_the_order_of_the_runs():
    runs = costs(edf=[1.0, 20, 3, 40, 5], fifo=[2.0, 40, 6, 80, 10])
    assert saving_against(runs[::-1], "edf", "fifo").interval == pytest.approx((0.5, 0.5))


def test_a_policy_that_saves_tardiness_at_the_cost_of_energy_is_said_to():
    runs = (summary("edf", 0, 10.0, 90.0), summary("sts-x", 0, 12.0, 0.0))
    assert "Its energy costs 20.0 % more: what it saves is the cost of late jobs." in verdict(runs, "edf")
