"""`gpusched conform`: what differs, how many answers agree, and what is refused."""

from __future__ import annotations

import gzip
import heapq
import json
import shutil
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from commands import gpusched
from gpusched_baselines import make_policy
from gpusched_baselines.gavel.objectives import las
from gpusched_reproductions.conform.gavel import read_demands
from gpusched_reproductions.conform.slurm import compare
from gpusched_reproductions.conform.slurm_runs import read_runs
from gpusched_reproductions.systems.gaia.queue import TickQueue

ROOT = Path(__file__).parents[3]
PLACES = [folder / "shared" / "data" / "gpuspb" / "reference" for folder in (ROOT.parent, ROOT.parent.parent)]
FOLDER = next((place for place in PLACES if place.is_dir()), PLACES[0])
DEMANDS = FOLDER.parents[1] / "gavel_policies" / "demands_and_answers.json.gz"


@pytest.fixture
def instance(tmp_path: Path) -> Path:
    if not FOLDER.is_dir():
        pytest.skip(f"the published answers are not in {FOLDER}")
    for name in ("high-10-0.csv", "results.csv"):
        shutil.copy(FOLDER / name, tmp_path / name)
    return tmp_path / "high-10-0.csv"


def without(instance: Path, *methods: str) -> None:
    results = instance.parent / "results.csv"
    rows = results.read_text(encoding="utf-8").splitlines()
    kept = [row for row in rows if row.split(",")[3] not in methods]
    results.write_text("\n".join(kept), encoding="utf-8")


def test_answers_that_agree_are_counted(instance):
    without(instance, "STS")
    done = gpusched("conform", "gpuspb", instance)
    assert (done.exit_code, done.stdout.strip()) == (0, "5 of 5 agree")
    assert gpusched("conform", "gpuspb", instance.parent).stdout == done.stdout


def test_an_answer_that_costs_much_less_differs_too(instance):
    done = gpusched("conform", "gpuspb", instance)
    assert done.exit_code == 1
    assert "high-10-0, sts (published as STS): energy [EUR]: published 2758.1100, ours" in done.stdout
    assert done.stdout.rstrip().endswith("5 of 7 agree")


def test_an_answer_that_differs_is_printed_and_ends_in_1(instance):
    without(instance, "STS")
    results = instance.parent / "results.csv"
    rows = results.read_text(encoding="utf-8").splitlines()
    header = rows[0].split(",")
    row = next(i for i, text in enumerate(rows) if "high-10-0" in text.split(",") and "EDF" in text.split(","))
    cells = rows[row].split(",")
    cells[header.index("energy_eur")] = "1.0"
    rows[row] = ",".join(cells)
    results.write_text("\n".join(rows), encoding="utf-8")
    done = gpusched("conform", "gpuspb", instance)
    assert done.exit_code == 1
    assert "high-10-0, edf (published as EDF): energy [EUR]: published 1.0000, ours" in done.stdout
    assert done.stdout.rstrip().endswith("4 of 5 agree")


MURI = FOLDER.parents[1] / "muri_antman"
MURI_TRACE = """\
job_id,num_gpu,submit_time,iterations,model_name,batch_size,duration,iteration_time,resource_time_0,resource_time_1,resource_time_2,priority
0,8,0,100,bert,4,100000,1000,1,1,1,0
1,8,50000,100,bert,4,100000,1000,1,1,1,0
"""
MURI_TIMES = "trace,nodes,policy,jobs,mean_completion_s,end_s,p99_completion_s\n"


@pytest.fixture
def muri(tmp_path: Path) -> Path:
    """Write two jobs of 101.5 s on all GPUs of a node, and their times by hand; the trace is in the folder next to it.

    The first loses 10 s when the second is submitted. So they end at 111.5 and 213 s, or at 101.5 and 203 s.
    """
    for name in ("muri", "some"):
        (tmp_path / name).mkdir()
    (tmp_path / "muri" / "trace9.csv").write_text(MURI_TRACE, encoding="utf-8")
    rows = [f"9,1,{policy},2,137.25,213,163\n9',1,{policy},2,152.25,203,203\n" for policy in ("AntMan", "Tiresias")]
    (tmp_path / "some" / "answers.csv").write_text("".join([MURI_TIMES, *rows]), encoding="utf-8")
    return tmp_path / "some"


