import ast
import json
import sys
from pathlib import Path
from typing import Any

import pytest

import gpusched_env.audit
from gpusched_env.audit import Difference, audit
from refusals import refused

INSTANCE: dict[str, Any] = {
    "format": "gpusched instance",
    "version": 2,
    "name": "by hand",
    "seed": 5,
    "energy_price_eur_per_kwh": 0.2,
    "pue": 1.5,
    "gpu_types": {
        "name": ["G"],
        "gpu_power_w": [300.0],
        "node_base_power_w": [200.0],
        "memory_gib": [16.0],
        "max_gpus_per_node": [4],
    },
    "nodes": {"gpu_type": ["G"], "gpus": [3]},
    "configurations": {"gpu_type": ["G", "G"], "gpus_per_node": [1, 2], "nodes": [1, 1], "share": [1.0, 1.0]},
    "jobs": {
        "submission_s": [0.0, 3600.0],
        "due_s": [7200.0, 9000.0],
        "tardiness_weight_eur_per_s": [0.03, 0.01],
        "max_epochs": [20.0, 40.0],
        "epochs_needed": [20.0, 10.0],
        "memory_gib": [4.0, 16.0],
        "restart_s": [60.0, 50.0],
        "application": [0, 0],
        "distribution": [1, 0],
        "seconds_per_epoch": [[500.0, 360.0], [720.0, None]],
    },
    "applications": ["a"],
    "distributions": [
        {"family": "histogram", "edges": [0.0, 0.25, 1.0], "survival": [1.0, 0.5]},
        {"family": "certain", "edges": [0.0, 1.0], "survival": [1.0]},
    ],
    "interference": None,
}
INTERVALS = """job,node,gpus,gpu,configuration,start_s,ready_s,end_s,epochs
0,0,2,-1,Gx2,0.0,0.0,7200.0,20.0
1,0,1,-1,Gx1,3600.0,3600.0,10800.0,10.0
"""
JOBS = """job,submission_s,due_s,start_s,completion_s,epochs_needed,energy_eur,tardiness_eur,switches
0,0.0,7200.0,0.0,7200.0,20.0,0.46,0.0,0
1,3600.0,9000.0,3600.0,10800.0,10.0,0.26,18.0,0
"""
RUN: dict[str, Any] = {
    "format": "gpusched run",
    "version": 2,
    "policy": "by hand",
    "seed": 0,
    "energy_eur": 0.72,
    "tardiness_eur": 18.0,
    "total_eur": 18.72,
    "late_jobs": 1,
    "mean_completion_s": 7200.0,
    "rounds": 3,
    "decision_s": 0.01,
    "provenance": {},
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two jobs on one node, written by hand; an hour of the node costs (200 + 300 u)/1000 · 0.2 · 1.5 €.

    Job 0 holds 2 GPUs in hours 1 and 2 (20 epochs of 360 s), job 1 holds 1 GPU in hours 2 and 3 (10 epochs of 720 s).

        hour 1: u = 2,  800 W, 0.24 €: job 0 0.24 €
        hour 2: u = 3, 1100 W, 0.33 €: job 0 2/3 = 0.22 €, job 1 1/3 = 0.11 €
        hour 3: u = 1,  500 W, 0.15 €: job 1 0.15 €
        sum            0.72 €: job 0 0.46 €, job 1 0.26 €

    Job 1 ends 1,800 s after its due date, at 0.01 €/s: 18 €. Both jobs stay for 7,200 s.
    """
    (tmp_path / "instance.json").write_text(json.dumps(INSTANCE), encoding="utf-8")
    (tmp_path / "intervals.csv").write_text(INTERVALS, encoding="utf-8")
    (tmp_path / "jobs.csv").write_text(JOBS, encoding="utf-8")
    (tmp_path / "run.json").write_text(json.dumps(RUN), encoding="utf-8")
    return tmp_path


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert text.count(old) == 1, f"{old!r} is not once in {path.name}"
    path.write_text(text.replace(old, new), encoding="utf-8")


def changed(document: dict[str, Any], field: str, value: object) -> dict[str, Any]:
    """Return a copy of `document` in which `field`, such as `jobs.due_s[1]`, has another value."""
    copied = json.loads(json.dumps(document))
    *way, last = [int(key) if key.isdigit() else key for key in field.replace("]", "").replace("[", ".").split(".")]
    place = copied
    for key in way:
        place = place[key]
    place[last] = value
    return copied


def test_the_folder_computed_by_hand_audits_clean(folder):
    assert audit(folder) == []
    assert audit(str(folder)) == []


@pytest.mark.parametrize(
    ("name", "by_hand"),
    [
        ("energy_eur", 0.72),
        ("tardiness_eur", 18.0),
        ("total_eur", 18.72),
        ("late_jobs", 1),
        ("mean_completion_s", 7200),
    ],
)
def test_each_total_is_recomputed(folder, name, by_hand):
    (folder / "run.json").write_text(json.dumps({**RUN, name: 99.0}), encoding="utf-8")
    assert audit(folder) == [Difference("run.json", 99.0, pytest.approx(by_hand, rel=1e-12), name)]


@pytest.mark.parametrize("job", [0, 1])
@pytest.mark.parametrize("column", range(1, 9))
def test_each_column_of_each_job_is_recomputed(folder, job, column):
    lines = [line.split(",") for line in JOBS.splitlines()]
    by_hand = float(lines[job + 1][column])
    lines[job + 1][column] = "77"
    (folder / "jobs.csv").write_text("\n".join(map(",".join, lines)), encoding="utf-8")
    (difference,) = audit(folder)
    assert difference.where == f"jobs.csv line {job + 2} (job {job})"
    assert difference.recorded == 77.0
    assert difference.recomputed == pytest.approx(by_hand, rel=1e-12)
    assert lines[0][column] in difference.what


def test_amounts_are_compared_to_a_billionth(folder):
    (folder / "run.json").write_text(json.dumps({**RUN, "energy_eur": 0.72 * (1 + 5e-10)}), encoding="utf-8")
    assert audit(folder) == []
    (folder / "run.json").write_text(json.dumps({**RUN, "energy_eur": 0.72 * (1 + 2e-9)}), encoding="utf-8")
    assert [difference.what for difference in audit(folder)] == ["energy_eur"]


def test_a_difference_reads_as_a_sentence():
    assert str(Difference("run.json", 1.0, 2.0, "energy_eur")) == "run.json: energy_eur: recorded 1.0, recomputed 2.0"


def test_a_restart_overhead_that_is_not_taken_is_named(folder):
    """Job 0 changes to 1 GPU after 10 epochs: 60 s without progress are due, then 10 epochs of 500 s."""
    edit(
        folder / "intervals.csv",
        "0,0,2,-1,Gx2,0.0,0.0,7200.0,20.0",
        "0,0,2,-1,Gx2,0.0,0.0,3600.0,10.0\n0,0,1,-1,Gx1,3600.0,3600.0,8600.0,10.0",
    )
    edit(folder / "jobs.csv", "0.0,7200.0,20.0,0.46,0.0,0", "0.0,8600.0,20.0,0.46,0.0,1")
    first = audit(folder)[0]
    assert first.where == "intervals.csv line 3 (job 0)"
    assert first.what.startswith("ready_s")
    assert (first.recorded, first.recomputed) == (3600.0, 3660.0)


def test_a_pause_counts_as_two_switches_and_costs_a_restart(folder):
    """Job 0 rests from 3,600 to 3,900 s, restarts until 3,960 s, and ends after ten more epochs at 7,560 s."""
    edit(folder / "intervals.csv", "0,0,2,-1,Gx2,0.0,0.0,7200.0,20.0", "0,0,2,-1,Gx2,0.0,0.0,3600.0,10.0")
    edit(folder / "intervals.csv", "10800.0,10.0\n", "10800.0,10.0\n0,0,2,-1,Gx2,3900.0,3960.0,7560.0,10.0\n")
    edit(folder / "jobs.csv", "0.0,7200.0,20.0,0.46,0.0,0", "0.0,7560.0,20.0,0.46,10.8,2")
    assert {difference.what for difference in audit(folder)} == {
        "energy_eur",
        "tardiness_eur",
        "total_eur",
        "late_jobs",
        "mean_completion_s",
    }


def test_a_node_with_one_gpu_too_few_is_named_once_with_the_lines_on_it(folder):
    """Jobs 0 and 1 hold 3 GPUs from 3,600 to 7,200 s."""
    edit(folder / "instance.json", '"gpus": [3]', '"gpus": [2]')
    where = "intervals.csv lines 2, 3 (node 0 from 3600.0 s)"
    assert audit(folder) == [Difference(where, 3, 2, "busy GPUs, and GPUs of the node")]


def test_an_interval_that_ends_before_it_starts_is_named(folder):
    edit(folder / "intervals.csv", "3600.0,3600.0,10800.0,10.0", "3600.0,3600.0,3500.0,10.0")
    what = "end, after the start [s]"
    assert audit(folder)[0] == Difference("intervals.csv line 3 (job 1)", 3500.0, 3600.0, what)


def test_a_configuration_that_is_not_allowed_is_named(folder):
    edit(folder / "intervals.csv", "1,0,1,-1,Gx1,", "1,0,2,-1,Gx2,")
    first = audit(folder)[0]
    assert first == Difference("intervals.csv line 3 (job 1)", "Gx2", "not allowed", "configuration of the job")


def test_a_job_that_needs_more_memory_than_its_gpu_has_is_named(folder):
    edit(folder / "instance.json", '"memory_gib": [4.0, 16.0]', '"memory_gib": [4.0, 16.5]')
    (difference,) = audit(folder)
    assert (difference.where, difference.recorded, difference.recomputed) == (
        "intervals.csv line 3 (job 1)",
        16.5,
        16.0,
    )
    assert "memory" in difference.what


def test_a_job_that_goes_on_after_its_epochs_are_done_is_named(folder):
    """Job 0 does 20 epochs in 7,200 s, then holds a GPU for 560 s more (60 s restart, one epoch of 500 s)."""
    edit(folder / "intervals.csv", "1,0,1", "0,0,1,-1,Gx1,7200.0,7260.0,7760.0,1.0\n1,0,1")
    whats = [(difference.where, difference.recorded, difference.recomputed) for difference in audit(folder)]
    assert whats[0] == ("jobs.csv line 2 (job 0)", 20.0, 21.0)
    edit(folder / "intervals.csv", "7200.0,20.0", "7560.0,21.0")
    whats = [(difference.where, difference.recorded, difference.recomputed) for difference in audit(folder)]
    assert ("intervals.csv line 2 (job 0)", 20.0, 21.0) in whats


@pytest.mark.parametrize("file", ["instance.json", "intervals.csv", "jobs.csv", "run.json"])
def test_a_missing_file_is_one_error(folder, file):
    (folder / file).unlink()
    with refused(f"{folder}/{file}", "No such file or directory"):
        audit(folder)


def test_a_missing_folder_is_one_error(tmp_path):
    with refused("folder", allowed="a run folder"):
        audit(tmp_path / "nowhere")


@pytest.mark.parametrize(
    ("file", "old", "new", "field"),
    [
        ("run.json", '"version": 2', '"version": 1', "run.json: version"),
        ("run.json", "gpusched run", "run", "run.json: format"),
        ("run.json", '"total_eur": 18.72', '"total_eur": NaN', "run.json: total_eur"),
        ("run.json", '"late_jobs"', '"late"', "run.json: late_jobs"),
        ("run.json", '{"format"', '"format"', "run.json"),
        ("instance.json", '"version": 2', '"version": "2"', "instance.json: version"),
        ("instance.json", '"pue": 1.5', '"pue": true', "instance.json: pue"),
        ("instance.json", '"gpus": [3]', '"gpus": [3, 3]', "instance.json: nodes.gpus"),
        ("instance.json", '"gpus": [3]', '"gpus": [3.5]', "instance.json: nodes.gpus[0]"),
        ("instance.json", '"gpu_type": ["G"]', '"gpu_type": ["H"]', "instance.json: nodes.gpu_type[0]"),
        ("instance.json", '"share": [1.0, 1.0]', '"share": [1.0, 1.5]', "instance.json: configurations.share[1]"),
        ("instance.json", "[720.0, null]", "[720.0]", "instance.json: jobs.seconds_per_epoch[1]"),
        ("instance.json", "[720.0, null]", "[-720.0, null]", "instance.json: jobs.seconds_per_epoch[1]"),
        ("intervals.csv", "ready_s", "ready", "intervals.csv: column ready_s"),
        ("intervals.csv", "7200.0,20.0", "nan,20.0", "intervals.csv line 2, end_s"),
        ("intervals.csv", "7200.0,20.0", "7200.0", "intervals.csv line 2"),
        ("intervals.csv", "1,0,1,-1,Gx1", "2,0,1,-1,Gx1", "intervals.csv line 3, job"),
        ("intervals.csv", "1,0,1,-1,Gx1", "1,-1,1,-1,Gx1", "intervals.csv line 3, node"),
        ("intervals.csv", "1,0,1,-1,Gx1", "1,0,1,-1,Gx7", "intervals.csv line 3, configuration"),
        ("jobs.csv", "0.46", "", "jobs.csv line 2, energy_eur"),
        ("jobs.csv", "0,0.0,7200.0", "1,0.0,7200.0", "jobs.csv line 2, job"),
        ("jobs.csv", "1,3600.0,9000.0,3600.0,10800.0,10.0,0.26,18.0,0\n", "", "jobs.csv: lines"),
    ],
)
def test_a_malformed_folder_is_one_error_that_names_the_field(folder, file, old, new, field):
    edit(folder / file, old, new)
    with refused(field):
        audit(folder)


@pytest.mark.parametrize(
    ("field", "bad"),
    [
        ("energy_price_eur_per_kwh", -0.2),
        ("pue", -1.5),
        ("pue", 0.9),
        ("jobs.restart_s[0]", -60.0),
        ("jobs.start_s", [0.0]),
        ("jobs.resume_s", [0.0]),
        ("jobs.opportunistic", [True]),
        ("gpu_types.name", [""]),
        ("gpu_types.name", []),
        ("gpu_types.gpu_power_w[0]", 0.0),
        ("gpu_types.node_base_power_w[0]", -200.0),
        ("gpu_types.memory_gib[0]", 0.0),
        ("gpu_types.max_gpus_per_node[0]", 1025),
        ("gpu_types.max_gpus_per_node[0]", 2.5),
        ("nodes.gpu_type", []),
        ("nodes.gpus[0]", 0),
        ("nodes.gpus[0]", 5),
        ("configurations.gpus_per_node[1]", 0),
        ("configurations.nodes[0]", 0),
        ("configurations", {"gpu_type": ["G", "G"], "gpus_per_node": [2, 2], "nodes": [1, 1], "share": [1, 1]}),
        ("jobs.restart_s[0]", 1.1e12),
        ("jobs.submission_s", []),
        ("jobs.submission_s[1]", 1.1e12),
        ("jobs.due_s[1]", 1.1e12),
        ("jobs.seconds_per_epoch[0]", [1e12, 360.0]),
        ("jobs.submission_s[0]", -1.0),
        ("jobs.submission_s[1]", -1.0),
        ("jobs.due_s[1]", 3599.0),
        ("jobs.tardiness_weight_eur_per_s[0]", -0.03),
        ("jobs.max_epochs[0]", 0.0),
        ("jobs.epochs_needed[0]", 20.1),
        ("jobs.epochs_needed[1]", 0.0),
        ("jobs.memory_gib[1]", -16.0),
        ("jobs.application[1]", 1),
        ("jobs.application[1]", -1),
        ("jobs.distribution[0]", 2),
        ("jobs.distribution[0]", -1),
        ("jobs.seconds_per_epoch[1]", [None, None]),
        ("jobs.seconds_per_epoch[1]", [0.0, None]),
        ("distributions[0].edges", [0.0, 0.25, 0.9]),
        ("distributions[0].edges", [0.0, 0.0, 1.0]),
        ("distributions[0].edges", []),
        ("distributions[0].survival", [0.9, 0.5]),
        ("distributions[0].survival", [1.0, 1.1]),
        ("distributions[0].survival[1]", -0.5),
        ("distributions[0].survival", [1.0]),
    ],
)
def test_an_instance_that_cannot_be_is_one_error_that_names_the_field(folder, field, bad):
    document = changed(INSTANCE, field, bad)
    (folder / "instance.json").write_text(json.dumps(document), encoding="utf-8")
    with refused(f"instance.json: {field}"):
        audit(folder)


def test_submissions_that_are_not_sorted_are_one_error(folder):
    document = changed(INSTANCE, "jobs.submission_s[0]", 3601.0)
    (folder / "instance.json").write_text(json.dumps(document), encoding="utf-8")
    with refused("instance.json: jobs.submission_s[1]"):
        audit(folder)


@pytest.mark.parametrize(
    ("field", "bad"),
    [
        ("policy", 3),
        ("policy", None),
        ("seed", "0"),
        ("seed", -1),
        ("rounds", "many"),
        ("rounds", 0),
        ("rounds", 2.5),
        ("decision_s", -1),
        ("decision_s", "long"),
        ("provenance", []),
    ],
)
def test_a_fact_of_the_run_that_cannot_be_is_one_error_that_names_the_field(folder, field, bad):
    (folder / "run.json").write_text(json.dumps(changed(RUN, field, bad)), encoding="utf-8")
    with refused(f"run.json: {field}"):
        audit(folder)


@pytest.mark.parametrize("field", ["policy", "seed", "rounds", "decision_s", "provenance"])
def test_a_fact_of_the_run_that_is_missing_is_one_error(folder, field):
    (folder / "run.json").write_text(json.dumps({k: v for k, v in RUN.items() if k != field}), encoding="utf-8")
    with refused(f"run.json: {field}", None) as caught:
        audit(folder)
    assert caught.value.field == f"run.json: {field}"


def test_the_seconds_of_decision_may_be_unknown(folder):
    (folder / "run.json").write_text(json.dumps(changed(RUN, "decision_s", None)), encoding="utf-8")
    assert audit(folder) == []


def test_values_at_the_ends_of_their_ranges_are_allowed(folder):
    """Free energy, no restart, a node as large as its type allows: the audit reports costs, and no error."""
    document = INSTANCE
    for field, value in (
        ("energy_price_eur_per_kwh", 0.0),
        ("pue", 1.0),
        ("jobs.restart_s", [0.0, 0.0]),
        ("gpu_types.node_base_power_w[0]", 0.0),
        ("gpu_types.max_gpus_per_node[0]", 3),
        ("jobs.tardiness_weight_eur_per_s", [0.0, 0.0]),
        ("distributions[0].survival", [1.0, 0.0]),
    ):
        document = changed(document, field, value)
    (folder / "instance.json").write_text(json.dumps(document), encoding="utf-8")
    assert {difference.what for difference in audit(folder)} == {"energy_eur", "tardiness_eur", "total_eur"}


def test_lines_out_of_order_are_named(folder):
    heading, first, second = INTERVALS.splitlines()
    (folder / "intervals.csv").write_text(f"{heading}\n{second}\n{first}", encoding="utf-8")
    what = "order: start, job, node, not before those of the line above"
    assert audit(folder) == [Difference("intervals.csv line 3 (job 0)", (0.0, 0, 0), (3600.0, 1, 0), what)]


def test_an_interval_that_is_split_in_two_is_named(folder):
    """Job 0 makes 5 of its epochs in the first half hour, and goes on."""
    edit(
        folder / "intervals.csv",
        "0,0,2,-1,Gx2,0.0,0.0,7200.0,20.0\n",
        "0,0,2,-1,Gx2,0.0,0.0,1800.0,5.0\n0,0,2,-1,Gx2,1800.0,1800.0,7200.0,15.0\n",
    )
    [difference] = audit(folder)
    assert (difference.where, difference.recorded) == ("intervals.csv line 3 (job 0)", 1800.0)
    assert difference.what == "start: it continues what line 2 holds, with which it is one interval"


def test_fewer_rounds_than_the_intervals_tell_of_are_named(folder):
    what = "rounds, and different times at which an interval begins, or ends before its job does"
    for rounds, found in ((2, []), (1, [Difference("run.json", 1, 2, what)])):
        (folder / "run.json").write_text(json.dumps(changed(RUN, "rounds", rounds)), encoding="utf-8")
        assert audit(folder) == found


def test_a_pause_is_a_round_of_its_own(folder):
    """Intervals begin at 0, 3,600 and 3,900 s, and job 0 stops at 3,000 s."""
    edit(folder / "intervals.csv", "0.0,0.0,7200.0,20.0\n", "0.0,0.0,3000.0,10.0\n")
    edit(folder / "intervals.csv", "10800.0,10.0\n", "10800.0,10.0\n0,0,2,-1,Gx2,3900.0,3960.0,7560.0,10.0\n")
    rounds = [difference for difference in audit(folder) if difference.what.startswith("rounds")]
    assert [(difference.recorded, difference.recomputed) for difference in rounds] == [(3, 4)]


FACTS = {"policy": "by hand", "seed": 0, "instance": "by hand", "instance_seed": 5, "scenario": {"name": "by hand"}}


@pytest.mark.parametrize(
    ("fact", "bad"),
    [("policy", "edf"), ("seed", 1), ("instance", "high"), ("instance_seed", 6), ("scenario", {"name": "high"})],
)
def test_a_fact_that_the_folder_gives_otherwise_elsewhere_is_named(folder, fact, bad):
    (folder / "run.json").write_text(json.dumps(changed(RUN, "provenance", {"facts": FACTS})), encoding="utf-8")
    assert audit(folder) == []
    facts = {"facts": {**FACTS, fact: bad}}
    (folder / "run.json").write_text(json.dumps(changed(RUN, "provenance", facts)), encoding="utf-8")
    [difference] = audit(folder)
    assert difference.where.startswith(f"run.json: provenance.facts.{fact}")


@pytest.mark.parametrize(
    ("place", "field"),
    [
        ("", "instance.json: colour"),
        ("gpu_types.", "instance.json: gpu_types.colour"),
        ("nodes.", "instance.json: nodes.colour"),
        ("configurations.", "instance.json: configurations.colour"),
        ("jobs.", "instance.json: jobs.colour"),
        ("distributions[1].", "instance.json: distributions[1].colour"),
        ("interference.", "instance.json: interference.colour"),
    ],
)
def test_a_field_that_no_instance_has_is_one_error(folder, place, field):
    document = changed(INSTANCE, "interference", {"slowdown": [[[1.0]]]})
    (folder / "instance.json").write_text(json.dumps(changed(document, f"{place}colour", [])), encoding="utf-8")
    with refused(field, "...", "no such field") as caught:
        audit(folder)
    assert caught.value.field == field


@pytest.mark.parametrize("field", ["name", "seed", "distributions[0].family", "interference"])
def test_a_field_of_an_instance_must_be_there(folder, field):
    document = json.loads(json.dumps(INSTANCE))
    place = document["distributions"][0] if "family" in field else document
    del place[field.rpartition(".")[2]]
    (folder / "instance.json").write_text(json.dumps(document), encoding="utf-8")
    with refused(f"instance.json: {field}", None) as caught:
        audit(folder)
    assert caught.value.field == f"instance.json: {field}"


def test_amounts_are_compared_however_small_they_are(folder):
    """At a price of 0.2e-14 €/kWh and a weight of 1e-16 €/s, all of it is less than 1e-12 €."""
    document = changed(INSTANCE, "energy_price_eur_per_kwh", 0.2e-14)
    document = changed(document, "jobs.tardiness_weight_eur_per_s", [3e-16, 1e-16])
    (folder / "instance.json").write_text(json.dumps(document), encoding="utf-8")
    run = {**RUN, "energy_eur": 0.72e-14, "tardiness_eur": 18e-14, "total_eur": 18.72e-14}
    (folder / "run.json").write_text(json.dumps(run), encoding="utf-8")
    text = JOBS.replace("0.46,0.0", "0.46e-14,0.0").replace("0.26,18.0", "0.26e-14,18e-14")
    (folder / "jobs.csv").write_text(text, encoding="utf-8")
    assert audit(folder) == []
    (folder / "run.json").write_text(json.dumps({**run, "energy_eur": 0.73e-14}), encoding="utf-8")
    assert [difference.what for difference in audit(folder)] == ["energy_eur"]


def test_the_audit_imports_the_standard_library_the_errors_and_the_parts_of_mechanisms_alone():
    sources = list(Path(gpusched_env.audit.__file__).parent.glob("**/*.py"))
    assert len(sources) > 3
    for source in sources:
        for node in ast.walk(ast.parse(source.read_text(encoding="utf-8"))):
            modules = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom):
                assert node.level == 0, f"{source.name}: relative import"
                modules = [node.module or ""]
            for module in modules:
                own = module.startswith(("gpusched_env.audit.", "gpusched_env.errors", "gpusched_env.parts"))
                assert own or module.partition(".")[0] in sys.stdlib_module_names, f"{source.name} imports {module}"
