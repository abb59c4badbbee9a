"""Traces whose jobs ask for a share of a GPU, or for more GPUs than a node has."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from gpusched_env.workload import Scenario, builtin_applications, make_instance, read_trace, replayed_trace
from refusals import refused

if TYPE_CHECKING:
    from pathlib import Path

    from gpusched_env.model import Instance

SMALL, LARGE = "lm-wikitext2-bs5", "vgg16-imagenet-global256"


def write(folder: Path, rows: list[tuple[float, str]]) -> Path:
    """Write a trace: GPUs and application of each job; every job runs for an hour."""
    path = folder / "trace.csv"
    lines = [f"{i},3600,{gpus},{name}" for i, (gpus, name) in enumerate(rows)]
    path.write_text("\n".join(["submission_s,duration_s,gpus,application", *lines]), encoding="utf-8")
    return path


def replay(path: Path, rule: str = "exact", **values: object) -> Scenario:
    """Replay on eight nodes of eight A100."""
    base = Scenario(cluster={"nodes": 8, "gpu_types": ["A100"]}, trace={"path": str(path), "gpu_demand": rule})
    return base.replace({"sharing.fractions": [0.5, 0.25], "jobs.node_counts": [1, 2, 4], **values})


def offered(instance: Instance) -> list[list[str]]:
    may = np.isfinite(instance.jobs.seconds_per_epoch)
    return [[c.name for c, open_ in zip(instance.configurations, row, strict=True) if open_] for row in may]


def test_a_share_of_a_gpu_is_read_and_counts_for_its_part_of_the_load(tmp_path):
    trace = read_trace(write(tmp_path, [(0.25, SMALL), (16, LARGE)]))
    assert trace.gpus.tolist() == [0.25, 16.0]
    assert trace.gpu_seconds == 3600 * 16.25
    assert trace.clip(8).gpus.tolist() == [0.25, 8.0]
    assert trace.clip(8).clipped == 1


@pytest.mark.parametrize("gpus", ["-0.5", "0", "1.5", "nan", "0.0"])
def test_what_is_neither_a_share_nor_a_whole_number_is_refused(gpus, tmp_path):
    with refused("trace.csv row 1: gpus", gpus, "a share of one GPU > 0 and < 1"):
        read_trace(write(tmp_path, [(gpus, SMALL)]))


def test_exact_gives_the_share_or_the_whole_nodes_that_the_job_asked_for(tmp_path):
    path = write(tmp_path, [(0.25, SMALL), (0.5, SMALL), (1, SMALL), (16, LARGE), (32, LARGE)])
    assert offered(make_instance(replay(path), 0)) == [
        ["A100x0.25"],
        ["A100x0.5"],
        ["A100x1"],
        ["2*A100x8"],
        ["4*A100x8"],
    ]


def test_at_most_gives_all_that_is_no_more_than_the_job_asked_for(tmp_path):
    path = write(tmp_path, [(0.25, SMALL), (2, SMALL), (16, LARGE)])
    share, few, many = offered(make_instance(replay(path, "at-most"), 0))
    assert share == ["A100x0.25"]
    assert few == ["A100x1", "A100x2", "A100x0.5", "A100x0.25"]
    assert many == [*(f"A100x{g}" for g in range(1, 9)), "A100x0.5", "A100x0.25", "2*A100x8"]


def test_elastic_offers_everything(tmp_path):
    path = write(tmp_path, [(0.25, LARGE), (32, LARGE)])
    one, other = offered(make_instance(replay(path, "elastic"), 0))
    assert one == other == [*(f"A100x{g}" for g in range(1, 9)), "A100x0.5", "A100x0.25", "2*A100x8", "4*A100x8"]


def test_a_share_that_is_not_offered_or_too_small_for_the_memory_becomes_another_one(tmp_path):
    """0.4 counts as 0.25, 0.1 as the least, and the 9 GiB of the large one need half of the 20 GiB."""
    path = write(tmp_path, [(0.4, SMALL), (0.1, SMALL), (0.3, LARGE)])
    overrides = {"cluster.overrides.A100.memory_gib": 20.0}
    assert offered(make_instance(replay(path, **overrides), 0)) == [["A100x0.25"], ["A100x0.25"], ["A100x0.5"]]


def test_without_sharing_or_where_no_share_fits_a_share_counts_as_one_gpu(tmp_path):
    path = write(tmp_path, [(0.25, SMALL), (0.5, LARGE)])
    assert offered(make_instance(replay(path, **{"sharing.fractions": []}), 0)) == [["A100x1"], ["A100x1"]]
    small = {"cluster.overrides.A100.memory_gib": 12.0}
    assert offered(make_instance(replay(path, **small), 0)) == [["A100x0.25"], ["A100x1"]]


def test_between_two_numbers_of_nodes_a_job_gets_the_smaller_one(tmp_path):
    path = write(tmp_path, [(12, LARGE), (24, LARGE), (64, LARGE)])
    assert offered(make_instance(replay(path), 0)) == [["A100x8"], ["2*A100x8"], ["4*A100x8"]]


def test_an_application_that_was_not_measured_on_several_nodes_gets_one(tmp_path):
    assert offered(make_instance(replay(write(tmp_path, [(16, SMALL)])), 0)) == [["A100x8"]]


def test_without_several_nodes_on_offer_a_demand_is_clipped_to_a_node(tmp_path):
    scenario = replay(write(tmp_path, [(16, LARGE)]), **{"jobs.node_counts": [1]})
    assert (replayed_trace(scenario).gpus.tolist(), replayed_trace(scenario).clipped) == ([8.0], 1)
    assert replayed_trace(scenario.replace({"jobs.node_counts": [1, 2]})).clipped == 0


def test_a_job_on_whole_nodes_takes_the_traces_duration_there_and_a_share_keeps_its_gpu_seconds(tmp_path):
    """A quarter of a GPU for an hour is as much work as one GPU for a quarter of an hour."""
    path = write(tmp_path, [(16, LARGE), (0.25, SMALL), (16, SMALL)])
    jobs = make_instance(replay(path), 0).jobs
    large, small = builtin_applications()[LARGE], builtin_applications()[SMALL]
    needed_s = jobs.epochs_needed * [
        large.whole_nodes_s["A100", 2, 8],
        small.seconds_per_epoch["A100", 1],
        small.seconds_per_epoch["A100", 8],
    ]
    assert needed_s == pytest.approx([3600.0, 900.0, 7200.0], abs=1.0)  # of a trace in whole seconds


def test_a_job_that_is_offered_no_single_node_has_its_due_date_from_what_it_is_offered(tmp_path):
    path = write(tmp_path, [(0.25, SMALL), (16, LARGE)])
    jobs = make_instance(replay(path), 0).jobs
    full = jobs.max_epochs * jobs.seconds_per_epoch.min(axis=1)
    assert jobs.due_s - jobs.submission_s == pytest.approx(full), "there is one configuration for each"