def test_times_of_muris_program_are_compared_row_by_row(muri):
    assert gpusched("conform", "muri", muri).stdout.strip() == "4 of 4 agree"
    other = muri / "other.csv"
    rows = ["9,1,SRTF,2,137.1,213,163", "9,1,SRTF,2,137.25,213.3,163", "9',1,SRTF,2,152.25,203,101.5"]
    other.write_text("\n".join([MURI_TIMES.strip(), *rows, "9,2,SRTF,1,106.5,151.5,111.5"]), encoding="utf-8")
    done = gpusched("conform", "muri", muri, "--answers", other)
    assert done.exit_code == 1
    own = "2 jobs, mean 137.2, end 213.0, 99 % 163.0 s"
    at_once = "2 jobs, mean 152.2, end 203.0, 99 % 203.0 s"
    assert [line.partition(": published ")[2] for line in done.stdout.splitlines()] == [
        f"2 jobs, mean 137.1, end 213.0, 99 % 163.0 s, ours {own} (largest deviation 0.1094%)",
        f"2 jobs, mean 137.2, end 213.3, 99 % 163.0 s, ours {own} (largest deviation 0.1406%)",
        f"2 jobs, mean 152.2, end 203.0, 99 % 101.5 s, ours {at_once} (largest deviation 100.0000%)",
        "1 jobs, mean 106.5, end 151.5, 99 % 111.5 s, ours 2 jobs, mean 111.5, end 161.5, 99 % 111.5 s",
        "",
    ]
    assert done.stdout.rstrip().endswith("0 of 4 agree")


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        (MURI_TIMES + "8,1,SRTF,2,1,1,1\n", "trace8.csv"),
        (MURI_TIMES + "9,1,FIFO,2,1,1,1\n", "policies: AntMan, Tiresias, SRTF"),
        (MURI_TIMES + "9,0,SRTF,2,1,1,1\n", "numbers > 0"),
        (MURI_TIMES, "a row or more"),
        (MURI_TIMES.replace("end_s,", "") + "9,1,SRTF,2,1,1\n", "'end_s'"),
    ],
)
def test_what_is_no_table_of_muris_times_is_refused_in_a_line(rows, words, muri):
    (muri / "answers.csv").write_text(rows, encoding="utf-8")
    done = gpusched("conform", "muri", muri)
    assert done.exit_code == 2
    assert words in " ".join(done.stderr.split())
    assert "only with muri" in gpusched("conform", "gavel", muri, "--answers", muri / "answers.csv").stderr


@pytest.mark.skipif(not MURI.is_dir(), reason=f"the answers of Muri's program are not in {MURI}")
def test_all_times_of_muris_program_agree_on_trace_3_and_where_rounding_decides(tmp_path):
    header, *rows = (MURI / "answers.csv").read_text(encoding="utf-8").splitlines()
    chosen = [row for row in rows if row.startswith(("3,", "3',", "4',8,SRTF"))]
    (tmp_path / "answers.csv").write_text("\n".join([header, *chosen]), encoding="utf-8")
    done = gpusched("conform", "muri", MURI, "--answers", tmp_path / "answers.csv")
    assert (done.exit_code, done.stdout.strip()) == (0, "7 of 7 agree")


@pytest.fixture
def demands(tmp_path: Path) -> Path:
    """Write two demands of two jobs with answers worked out by hand, the second of them wrong.

    One GPU of each type. With x_prop both jobs do 2 steps/s; each alone on the type that it is faster on does 3. So the
    least level is 1.5, and all is done after 100 s.
    """
    jobs = [{"T": [3, 2, 1], "s": 1, "left": 300, "age": 0, "w": 1, "due": 1000} for _ in range(2)]
    jobs[1]["T"] = [1, 3, 2]
    right, wrong = [[1, 0, 0], [0, 1, 0]], [[0.5, 0, 0], [0, 1, 0]]
    demand = {"W": [1, 1, 1], "jobs": jobs}
    cases = [{"demand": demand, "answer": dict.fromkeys(("las", "ftf", "mtd"), x)} for x in (right, wrong)]
    path = tmp_path / "demands.json"
    path.write_text(json.dumps(cases), encoding="utf-8")
    return path


def test_allocations_are_compared_by_the_value_of_their_objective(demands):
    done = gpusched("conform", "gavel", demands)
    assert done.exit_code == 1
    assert "demand 1, las: published 0.75, ours 1.5 (+100.00% better)" in done.stdout
    assert done.stdout.rstrip().endswith("3 of 6 agree")


@pytest.mark.skipif(not DEMANDS.is_file(), reason=f"the published answers are not in {DEMANDS}")
def test_of_equal_optima_max_min_fairness_takes_that_of_the_published_solver():
    for demand, shares in read_demands(DEMANDS):
        assert np.where(demand.speed > 0.0, las(demand) - shares["las"], 0.0) == pytest.approx(0.0, abs=1e-3)


