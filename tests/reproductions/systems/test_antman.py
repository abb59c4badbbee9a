"""AntMan on Muri's traces: their reading, and figures that have to come out."""

import pytest

from gpusched_reproductions.systems.muri.memory import least_gib, need_gib
from gpusched_reproductions.systems.muri.ratios import COMPLETION, MAKESPAN, named_trace, ratios
from gpusched_reproductions.systems.muri.traces import MURI, muri_instance, path_of, read_trace
from refusals import refused

TRACES = [1, 2, 4]

needs_trace_3 = pytest.mark.skipif(not path_of(3).is_file(), reason=f"needs {path_of(3)}, of github.com/pkusys/Muri")


def test_memory_is_state_and_activations():
    """124 million parameters of 16 bytes and 1 GiB are 2.85 GiB; VGG16 adds 0.06 GB an image."""
    assert least_gib("gpt2") == pytest.approx(2.85, abs=0.01)
    assert need_gib("vgg16", 16) - least_gib("vgg16") == pytest.approx(16 * 0.0604e9 / 2**30)
    assert 12.0 < need_gib("gpt2", 4) < 14.0


@needs_trace_3
def test_trace_3_has_all_its_jobs_and_at_once_all_are_submitted_at_0():
    jobs, at_once = named_trace("3"), named_trace("3'")
    assert len(jobs) == len(at_once) == 992
    assert {job.submission_s for job in at_once} == {0.0}
    assert [job.alone_s for job in jobs] == [job.alone_s for job in at_once]
    assert sum(job.opportunistic for job in jobs) == 488


@needs_trace_3
def test_jobs_are_the_same_alone_and_shared_and_a_job_of_sixteen_gpus_takes_two_nodes():
    jobs = named_trace("3")
    shared, alone = (muri_instance(jobs, each) for each in ("utilisation", "alone"))
    assert shared.jobs.due_s.tolist() == alone.jobs.due_s.tolist()
    assert {"2*V100x8x0.6!", "2*V100x8x0.4", "V100x4x0.6!"} <= {c.name for c in shared.configurations}
    assert sum(node.gpus for node in alone.nodes) == 64


@needs_trace_3
def test_by_our_own_formula_antman_is_better_on_trace_3_than_by_muris_rules():
    own = ratios(named_trace("3"))
    assert own.completion == pytest.approx(0.37, abs=0.01)
    assert own.completion < COMPLETION["3"]
    assert own.makespan == pytest.approx(MAKESPAN["3"], rel=0.02)


def test_a_file_that_is_no_trace_is_refused(tmp_path):
    (tmp_path / "trace1.csv").write_text("a,b\n1,2\n", encoding="utf-8")
    with refused(str(tmp_path / "trace1.csv"), allowed="columns"):
        read_trace(tmp_path / "trace1.csv")


@pytest.mark.skipif(not MURI.is_dir(), reason=f"needs Muri's traces in {MURI}")
@pytest.mark.parametrize("trace", TRACES)
def test_every_trace_has_both_classes(trace):
    jobs = read_trace(path_of(trace))
    assert len(jobs) == {1: 1494, 2: 5755, 4: 2638}[trace]
    assert 0.4 < sum(job.opportunistic for job in jobs) / len(jobs) < 0.6
