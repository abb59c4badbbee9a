"""The recorded times of a trace beside those of its replay, small enough to check by hand."""

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from gpusched_env.workload import Trace
from gpusched_experiments.report.comparison_folder import Compared, comparison_files
from gpusched_experiments.report.comparison_text import comparisons_text
from gpusched_experiments.report.metrics import UNKNOWN
from gpusched_experiments.report.recorded_times import Times, Traced
from gpusched_experiments.report.run_summary import RunSummary
from gpusched_operations.html_report.document import report_html
from gpusched_operations.html_report.runs import comparison_report
from gpusched_operations.html_report.verdict import verdict_of
from refusals import refused
from report_pages import Page, summary

RECORDED = Times(10.0, 20.0, 7200.0, 9000.0)
NO_DUE_DATES = Traced(due_dates=False, recorded=RECORDED)


def run(policy: str, seed: int, energy_eur: float, tardiness_eur: float = 0.0, times: Times = RECORDED) -> RunSummary:
    metrics = replace(
        UNKNOWN, waiting_s=times.waiting_s, p95_waiting_s=times.p95_waiting_s, p95_completion_s=times.p95_completion_s
    )
    values: dict[str, Any] = {"mean_completion_s": times.completion_s, "metrics": metrics}
    return summary(policy, seed, energy_eur, tardiness_eur, **values)


def compared(times: Times = RECORDED, traced: Traced | None = NO_DUE_DATES, rule: str = "exact") -> Compared:
    """Compare sts-x, which needs 2 % more energy and has no late jobs, with the replay and edf, on five seeds."""
    runs = tuple(
        each
        for seed in range(5)
        for each in (
            run("as-traced", seed, 100.0, 900.0, times),
            run("edf", seed, 110.0, 10.0),
            run("sts-x", seed, 102.0),
        )
    )
    return Compared.of(runs, "as-traced", rule, ("Due dates are modelled.",), traced)


def test_the_recorded_times_are_those_of_the_file_whatever_the_cluster_offers():
    """Waits of 10 and 30 s; 100 s on 16 GPUs are 200 s on 8 here, but they took 100 s."""
    trace = Trace(
        "t", np.array([0.0, 5.0]), np.array([50.0, 100.0]), np.array([1.0, 16.0]), start_s=np.array([10.0, 35.0])
    )
    expected = Times(20.0, 29.0, 95.0, 60.0 + 0.95 * 70.0)
    for each in (trace, trace.clip(8)):
        found = Times.of_trace(each)
        assert found is not None
        assert (found.waiting_s, found.p95_waiting_s) == pytest.approx((20.0, 29.0))
        assert (found.completion_s, found.p95_completion_s) == pytest.approx((95.0, expected.p95_completion_s))
    assert Times.of_trace(replace(trace, start_s=None)) is None


@pytest.mark.parametrize(
    ("times", "same"),
    [
        (replace(RECORDED, waiting_s=370.0), True),  # 5 % of two hours are 6 minutes
        (replace(RECORDED, waiting_s=371.0), False),
        (replace(RECORDED, p95_waiting_s=470.0), True),
        (replace(RECORDED, p95_waiting_s=471.0), False),
        (replace(RECORDED, completion_s=6840.0), True),
        (replace(RECORDED, completion_s=6839.0), False),
        (replace(RECORDED, p95_completion_s=9451.0), False),
        (replace(RECORDED, p95_waiting_s=float("nan")), False),
    ],
)
def test_a_replay_may_differ_by_a_minute_or_a_twentieth_of_the_recorded_completion(times, same):
    assert times.is_like(RECORDED) is same


def test_of_short_jobs_a_minute_is_allowed_and_against_another_reference_only_the_replays_saving_is_not_claimed():
    short = Times(1.0, 1.0, 30.0, 60.0)
    assert replace(short, waiting_s=61.0).is_like(short)
    assert not replace(short, waiting_s=62.0).is_like(short)
    found = Compared.of(compared(LATE).runs, "edf", "exact", (), NO_DUE_DATES)
    assert np.isnan(found.rows[0].saving)
    assert found.rows[2].saving == pytest.approx(0.15)


