from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest

from gpusched_env.workload import (
    Scenario,
    builtin_applications,
    detect_format,
    make_instance,
    read_trace,
    replayed_trace,
    scenario_for_trace,
)
from refusals import refused

PHILLY = Path(__file__).parents[2] / ".." / "shared" / "data" / "philly" / "philly.csv"
needs_philly = pytest.mark.skipif(not PHILLY.is_file(), reason="Philly's trace is not beside the repository")

GENERIC = "submission_s,duration_s,gpus\n5,100,1\n7.5,50,2\n7.5,10,16\n"
FLATTENED = (
    "timestamp,duration,num_gpus,gpu_time,cluster\n"
    "2017-10-09 07:01:55,66.0,1,66.0,a\n"
    "2017-10-09 06:13:03,2951.0,2,5902.0,b\n"
    "\n"
    "2017-10-10 06:13:03,10.0,16,160.0,b\n"
)


def write(folder: Path, text: str, name: str = "trace.csv") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def replay(path: Path, **values: object) -> Scenario:
    trace = {"path": str(path), **values}
    return Scenario(name="replayed", cluster={"nodes": 6}, jobs={"count": 1_000}, trace=trace)


def test_a_generic_trace_starts_at_zero_and_keeps_its_rows(tmp_path):
    trace = read_trace(write(tmp_path, GENERIC))
    assert trace.submission_s.tolist() == [0.0, 2.5, 2.5]
    assert trace.duration_s.tolist() == [100.0, 50.0, 10.0]
    assert trace.gpus.tolist() == [1, 2, 16]
    assert (trace.due_s, trace.tardiness_weight_eur_per_s, trace.application) == (None, None, None)
    assert (trace.name, len(trace), trace.gpu_seconds) == ("trace.csv", 3, 360.0)
    assert not trace.duration_s.flags.writeable


def test_a_generic_trace_may_say_all_of_a_job(tmp_path):
    text = "timestamp,due_s,duration_s,gpus,tardiness_weight_eur_per_s,application,comment\n"
    text += "2024-02-28T23:59:59Z,2024-03-01 00:00:00,5,1,0.5,a,\n"
    text += "2024-02-29T02:00:00.5+02:00,2024-02-29 00:01,6, 2 ,0,b,hello\n"
    trace = read_trace(write(tmp_path, text))
    assert trace.submission_s.tolist() == [0.0, 1.5]
    assert trace.due_s.tolist() == [86401.0, 61.0]
    assert trace.tardiness_weight_eur_per_s.tolist() == [0.5, 0.0]
    assert trace.application == ("a", "b")
    assert trace.gpus.tolist() == [1, 2]


def test_columns_are_mapped_by_name(tmp_path):
    path = write(tmp_path, "start,len,n gpu,submission_s\n3,4,1,x\n9,5,2,x\n")
    trace = read_trace(path, columns={"submission_s": "start", "duration_s": "len", "gpus": "n gpu"})
    assert trace.submission_s.tolist() == [0.0, 6.0]
    assert trace.gpus.tolist() == [1, 2]


def test_a_named_time_column_wins_over_the_other_kinds_own_name(tmp_path):
    path = write(tmp_path, "timestamp,arrival,duration_s,gpus\nx,3,4,1\nx,9,5,2\n")
    assert read_trace(path, columns={"submission_s": "arrival"}).submission_s.tolist() == [0.0, 6.0]


def test_compressed_files_windows_line_ends_and_byte_order_marks_are_read(tmp_path):
    zipped = tmp_path / "trace.csv.gz"
    zipped.write_bytes(gzip.compress(GENERIC.encode()))
    odd = tmp_path / "odd.csv"
    odd.write_bytes(b"\xef\xbb\xbf" + GENERIC.replace("\n", "\r\n").encode())
    for path in (zipped, odd):
        assert read_trace(path).duration_s.tolist() == [100.0, 50.0, 10.0]
        assert detect_format(path) == "generic"


def test_phillys_file_is_sorted_and_blank_lines_are_skipped(tmp_path):
    trace = read_trace(write(tmp_path, FLATTENED), "philly")
    assert trace.submission_s.tolist() == [0.0, 2932.0, 86400.0]
    assert trace.duration_s.tolist() == [2951.0, 66.0, 10.0]
    assert trace.gpus.tolist() == [2, 1, 16]


