"""Two nodes of two GPUs, a GPU that three jobs share, and a job on both nodes, worked out by hand.

An hour of a node costs (200 + 300 u)/1000 · 0.2 · 1.5 €: 0.15 € with one busy GPU, 0.24 € with two. Applications a and
b take longer on one GPU: a beside b 2 times as long, b beside a 1.2 times, b beside b 1.3 times.

    job   application   restart   what it holds
    0     a             600 s     half of GPU 0 of node 0, from 7,200 s on half of GPU 1 of node 1 (300 s an epoch)
    1     b               0 s     a quarter of GPU 0 of node 0 (600 s an epoch)
    2     b             900 s     a whole GPU of node 0 (450 s), from 5,400 s on a quarter of GPU 0 there (600 s)
    3     b             100 s     nodes 0 and 1 (200 s an epoch)

Epochs
    job 0: 12 alone until 3,600 s; 1,800 s/600 s = 3 beside job 1 until 5,400 s; beside jobs 1 and 2, 1 + 1 + 1 = 3
        times as long, 1,800 s/900 s = 2 until 7,200 s; 3 alone, from 7,800 s to 8,700 s: 20
    job 1: from 3,600 s, 1,800 s/720 s = 2.5; beside jobs 0 and 2 (which restarts until 6,300 s) 1 + 0.2 + 0.3 = 1.5
        times as long, 1,800 s/900 s = 2; from 7,200 s beside job 2, 2,340 s/780 s = 3 until 9,540 s: 7.5
    job 2: 1,800 s/450 s = 4 until 5,400 s; from 6,300 s 900 s/900 s = 1; from 7,200 s 3 until 9,540 s: 8
    job 3: 3,600 s/200 s = 18 from 9,540 s to 13,140 s

Energy
    node 0: 0 to 3,600 s 0.15 € for job 0; to 5,400 s 0.12 €: half of it for job 2, the shared GPU's half by share,
        0.04 € for job 0 and 0.02 € for job 1; to 7,200 s 0.075 €: 0.0375 € for job 0, 0.01875 € each for jobs 1 and 2;
        to 9,540 s 0.0975 €: 0.04875 € each for jobs 1 and 2; to 13,140 s 0.24 € for job 3
    node 1: 7,200 s to 8,700 s 0.0625 € for job 0; 9,540 s to 13,140 s 0.24 € for job 3
    sum 0.985 €: 0.29 €, 0.0875 €, 0.1275 €, 0.48 €

Job 0 is 60 s late, at 0.1 €/s; job 3 is 140 s late, at 0.05 €/s. They stay for 8,700, 5,940, 5,940 and 4,140 s.
"""

import json
from pathlib import Path
from typing import Any