def test_where_the_replay_is_what_ran_both_stand_in_a_table_and_the_savings_are_claimed():
    found = compared()
    table = next(each for each in found.tables("as-traced") if each.title.startswith("Recorded and replayed"))
    assert [row[:2] for row in table.texts()] == [["recorded", "10 s"], ["as-traced, replayed", "10 s"]]
    (note,) = table.notes
    assert note == (
        "as-traced is the schedule that ran: no time differs by more than 1 min or 5 % of the recorded completion, "
        "whichever is more."
    )
    assert found.rows[2].saving == pytest.approx(0.898)


LATE = Times(5000.0, 9000.0, 12000.0, 19000.0)


def test_a_replay_that_is_not_what_ran_is_said_to_be_none_and_nothing_is_saved_against_it():
    found = compared(LATE)
    assert [np.isnan(row.saving) and np.isnan(row.energy_saving) for row in found.rows] == [True, True, True]
    said = verdict_of(found, "as-traced")
    assert said[0].startswith(
        "The replay is not the schedule that ran: replayed wait 1 h 23 min, recorded 10 s; replayed completion"
    )
    rest = " ".join(said[1:])
    assert "as-traced" not in rest
    assert "sts-x 102.00 €, 7.3 % less than edf" in rest
    for form in ("md", "json", "html", "tex"):
        assert "The replay is not the schedule that ran" in comparisons_text((found,), "as-traced", None, form)
    markdown = found.markdown("as-traced", None)
    assert "Saving: n/a, since as-traced is not the schedule that ran." in markdown
    assert "89.8%" not in markdown


def test_where_due_dates_are_modelled_energy_comes_first():
    said = verdict_of(compared(), "as-traced")
    assert said[0] == (
        "Energy of a run: sts-x 102.00 €, 2.0 % more than as-traced (95 % interval 2.0 % to 2.0 %); edf 110.00 €, "
        "10.0 % more (95 % interval 10.0 % to 10.0 %); as-traced 100.00 €."
    )
    assert said[1] == "Due dates are modelled, and so is the cost of tardiness; with it:"
    assert said[2].startswith("sts-x is cheapest: 102.00 € a run")
    given = verdict_of(compared(traced=Traced(due_dates=True, recorded=RECORDED)), "as-traced")
    assert given[0].startswith("sts-x is cheapest")


@pytest.mark.parametrize(("times", "options"), [(RECORDED, 3), (LATE, 2)])
def test_the_page_of_a_folder_says_the_same_and_shows_no_saving_that_is_not_claimed(times, options, tmp_path):
    parts = (compared(times), compared(times, rule="elastic"))
    for name, content in comparison_files(parts, "as-traced", None, {}, {"facts": {}}).items():
        (tmp_path / name).write_text(content, encoding="utf-8")
    data = comparison_report(tmp_path)
    html = report_html(data)
    text = Page(html).text
    assert text.count("The replay is not the schedule that ran") == (
        3 if times is LATE else 0
    )  # in the verdict, and below each table
    for rule in ("exact", "elastic"):
        assert f"Recorded and replayed, GPU demand: {rule}" in text
    assert text.index("What is modelled") < text.index("Costs, GPU demand: exact")
    assert html.split("savings", 1)[1].split("</select>", 1)[0].count("<option>") == options
    assert text.index("What every policy costs") < text.index("Costs, GPU demand: elastic")


def test_results_of_a_trace_that_are_spoilt_are_one_error(tmp_path):
    files = comparison_files((compared(),), "as-traced", None, {}, {"facts": {}})
    document = json.loads(files["results.json"]) | {"traced": {"due_dates": True}}
    (tmp_path / "results.json").write_text(json.dumps(document), encoding="utf-8")
    with refused(f"{tmp_path}/results.json: traced"):
        comparison_report(tmp_path)