def test_first_and_jobs_choose_rows_in_time_order_and_the_clock_starts_anew(tmp_path):
    trace = read_trace(write(tmp_path, FLATTENED), "philly", first=1, jobs=1)
    assert (trace.submission_s.tolist(), trace.duration_s.tolist()) == ([0.0], [66.0])


def test_the_format_is_told_by_the_columns(tmp_path):
    assert detect_format(write(tmp_path, FLATTENED)) == "philly"
    assert detect_format(write(tmp_path, GENERIC)) == "generic"


def test_a_demand_beyond_a_node_is_clipped_counted_and_keeps_its_gpu_seconds(tmp_path):
    trace = read_trace(write(tmp_path, GENERIC)).clip(8)
    assert (trace.gpus.tolist(), trace.duration_s.tolist(), trace.clipped) == ([1, 2, 8], [100.0, 50.0, 20.0], 1)
    assert trace.gpu_seconds == 360.0
    assert trace.asked_gpus.tolist() == [1, 2, 16]
    assert trace.clip(1).clipped == 2


def test_load_is_gpu_seconds_over_gpus_and_span_and_stretching_divides_it(tmp_path):
    trace = read_trace(write(tmp_path, "submission_s,duration_s,gpus,due_s\n0,100,1,9\n10,50,2,70\n"))
    assert trace.load_on(4) == pytest.approx(200 / (4 * 10))
    slower = trace.stretch(5.0)
    assert slower.load_on(4) == pytest.approx(1.0)
    assert (slower.submission_s.tolist(), slower.due_s.tolist()) == ([0.0, 50.0], [9.0, 110.0])


BAD = [
    ("", "trace.csv", "header"),
    ("submission_s,duration_s,gpus\n", "trace.csv", "at least one row"),
    ("submission_s,duration_s\n1,2\n", "trace.csv: no column for", "trace.columns.gpus=COLUMN"),
    ("duration_s,gpus\n1,2\n", "trace.csv: no column for", "trace.columns.submission_s=COLUMN"),
    ("submission_s,timestamp,duration_s,gpus\n1,2,3,4\n", "trace.csv: columns", "either"),
    ("submission_s,duration_s,gpus\n1,2,1\n0.5,2,1\n", "trace.csv row 2: submission_s", "sort = true"),
    ("submission_s,duration_s,gpus\n1,2,1\n\n2,-3,1\n", "trace.csv row 3: duration_s", "> 0"),
    ("submission_s,duration_s,gpus\n1,0,1\n", "trace.csv row 1: duration_s", "> 0"),
    ("submission_s,duration_s,gpus\n1,2e12,1\n", "trace.csv row 1: duration_s", "1e12 s"),
    ("submission_s,duration_s,gpus\n1507532515000000000,2,1\n", "trace.csv row 1: submission_s", "1e12 s"),
    ("submission_s,duration_s,gpus,due_s\n1,2,1,1e15\n", "trace.csv row 1: due_s", "1e12 s"),
    ("submission_s,duration_s,gpus\n1,nan,1\n", "trace.csv row 1: duration_s", "finite"),
    ("submission_s,duration_s,gpus\n1,inf,1\n", "trace.csv row 1: duration_s", "finite"),
    ("submission_s,duration_s,gpus\n1,,1\n", "trace.csv row 1: duration_s", "finite"),
    ("submission_s,duration_s,gpus\n1,2,0\n", "trace.csv row 1: gpus", "whole number >= 1"),
    ("submission_s,duration_s,gpus\n1,2,1.5\n", "trace.csv row 1: gpus", "whole number >= 1"),
    ("submission_s,duration_s,gpus\n1,2,many\n", "trace.csv row 1: gpus", "whole number >= 1"),
    ("submission_s,duration_s,gpus\nsoon,2,1\n", "trace.csv row 1: submission_s", "number of seconds"),
    ("timestamp,duration_s,gpus\n2017-13-01 00:00:00,2,1\n", "trace.csv row 1: timestamp", "a time such as"),
    ("submission_s,duration_s,gpus,due_s\n5,2,1,4\n", "trace.csv row 1: due_s", "not before the submission"),
    (
        "submission_s,duration_s,gpus,tardiness_weight_eur_per_s\n5,2,1,-1\n",
        "trace.csv row 1: tardiness_weight_eur_per_s",
        ">= 0",
    ),
    ("submission_s,duration_s,gpus,application\n5,2,1,\n", "trace.csv row 1: application", "a text"),
    ("submission_s,duration_s,gpus\n1,2,3,4\n", "trace.csv line 2", "as many cells"),
    ("submission_s,gpus,duration_s,gpus\n1,2,3,4\n", "trace.csv: columns", "once in the header"),
    ("\0" * 3_000, "trace.csv", "UTF-8"),
    (
        "submission_s,duration_s,gpus\n2017-10-09 07:01:55,2,1\n7,2,1\n",
        "trace.csv row 2: submission_s",
        "a date, as above it",
    ),
    (
        "submission_s,duration_s,gpus\n0,2,1\n2017-10-09 07:01:55,2,1\n",
        "trace.csv row 2: submission_s",
        "a number, as above it",
    ),
    (
        "timestamp,duration_s,gpus\n0,2,1\n\n5,2,1\n2017-10-09 07:01:55,2,1\n",
        "trace.csv row 4: timestamp",
        "a number, as above it",
    ),
]