@pytest.mark.skipif(not DEMANDS.is_file(), reason=f"the published answers are not in {DEMANDS}")
def test_all_answers_of_the_published_policy_classes_agree():
    assert gpusched("conform", "gavel", DEMANDS).stdout.strip() == "80 of 80 agree"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("other", "."), "one of gpuspb, hived, gavel, muri, gaia"),
        (("gavel", "high-10-0.csv"), "a list of demands and answers of las, ftf, cost, mtd"),
        (("gpuspb", "nowhere"), "a file or folder that exists"),
        (("gpuspb", "high-10-0.csv"), "an instance with results.csv beside it"),
        (("muri", "high-10-0.csv"), "a table with the columns trace, nodes, policy"),
        (("gaia", "high-10-0.csv"), "a signal with pai_1k.csv beside it"),
        (("gaia", "."), "a folder with signal_*.csv, pai_1k.csv and results.csv"),
    ],
)
def test_what_is_no_answer_is_refused(arguments, says, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "high-10-0.csv").write_text("job\n", encoding="utf-8")
    done = gpusched("conform", *arguments)
    assert done.exit_code == 2
    assert says in done.stderr


GAIA = FOLDER.parents[1] / "gaia_reference"


@pytest.mark.skipif(not GAIA.is_dir(), reason=f"the answers of GAIA's program are not in {GAIA}")
def test_all_answers_of_gaias_program_on_a_signal_agree_in_sums_job_by_job_and_in_our_simulator():
    assert gpusched("conform", "gaia", GAIA / "signal_CISO.csv").stdout.strip() == "42 of 42 agree"


@pytest.fixture
def two_jobs(tmp_path: Path) -> Path:
    """Write two jobs of an hour, one with two CPUs, that arrive at once, and answers worked out by hand.

    Of 4, 1, 3 and 2 g the second hour is the least: 3 CPU-hours of 1 g in place of 4 g.
    """
    (tmp_path / "pai_1k.csv").write_text("arrival_time,length,cpus\n0.0,3600.0,1\n1.0,3602.0,2\n", encoding="utf-8")
    (tmp_path / "signal_X.csv").write_text("g_per_kwh\n4\n1\n3\n2\n" + "5\n" * 30, encoding="utf-8")
    header = "signal,policy,total_signal_cost,relative_to_no_wait,mean_wait_h,dollar_cost,published_relative"
    rows = ["X,NoWait,0.012,1,0,0.1872,", "X,Lowest-Slot,0.003,0.25,1,0.1872,0.25", "Y,NoWait,1,1,1,1,"]
    (tmp_path / "results.csv").write_text("\n".join([header, *rows]), encoding="utf-8")
    with gzip.open(tmp_path / "jobs_X.csv.gz", "wt", encoding="utf-8") as file:
        file.write("policy,job,start_tick,length_ticks\nno-wait,0,0,720\nno-wait,1,0,720\nlowest-slot,0,0,720\n")
    return tmp_path


def test_a_signal_of_ones_own_is_compared_with_what_is_there(two_jobs):
    done = gpusched("conform", "gaia", two_jobs / "signal_X.csv")
    assert done.stdout.splitlines() == [
        "X, Lowest-Slot: starts and lengths: published 1 pieces, ours 0 of 2 the same",
        "10 of 11 agree",
    ]
    (two_jobs / "pai_1k.csv").write_text("arrival,length\n0,1\n", encoding="utf-8")
    assert "columns arrival_time,length,cpus" in gpusched("conform", "gaia", two_jobs).stderr