import pytest

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
    "nodes": {"gpu_type": ["G", "G"], "gpus": [2, 2]},
    "configurations": {
        "gpu_type": ["G", "G", "G", "G"],
        "gpus_per_node": [1, 1, 1, 2],
        "nodes": [1, 1, 1, 2],
        "share": [1.0, 0.5, 0.25, 1.0],
    },
    "jobs": {
        "submission_s": [0.0, 3600.0, 3600.0, 9000.0],
        "due_s": [8640.0, 10000.0, 10000.0, 13000.0],
        "tardiness_weight_eur_per_s": [0.1, 0.1, 0.1, 0.05],
        "max_epochs": [20.0, 10.0, 8.0, 18.0],
        "epochs_needed": [20.0, 7.5, 8.0, 18.0],
        "memory_gib": [8.0, 4.0, 4.0, 16.0],
        "restart_s": [600.0, 0.0, 900.0, 100.0],
        "application": [0, 1, 1, 1],
        "distribution": [0, 0, 0, 0],
        "seconds_per_epoch": [
            [280.0, 300.0, None, None],
            [None, None, 600.0, None],
            [450.0, None, 600.0, None],
            [800.0, None, None, 200.0],
        ],
    },
    "applications": ["a", "b"],
    "distributions": [{"family": "certain", "edges": [0.0, 1.0], "survival": [1.0]}],
    "interference": {"slowdown": [[[1.1, 2.0], [1.2, 1.3]]]},
}
LINES = [  # The first of them is line 2 of the file.
    "0,0,1,0,Gx0.5,0.0,0.0,7200.0,17.0",
    "1,0,1,0,Gx0.25,3600.0,3600.0,9540.0,7.5",
    "2,0,1,-1,Gx1,3600.0,3600.0,5400.0,4.0",
    "2,0,1,0,Gx0.25,5400.0,6300.0,9540.0,4.0",
    "0,1,1,1,Gx0.5,7200.0,7800.0,8700.0,3.0",
    "3,0,2,-1,2*Gx2,9540.0,9540.0,13140.0,18.0",
    "3,1,2,-1,2*Gx2,9540.0,9540.0,13140.0,18.0",
]
JOBS = """job,submission_s,due_s,start_s,completion_s,epochs_needed,energy_eur,tardiness_eur,switches
0,0.0,8640.0,0.0,8700.0,20.0,0.29,6.0,1
1,3600.0,10000.0,3600.0,9540.0,7.5,0.0875,0.0,0
2,3600.0,10000.0,3600.0,9540.0,8.0,0.1275,0.0,1
3,9000.0,13000.0,9540.0,13140.0,18.0,0.48,7.0,0
"""
RUN: dict[str, Any] = {
    "format": "gpusched run",
    "version": 2,
    "policy": "by hand",
    "seed": 0,
    "energy_eur": 0.985,
    "tardiness_eur": 13.0,
    "total_eur": 13.985,
    "late_jobs": 2,
    "mean_completion_s": 6180.0,
    "rounds": 7,
    "decision_s": None,
    "provenance": {},
}
MONEY = {"energy_eur", "tardiness_eur", "total_eur", "late_jobs", "mean_completion_s"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_instance(tmp_path)
    write_lines(tmp_path, LINES)
    (tmp_path / "jobs.csv").write_text(JOBS, encoding="utf-8")
    (tmp_path / "run.json").write_text(json.dumps(RUN), encoding="utf-8")
    return tmp_path


def write_instance(folder: Path, **tables: object) -> None:
    """Write the instance; a dictionary, such as `jobs`, replaces columns of that table, anything else the field."""
    document = json.loads(json.dumps(INSTANCE))
    for name, value in tables.items():
        document[name] = {**document[name], **value} if isinstance(value, dict) else value
    (folder / "instance.json").write_text(json.dumps(document), encoding="utf-8")


def write_lines(folder: Path, lines: list[str]) -> None:
    heading = "job,node,gpus,gpu,configuration,start_s,ready_s,end_s,epochs"
    (folder / "intervals.csv").write_text("\n".join([heading, *lines]) + "\n", encoding="utf-8")


def audit_with(folder: Path, changes: dict[int, str | None]) -> list[Difference]:
    """Audit the run with other lines in intervals.csv, by their number in the file; None leaves one out."""
    lines = [changes.get(number, line) for number, line in enumerate(LINES, start=2)]
    write_lines(folder, [line for line in lines if line is not None])
    return audit(folder)


def whats(differences: list[Difference]) -> set[str]:
    return {difference.what for difference in differences}


def test_the_run_computed_by_hand_audits_clean(folder):
    assert audit(folder) == []


@pytest.mark.parametrize("column", range(9))
@pytest.mark.parametrize("number", range(2, 9))
def test_every_value_of_every_interval_is_checked(folder, number, column):
    values = LINES[number - 2].split(",")
    if column < 4:
        values[column] = {"0": "1", "1": "-1" if column == 3 else "0", "-1": "0"}.get(values[column], "1")
    elif column == 4:
        values[column] = "Gx0.5" if values[column] == "Gx1" else "Gx1"
    else:
        values[column] = repr(float(values[column]) + 1e-4)
    assert audit_with(folder, {number: ",".join(values)})


@pytest.mark.parametrize("job", range(4))
@pytest.mark.parametrize("column", ["energy_eur", "switches"])
def test_attributions_and_switches_of_every_job_are_recomputed(folder, job, column):
    rows = [line.split(",") for line in JOBS.splitlines()]
    index = rows[0].index(column)
    by_hand = float(rows[job + 1][index])
    rows[job + 1][index] = "3"
    (folder / "jobs.csv").write_text("\n".join(map(",".join, rows)), encoding="utf-8")
    where = f"jobs.csv line {job + 2} (job {job})"
    assert audit(folder) == [Difference(where, 3, pytest.approx(by_hand, rel=1e-12), column)]


def test_a_shared_gpu_is_busy_once_and_its_node_is_full_when_there_are_more(folder):
    """Jobs 0, 1 and 2 hold two GPUs of node 0 from 3,600 s on: with one GPU on it, that is one too many."""
    write_instance(folder, nodes={"gpus": [1, 2]}, configurations={"nodes": [1, 1, 1, 1]})
    lines = {7: "3,1,2,-1,Gx2,9540.0,9540.0,13140.0,18.0", 8: None}
    first = audit_with(folder, lines)[0]
    where = "intervals.csv lines 2, 3, 4 (node 0 from 3600.0 s)"
    assert first == Difference(where, 2, 1, "busy GPUs, and GPUs of the node")


def test_shares_beyond_the_whole_gpu_are_named_once_with_their_lines(folder):
    """Jobs 0, 1 and 2 would hold half of GPU 0 each from 5,400 s on; two halves fit again from 7,200 s on."""
    write_instance(folder, jobs={"memory_gib": [0.0] * 4, "seconds_per_epoch": [[1.0] * 4] * 4})
    halves = {n: LINES[n - 2].replace("Gx0.25", "Gx0.5") for n in (3, 5)}
    # Job 2 goes on in a line of its own from 6,000 s on: still the same GPU with too much on it.
    halves[5] = halves[5].replace("9540.0,4.0", "6000.0,0.0") + "\n2,0,1,0,Gx0.5,6000.0,6900.0,9540.0,4.0"
    found = audit_with(folder, halves)
    where = "intervals.csv lines 2, 3, 5 (node 0, GPU 0 from 5400.0 s)"
    assert found[0] == Difference(where, 1.5, 1.0, "shares held of the GPU, and the whole of it")
    assert sum(difference.what == found[0].what for difference in found) == 1


def test_shares_that_sum_to_one_but_for_rounding_fit(folder):
    """0.3 + 0.6 + 0.1000000005 is above 1 by half a billionth; 1.00000001 is too much."""
    tenths = {"gpu_type": ["G"] * 3, "gpus_per_node": [1] * 3, "nodes": [1] * 3}
    write_instance(folder, configurations=tenths | {"share": [0.3, 0.6, 0.1000000005]}, jobs=three_at_once())
    lines = [f"{job},0,1,0,Gx{share},0.0,0.0,3600.0,1.0" for job, share in enumerate(("0.3", "0.6", "0.1"))]
    write_lines(folder, lines)
    assert "shares held of the GPU, and the whole of it" not in whats(audit(folder))
    write_instance(folder, configurations=tenths | {"share": [0.3, 0.6, 0.10000001]}, jobs=three_at_once())
    assert audit(folder)[0].what == "shares held of the GPU, and the whole of it"


def three_at_once() -> dict[str, object]:
    return {"submission_s": [0.0] * 4, "memory_gib": [0.0] * 4, "seconds_per_epoch": [[3600.0] * 3] * 4}


def test_memory_beyond_the_share_of_a_gpu_is_named(folder):
    write_instance(folder, jobs={"memory_gib": [8.0, 4.5, 4.0, 16.0]})
    what = "memory needed on a GPU, and there [GiB]"
    assert audit(folder) == [Difference("intervals.csv line 3 (job 1)", 4.5, 4.0, what)]


def test_a_share_without_the_number_of_its_gpu_and_whole_gpus_with_one_are_named(folder):
    found = audit_with(folder, {6: LINES[4].replace("0,1,1,1,", "0,1,1,-1,")})
    assert found == [Difference("intervals.csv line 6 (job 0)", -1, "0 to 1", "number of the shared GPU")]
    found = audit_with(folder, {4: LINES[2].replace("-1", "1")})
    assert found == [Difference("intervals.csv line 4 (job 2)", 1, -1, "number of the shared GPU, -1 for whole GPUs")]


def test_a_gpu_that_the_node_does_not_have_is_one_error(folder):
    for bad in ("2", "-2", "1.0"):
        with refused("intervals.csv line 6, gpu"):
            audit_with(folder, {6: LINES[4].replace("0,1,1,1,", f"0,1,1,{bad},")})


def test_a_wrong_slow_down_shows_in_the_intervals_that_it_slows_down(folder):
    write_instance(folder, interference={"slowdown": [[[1.1, 2.0], [1.2, 1.4]]]})
    wrong = {difference.where for difference in audit(folder) if difference.what == "epochs done in the interval"}
    assert wrong == {"intervals.csv line 3 (job 1)", "intervals.csv line 5 (job 2)"}
    write_instance(folder, interference={"slowdown": [[[9.9, 2.0], [1.2, 1.3]]]})
    assert audit(folder) == []  # No two jobs of application a are on one GPU.


def test_without_an_interference_model_jobs_on_a_gpu_do_not_slow_each_other_down(folder):
    """Jobs 0 and 1 would do 7,200 s/300 s = 24 and 5,940 s/600 s = 9.9 epochs in their first intervals."""
    write_instance(folder, interference=None)
    found = {d.where: d.recomputed for d in audit(folder) if d.what == "epochs done in the interval"}
    assert found["intervals.csv line 2 (job 0)"] == pytest.approx(24.0, rel=1e-12)
    assert found["intervals.csv line 3 (job 1)"] == pytest.approx(9.9, rel=1e-12)


def test_a_job_that_restarts_slows_others_down(folder):
    """Job 2 restarts until 6,300 s; were it to begin only then, jobs 0 and 1 would have done more until 7,200 s.

    Job 0: 1.5 epochs in those 900 s rather than 1. Job 1: 900 s/720 s rather than 900 s/900 s.
    """
    found = audit_with(folder, {5: "2,0,1,0,Gx0.25,6300.0,6300.0,9540.0,4.0"})
    epochs = {d.where: d.recomputed for d in found if d.what == "epochs done in the interval"}
    assert epochs["intervals.csv line 2 (job 0)"] == pytest.approx(17.5, rel=1e-12)
    assert epochs["intervals.csv line 3 (job 1)"] == pytest.approx(7.75, rel=1e-12)


def test_each_job_has_its_own_restart_overhead(folder):
    write_instance(folder, jobs={"restart_s": [600.0, 7.0, 800.0, 100.0]})
    first, *_ = audit(folder)
    assert (first.where, first.recorded, first.recomputed) == ("intervals.csv line 5 (job 2)", 6300.0, 6200.0)
    assert first.what.startswith("ready_s")


def test_a_move_to_another_gpu_of_the_node_is_a_switch_and_costs_a_restart(folder):
    """Job 0 goes to GPU 1 of node 0 rather than of node 1: that changes what energy costs, and nothing else."""
    assert whats(audit_with(folder, {6: LINES[4].replace("0,1,1,1,", "0,0,1,1,")})) == {"energy_eur", "total_eur"}


def test_a_pause_on_the_same_shared_gpu_is_two_switches_and_costs_a_restart(folder):
    """Job 2 leaves GPU 0 at 7,200 s after one epoch there, comes back at 8,000 s and restarts until 8,900 s."""
    pause = "2,0,1,0,Gx0.25,5400.0,6300.0,7200.0,1.0\n2,0,1,0,Gx0.25,8000.0,8900.0,9540.0,1.0"
    found = audit_with(folder, {5: pause})
    assert not any(difference.what.startswith("ready_s") for difference in found)
    assert Difference("jobs.csv line 4 (job 2)", 1, 3, "switches") in found


def test_a_job_that_keeps_its_shared_gpu_neither_switches_nor_restarts(folder):
    found = audit_with(folder, {6: LINES[4].replace("0,1,1,1,", "0,0,1,0,")})
    by_what = {difference.what.partition(",")[0]: difference for difference in found}
    assert (by_what["ready_s"].where, by_what["ready_s"].recomputed) == ("intervals.csv line 6 (job 0)", 7200.0)
    assert by_what["switches"] == Difference("jobs.csv line 2 (job 0)", 1, 0, "switches")


@pytest.mark.parametrize("left_out", [7, 8])
def test_a_job_on_too_few_nodes_is_named(folder, left_out):
    found = audit_with(folder, {left_out: None})
    what = "nodes held at once, and different nodes to hold"
    assert found[0] == Difference("intervals.csv line 7 (job 3)", [8 - left_out], 2, what)


def test_a_job_on_too_many_nodes_is_named(folder):
    write_instance(folder, nodes={"gpu_type": ["G"] * 3, "gpus": [2] * 3})
    found = audit_with(folder, {8: LINES[6] + "\n" + LINES[6].replace("3,1,", "3,2,")})
    what = "nodes held at once, and different nodes to hold"
    assert found[0] == Difference("intervals.csv lines 7, 8, 9 (job 3)", [0, 1, 2], 2, what)


def test_a_node_that_ends_before_it_starts_is_named_whichever_of_several_it_is(folder):
    for number in (7, 8):
        found = audit_with(folder, {number: LINES[number - 2].replace("13140.0", "9000.0")})
        what = "end, after the start [s]"
        assert Difference(f"intervals.csv line {number} (job 3)", 9000.0, 9540.0, what) in found


def test_a_job_in_two_places_at_once_is_named(folder):
    """Two lines with one start and one configuration of a single node are two places, not one holding."""
    found = audit_with(folder, {4: LINES[2] + "\n" + LINES[2].replace("2,0,1", "2,1,1")})
    what = "start, not before the job's interval on line 4 ends [s]"
    assert Difference("intervals.csv line 5 (job 2)", 3600.0, 5400.0, what) in found


def test_a_job_that_holds_a_node_twice_is_named(folder):
    what = "nodes held at once, and different nodes to hold"
    found = audit_with(folder, {8: LINES[5]})
    assert found[0] == Difference("intervals.csv lines 7, 8 (job 3)", [0, 0], 2, what)
    found = audit_with(folder, {8: LINES[5] + "\n" + LINES[6]})
    assert found[0] == Difference("intervals.csv lines 7, 8, 9 (job 3)", [0, 0, 1], 2, what)


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ("3,1,2,-1,2*Gx2,9540.0,9540.0,13139.0,18.0", "end_s, as on node 0 (line 7)"),
        ("3,1,2,-1,2*Gx2,9540.0,9540.0,9540.0,18.0", "end_s, as on node 0 (line 7)"),
        ("3,1,2,-1,2*Gx2,9540.0,9541.0,13140.0,18.0", "ready_s, from when on it makes progress [s]"),
        ("3,1,2,-1,2*Gx2,9540.0,9540.0,13140.0,18.1", "epochs done in the interval"),
        ("3,1,1,-1,2*Gx2,9540.0,9540.0,13140.0,18.0", "GPUs of the configuration"),
    ],
)
def test_what_one_of_several_nodes_says_otherwise_is_named_first(folder, line, what):
    first = audit_with(folder, {8: line})[0]
    assert (first.where, first.what) == ("intervals.csv line 8 (job 3)", what)