@pytest.mark.parametrize(("text", "field", "allowed"), BAD, ids=[bad[0].replace("\n", " ") or "empty" for bad in BAD])
def test_a_wrong_trace_is_one_error_that_names_row_value_and_what_is_allowed(text, field, allowed, tmp_path):
    with refused(field, allowed=allowed):
        read_trace(write(tmp_path, text))


def test_a_column_that_stands_twice_is_named_and_empty_ones_at_the_end_are_let_be(tmp_path):
    with refused("trace.csv: columns", "note"):
        read_trace(write(tmp_path, "submission_s,duration_s,gpus,note,note\n1,2,1,a,b\n"))
    assert len(read_trace(write(tmp_path, "submission_s,duration_s,gpus,,\n1,2,1,,\n"))) == 1


@pytest.mark.parametrize("path", ["x" * 5_000, "a\0.csv"])
def test_a_path_that_cannot_be_is_refused(path):
    with refused("trace.path", path):
        read_trace(path)


def test_a_job_that_the_demand_rule_leaves_nothing_is_named(tmp_path):
    """Measured on one GPU only: the second job asks for exactly two."""
    known = builtin_applications()["yolov3-voc-global64"]
    one = {key: s for key, s in known.seconds_per_epoch.items() if key[1] == 1}
    times = {v: {"1": seconds} for (v, _), seconds in one.items()}
    own = {"name": "yolov3", "max_epochs": known.max_epochs, "seconds_per_epoch": times}
    scenario = replay(write(tmp_path, GENERIC), gpu_demand="exact").replace({"applications": [own]})
    with refused("trace.gpu_demand", "exact", r"job 1 of the trace \(yolov3.*, 2 GPUs\)"):
        make_instance(scenario, 0)


def test_the_error_holds_the_cell_as_it_stands_in_the_file(tmp_path):
    with refused("trace.csv row 2: duration", "-3.50"):
        read_trace(write(tmp_path, FLATTENED.replace("2951.0", "-3.50")), "philly")


def test_sorting_can_be_asked_for_and_refused(tmp_path):
    unsorted = write(tmp_path, "submission_s,duration_s,gpus\n9,2,1\n4,3,1\n")
    assert read_trace(unsorted, sort=True).duration_s.tolist() == [3.0, 2.0]
    with refused("trace.csv row 2: timestamp", "2017-10-09 06:13:03"):
        read_trace(write(tmp_path, FLATTENED), "philly", sort=False)


def test_missing_files_unknown_formats_and_wrong_columns_are_input_errors(tmp_path):
    path = write(tmp_path, GENERIC)
    with refused("trace.path", allowed="a file that exists"):
        read_trace(tmp_path / "none.csv")
    with refused("trace.path", allowed="a file that exists"):
        read_trace(tmp_path)
    with refused("trace.format", "json", "philly, itp, .*, generic"):
        read_trace(path, "json")
    with refused("trace.csv: no column for", "submission_s, duration_s, gpus"):
        read_trace(path, "philly")
    with refused("trace.columns", "start"):
        read_trace(path, columns={"start": "submission_s"})
    with refused("trace.first", 3, "below 3"):
        read_trace(path, first=3)
    (tmp_path / "binary.csv").write_bytes(b"submission_s,duration_s,gpus\n\xff\xfe,1,1\n")
    with refused("binary.csv", allowed="UTF-8"):
        read_trace(tmp_path / "binary.csv")