@pytest.mark.parametrize("ticks", [0, 1, 2, 3, 29])
def test_of_jobs_that_arrive_together_the_programs_heap_decides_which_is_first(ticks):
    queue, other = TickQueue(), TickQueue()
    for job in range(7):
        queue.add(job, 5.0 * (job // 4))
        other.add(job, float(job))
    queue.pass_ticks(ticks)
    other.pass_ticks(ticks)
    assert queue.emptied() == by_ticks(ticks) != by_ticks(ticks + 1)
    assert other.emptied() == list(range(7))


def by_ticks(ticks: int) -> list[int]:
    """Return the order of seven jobs, four of one arrival and three of another, when a heap was emptied so often."""
    jobs = list(range(7))
    for _ in range(ticks + 1):
        heap: list[_ByArrival] = []
        for job in jobs:
            heapq.heappush(heap, _ByArrival(job))
        jobs = [heapq.heappop(heap).job for _ in range(7)]
    return jobs


@dataclass
class _ByArrival:
    job: int

    def __lt__(self, other: _ByArrival) -> bool:
        return self.job // 4 < other.job // 4


EPISODE = {
    "Mode": "one",
    "Steps": [
        {"Op": "schedule", "Gang": "g", "VC": "A", "Prio": 0, "Lazy": False, "Pinned": "", "Type": "G"}
        | {"Members": [[1, 2]], "Outcome": "bind", "Pods": [{"Node": "n", "Gpus": [0, 1]}]},
        {"Op": "delete", "Gang": "g"},
        {"Op": "schedule", "Gang": "h", "VC": "A", "Prio": 0, "Lazy": False, "Pinned": "", "Type": "H"}
        | {"Members": [[1, 2]], "Outcome": "error", "Pods": None},
    ],
}
CLUSTER = """
physicalCluster:
  cellTypes: {N: {childCellType: G, childCellNumber: 2, isNodeLevel: true}}
  physicalCells: [{cellType: N, cellAddress: n}]
virtualClusters: {A: {virtualCells: [{cellType: N, cellNumber: 1}]}}
"""


def test_requests_to_hiveds_program_are_answered_step_by_step(tmp_path):
    (tmp_path / "some.jsonl").write_text(json.dumps(EPISODE), encoding="utf-8")
    assert "episodes with cluster.yaml beside them" in gpusched("conform", "hived", tmp_path).stderr
    (tmp_path / "cluster.yaml").write_text(CLUSTER, encoding="utf-8")
    assert gpusched("conform", "hived", tmp_path).stdout.strip() == "2 of 2 agree"
    other = json.dumps(EPISODE).replace("[0, 1]", "[1, 0]")
    (tmp_path / "some.jsonl").write_text(other, encoding="utf-8")
    done = gpusched("conform", "hived", tmp_path / "some.jsonl")
    assert done.exit_code == 1
    assert done.stdout.splitlines() == [
        "some.jsonl, episode 0 (one), step 0, g: published bind n:1,0, ours bind n:0,1",
        "0 of 1 agree",
    ]


SLURM = ROOT / "docs" / "results" / "slurm" / "starts.csv"


def test_the_recorded_starts_of_slurm_are_compared_again_without_slurm(tmp_path):
    done = gpusched("conform", "slurm", SLURM)
    assert done.stdout.rstrip().endswith("120 of 120 agree")
    rows = SLURM.read_text(encoding="utf-8").splitlines(keepends=True)
    first = next(number for number, row in enumerate(rows) if row.startswith("0,one-reservation,"))
    queue, rule, *numbers, start_s, end_s, backfilled = rows[first + 11].split(",")  # its last job starts 60 s later
    late = tmp_path / "late.csv"
    rows[first + 11] = ",".join((queue, rule, *numbers, str(float(start_s) + 60), str(float(end_s) + 60), backfilled))
    late.write_text("".join(rows), encoding="utf-8")
    assert "queue 0, one-reservation: published starts" in gpusched("conform", "slurm", late).stdout


@pytest.mark.parametrize(
    ("rule", "name", "expected"),
    [("slurm-backfill", "conservative", 8), ("one-reservation", "easy", 14), ("slurm-backfill", "fifo", 1)],
)
def test_the_recorded_starts_of_slurm_are_not_those_of_another_policy(rule, name, expected):
    runs, policy = read_runs(SLURM), make_policy(name)
    assert sum(compare((n, rule), runs[n, rule], policy=policy).agrees for n in range(20, 40)) == expected


def test_a_table_that_is_none_of_slurms_starts_is_refused(tmp_path):
    path = tmp_path / "starts.csv"
    path.write_text("queue,rule,gpus\n0,multifactor,1\n", encoding="utf-8")
    assert "a table of runs with columns queue, rule" in gpusched("conform", "slurm", path).stderr


HELD = ROOT / "docs" / "results" / "slurm" / "held_gpus.csv"


def test_the_recorded_queues_of_the_driver_are_printed_and_one_on_held_gpus_does_not_agree(tmp_path):
    done = gpusched("conform", "drive", HELD, "--each")
    *each, last = done.stdout.splitlines()
    assert (len(each), last) == (5, "5 of 5 agree")
    assert all(line.endswith("starts, none on held GPUs") for line in each)
    head, first, *rows = HELD.read_text(encoding="utf-8").splitlines()
    words = first.split(",")
    assert words[-3] == ""
    words[-3] = "2 of the 4 GPUs of job 9 on v100-1"
    path = tmp_path / "held.csv"
    path.write_text("\n".join([head, ",".join(words), *rows, ""]), encoding="utf-8")
    done = gpusched("conform", "drive", path)
    assert done.exit_code == 1
    assert "queue 0, 11 jobs of others" in done.stdout
    assert "2 of the 4 GPUs of job 9 on v100-1 on held GPUs" in done.stdout
    path.write_text("queue\n1\n", encoding="utf-8")
    assert "a table of queues with columns queue, others" in gpusched("conform", "drive", path).stderr