def test_starts_that_differ_between_nodes_are_two_holdings_on_too_few_nodes(folder):
    found = audit_with(folder, {8: "3,1,2,-1,2*Gx2,9541.0,9541.0,13140.0,18.0"})
    what = "nodes held at once, and different nodes to hold"
    assert [(d.where, d.recorded) for d in found if d.what == what] == [
        ("intervals.csv line 7 (job 3)", [0]),
        ("intervals.csv line 8 (job 3)", [1]),
    ]


def test_whole_nodes_are_exclusive(folder):
    """Job 0 would still be on node 1, of two GPUs, when job 3 takes both of them."""
    found = audit_with(folder, {6: LINES[4].replace("8700.0", "9600.0")})
    where = "intervals.csv lines 6, 8 (node 1 from 9540.0 s)"
    assert found[0] == Difference(where, 3, 2, "busy GPUs, and GPUs of the node")


def test_a_change_of_one_of_several_nodes_is_one_switch_and_costs_a_restart(folder):
    """Job 3 leaves node 1 for node 2 at 11,340 s, after 9 epochs; 100 s of restart, and 9 more until 13,240 s."""
    write_instance(folder, nodes={"gpu_type": ["G"] * 3, "gpus": [2] * 3})
    first = [f"3,{node},2,-1,2*Gx2,9540.0,9540.0,11340.0,9.0" for node in (0, 1)]
    then = [f"3,{node},2,-1,2*Gx2,11340.0,11440.0,13240.0,9.0" for node in (0, 2)]
    (folder / "jobs.csv").write_text(
        JOBS.replace("13140.0,18.0,0.48,7.0,0", "13240.0,18.0,0.48,7.0,1"), encoding="utf-8"
    )
    write_lines(folder, [*LINES[:5], *first, *then])
    assert whats(audit(folder)) <= MONEY
    write_lines(folder, [*LINES[:5], *first, *(line.replace("3,2,", "3,1,") for line in then)])
    stays = [(d.where, d.recomputed) for d in audit(folder) if d.what.startswith(("ready_s", "switches"))]
    assert stays == [
        ("intervals.csv line 9 (job 3)", 11340.0),
        ("intervals.csv line 10 (job 3)", 11340.0),
        ("jobs.csv line 5 (job 3)", 0),
    ]