def test_a_replayed_job_takes_the_traces_duration_on_its_gpus_of_the_reference_type(tmp_path):
    """One application, measured on every count: X_j · τ(type, GPUs) is the duration; 10 s on 16 GPUs are 20 s on 8.

    All that to half a second, or a whole one on half as many GPUs.
    """
    name = "yolov3-voc-global64"
    for reference in ("V100", "K80"):
        scenario = replay(write(tmp_path, GENERIC), reference_gpu_type=reference).replace({"jobs.applications": [name]})
        jobs = make_instance(scenario, 0).jobs
        tau = builtin_applications()[name].seconds_per_epoch
        realised = [jobs.epochs_needed[j] * tau[reference, g] for j, g in enumerate((1, 2, 8))]
        assert realised == pytest.approx([100.0, 50.0, 20.0], abs=1.0)
        assert realised[:2] == pytest.approx([100.0, 50.0], abs=0.5)
        assert jobs.submission_s.tolist() == [0.0, 2.5, 2.5]


def test_on_a_reference_type_measured_on_fewer_gpus_the_gpu_seconds_are_kept(tmp_path):
    """Eight GPUs for 20 s where only 1 and 4 were measured: as 40 s on four. Half a second on 16 is two there."""
    known = builtin_applications()["yolov3-voc-global64"]
    few = {key: s for key, s in known.seconds_per_epoch.items() if key[0] != "K80" or key[1] in {1, 4}}
    times: dict[str, dict[str, float]] = {}
    for (v, gpus), seconds in few.items():
        times.setdefault(v, {})[str(gpus)] = seconds
    own = {"name": "yolov3", "max_epochs": known.max_epochs, "seconds_per_epoch": times}
    scenario = replay(write(tmp_path, GENERIC), reference_gpu_type="K80").replace({"applications": [own]})
    jobs = make_instance(scenario, 0).jobs
    assert jobs.epochs_needed[2] * few["K80", 4] == pytest.approx(40.0, abs=2.0)
    assert jobs.epochs_needed[1] * few["K80", 1] == pytest.approx(100.0, abs=1.0)


def test_realised_fractions_of_a_replay_come_from_the_distributions_that_policies_see(tmp_path):
    rows = "".join(f"{i},100,1\n" for i in range(5_000))
    scenario = replay(write(tmp_path, "submission_s,duration_s,gpus\n" + rows))
    jobs = make_instance(scenario.replace({"jobs.count": 5_000, "epochs.library_size": 2}), 0).jobs
    fraction = jobs.epochs_needed / jobs.max_epochs
    for index, distribution in enumerate(jobs.distributions):
        assert fraction[jobs.distribution == index].mean() == pytest.approx(distribution.mean, abs=0.02)


@pytest.mark.parametrize(
    ("rule", "counts"),
    [
        ("elastic", [{1, 2, 3, 4, 5, 6, 7, 8}] * 3),
        ("at-most", [{1}, {1, 2}, {1, 2, 3, 4, 5, 6, 7, 8}]),
        ("exact", [{1}, {2}, {8}]),
    ],
)
def test_the_demand_rule_says_which_numbers_of_gpus_a_job_is_offered(rule, counts, tmp_path):
    instance = make_instance(replay(write(tmp_path, GENERIC), gpu_demand=rule), 0)
    held = np.array([c.gpus_per_node for c in instance.configurations])
    offered = np.isfinite(instance.jobs.seconds_per_epoch)
    assert [set(held[row].tolist()) for row in offered] == counts


def test_a_demand_that_is_not_offered_counts_as_the_next_smaller_that_is_else_the_least(tmp_path):
    path = write(tmp_path, "submission_s,duration_s,gpus\n0,9,1\n0,9,3\n0,9,5\n")
    instance = make_instance(replay(path, gpu_demand="exact").replace({"jobs.gpu_counts": [2, 4]}), 0)
    held = np.array([c.gpus_per_node for c in instance.configurations])
    offered = np.isfinite(instance.jobs.seconds_per_epoch)
    assert [set(held[row].tolist()) for row in offered] == [{2}, {2}, {4}]


def test_what_the_trace_says_of_a_job_is_used_and_the_rest_is_drawn(tmp_path):
    text = "submission_s,duration_s,gpus,due_s,tardiness_weight_eur_per_s,application\n"
    text += "10,100,1,1000,0.5,lm-wikitext2-bs80\n20,100,1,25,0,yolov3-voc-global64\n"
    jobs = make_instance(replay(write(tmp_path, text)), 0).jobs
    assert jobs.due_s.tolist() == [990.0, 15.0]
    assert jobs.tardiness_weight_eur_per_s.tolist() == [0.5, 0.0]
    assert [jobs.applications[i] for i in jobs.application] == ["lm-wikitext2-bs80", "yolov3-voc-global64"]
    plain = make_instance(replay(write(tmp_path, GENERIC)), 0).jobs
    full = plain.seconds_per_epoch * plain.max_epochs[:, None]
    assert np.all(plain.due_s >= plain.submission_s + full.min(1))
    assert np.all(plain.due_s <= plain.submission_s + full.max(1))


def test_an_unknown_application_in_a_trace_is_named(tmp_path):
    path = write(tmp_path, "submission_s,duration_s,gpus,application\n0,1,1,alexnet\n")
    with refused("trace.csv: application of job 0", "alexnet", "one of bert"):
        make_instance(replay(path), 0)


def test_a_seed_replays_the_same_jobs_and_another_draws_other_ones(tmp_path):
    scenario = replay(write(tmp_path, GENERIC))
    assert make_instance(scenario, 1) == make_instance(scenario, 1)
    assert make_instance(scenario, 1).jobs != make_instance(scenario, 2).jobs


def test_count_limits_the_rows_and_a_longer_count_takes_what_is_there(tmp_path):
    scenario = replay(write(tmp_path, GENERIC))
    assert len(make_instance(scenario, 0).jobs) == 3
    assert len(make_instance(scenario.replace({"jobs.count": 2}), 0).jobs) == 2


def test_time_scale_and_load_stretch_the_replay(tmp_path):
    """Six nodes: two each of V100 (8 GPUs), A100 (8) and T4 (4), 40 GPUs; 360 GPU·s over 2.5 s are a load of 3.6."""
    path = write(tmp_path, GENERIC)
    assert replayed_trace(replay(path)).load_on(40) == pytest.approx(3.6)
    assert replayed_trace(replay(path, load=0.5)).load_on(40) == pytest.approx(0.5)
    assert replayed_trace(replay(path, time_scale=2.0)).submission_s.tolist() == [0.0, 5.0, 5.0]
    with refused("trace.load", 0.5):
        replayed_trace(replay(path, load=0.5, first=1))
    for setting, value in (("time_scale", 1e12), ("load", 1e-12), ("load", 1e-308), ("load", 1e-320)):
        with refused(f"trace.{setting}", value):
            replayed_trace(replay(path, **{setting: value}))


def test_a_scenario_for_a_trace_needs_only_its_path(tmp_path):
    scenario = scenario_for_trace(write(tmp_path, FLATTENED))
    assert (scenario.name, scenario.jobs.count, scenario.cluster.nodes) == ("trace", 3, 10)
    assert (scenario.trace.format, Path(scenario.trace.path).is_absolute()) == ("philly", True)
    other = scenario_for_trace(scenario.trace.path, 2, 4, base=replay(tmp_path, gpu_demand="exact"))
    assert (other.jobs.count, other.cluster.nodes, other.trace.gpu_demand) == (2, 4, "exact")
    with refused("jobs.count", 0):
        scenario_for_trace(scenario.trace.path, jobs=0)


@needs_philly
def test_phillys_whole_trace_is_read():
    trace = read_trace(PHILLY, "philly")
    assert len(trace) == 82_247
    assert trace.gpu_seconds == 3_521_082_502
    assert (trace.gpus == 1).mean() == pytest.approx(0.93, abs=0.005)
    assert np.all(np.diff(trace.submission_s) >= 0)
    assert trace.clip(8).clipped == 289


@needs_philly
def test_two_thousand_jobs_of_philly_make_an_instance_on_sixty_nodes():
    instance = make_instance(scenario_for_trace(PHILLY, jobs=2_000, nodes=60), 0)
    assert (len(instance.jobs), len(instance.nodes), instance.name) == (2_000, 60, "philly")