@pytest.mark.parametrize(
    ("table", "columns", "field"),
    [
        ("configurations", {"share": [1.0, 0.0, 0.25, 1.0]}, "configurations.share[1]"),
        ("configurations", {"share": [1.0, 1.5, 0.25, 1.0]}, "configurations.share[1]"),
        ("configurations", {"nodes": [1, 1, 1, 0]}, "configurations.nodes[3]"),
        ("configurations", {"gpus_per_node": [1, 1, 1, 1]}, "configurations.gpus_per_node[3]"),
        ("configurations", {"share": [1.0, 0.25, 0.25, 1.0]}, "configurations"),
        ("nodes", {"gpus": [2, 3]}, "configurations.gpus_per_node[3]"),
        ("jobs", {"restart_s": [600.0, -1.0, 900.0, 100.0]}, "jobs.restart_s[1]"),
        ("jobs", {"restart_s": [600.0]}, "jobs.restart_s"),
        ("interference", {"slowdown": 2.0}, "interference.slowdown"),
        ("interference", {"slowdown": []}, "interference.slowdown"),
        ("interference", {"slowdown": [[[1.1, 2.0]]]}, "interference.slowdown[0]"),
        ("interference", {"slowdown": [[[1.1, 2.0], [1.2]]]}, "interference.slowdown[0][1]"),
        ("interference", {"slowdown": [[[1.1, 0.9], [1.2, 1.3]]]}, "interference.slowdown[0][0][1]"),
        ("interference", {"slowdown": [[[1.1, None], [1.2, 1.3]]]}, "interference.slowdown[0][0][1]"),
        ("interference", 3, "interference"),
    ],
)
def test_an_instance_that_cannot_be_is_one_error_that_names_the_field(folder, table, columns, field):
    write_instance(folder, **{table: columns})
    with refused(f"instance.json: {field}"):
        audit(folder)


def test_whole_nodes_are_those_of_their_gpu_type(folder):
    """A larger node of another type says nothing about nodes of G; a GPU type without nodes may be named too."""
    columns = {
        "name": ["G", "H", "I"],
        "gpu_power_w": [300.0] * 3,
        "node_base_power_w": [200.0] * 3,
        "memory_gib": [16.0] * 3,
        "max_gpus_per_node": [4] * 3,
    }
    of_type = INSTANCE["interference"]["slowdown"][0]
    write_instance(
        folder,
        gpu_types=columns,
        nodes={"gpu_type": ["G", "G", "H"], "gpus": [2, 2, 4]},
        interference={"slowdown": [of_type, [[9.0, 9.0], [9.0, 9.0]], of_type]},
    )
    assert audit(folder) == []
