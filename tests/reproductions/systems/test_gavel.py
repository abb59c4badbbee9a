"""Gavel's workload, drawn as its authors draw it, and one figure of theirs."""

import json
import math
from pathlib import Path

import numpy as np
import pytest

from gavel_demands import demand
from gpusched_baselines.gavel import Gavel
from gpusched_reproductions.systems.gavel import load_chart, run_makespan, run_single
from gpusched_reproductions.systems.gavel_workload import (
    NO_FIT,
    NOT_DISTRIBUTED,
    SIZES,
    cluster,
    drawn_jobs,
    fifo_as_run,
    mean_completion_h,
    pair_slowdowns,
    step_speeds,
    throughputs,
)
from gpusched_reproductions.systems.validation import parts_of
from refusals import refused

ROOT = Path(__file__).parents[3]
PLACES = [folder / "shared/data/gavel/simulation_throughputs.json" for folder in (ROOT.parent, ROOT.parent.parent)]
RECORDED = next((place for place in PLACES if place.exists()), PLACES[0])


def test_the_table_has_26_models_of_one_gpu_in_the_order_of_the_published_runs():
    models = list(throughputs())
    assert len(models) == 26
    assert [name for name, _ in models[13:16]] == ["Transformer", "A3C", "LM"]
    for (name, _), sizes in throughputs().items():
        assert tuple(sizes) == ((1,) if name in NOT_DISTRIBUTED else SIZES)


@pytest.mark.skipif(not RECORDED.exists(), reason=f"{RECORDED} is not there")
def test_the_table_is_what_was_measured():
    recorded = json.loads(RECORDED.read_text(encoding="utf-8"))
    for (name, batch), sizes in throughputs().items():
        model = f"{name} (batch size {batch})" if batch else name
        for gpus, speeds in sizes.items():
            there = [recorded[v][f"('{model}', {gpus})"]["null"] for v in ("v100", "p100", "k80")]
            assert speeds == pytest.approx(there, rel=1e-6)


@pytest.mark.skipif(not RECORDED.exists(), reason=f"{RECORDED} is not there")
def test_the_slow_downs_of_pairs_are_those_that_were_measured():
    recorded = json.loads(RECORDED.read_text(encoding="utf-8"))
    names = [f"('{name} (batch size {batch})', 1)" if batch else f"('{name}', 1)" for name, batch in throughputs()]
    for v, gpu in enumerate(("v100", "p100", "k80")):
        for a, one in enumerate(names):
            for b, other in enumerate(names):
                beside = recorded[gpu][one][other][0]
                steps = [math.floor(360 * speed) for speed in (recorded[gpu][one]["null"], beside)]
                assert pair_slowdowns()[v, a, b] == pytest.approx(steps[0] / steps[1] if beside else NO_FIT, rel=1e-2)


def test_the_figure_has_our_lines_beside_the_published_ones():
    ours = {("Gavel's LAS", 4.0): 16.8, ("Gavel's LAS", 4.8): 19.0}
    here, published = load_chart(ours).rows[0]
    drawn = {series.name: [(x, y.value) for x, y in series.points] for series in here.series}
    assert drawn["Gavel's LAS"] == [(4.0, 16.8), (4.8, 19.0)]
    assert [series.name for series in here.series] == [series.name for series in published.series]


def test_jobs_are_the_same_for_one_and_for_several_gpus_until_a_model_is_drawn_again():
    one, several = drawn_jobs(0, 1, 4.0, False)[0], drawn_jobs(0, 1, 4.0, True)[0]
    assert one.gpus == 1
    assert one.arrival_s == several.arrival_s == 0.0
    seconds = [job.steps / throughputs()[job.model][job.gpus][0] for job in (one, several)]
    assert seconds[0] == pytest.approx(seconds[1])
    assert 60 * 10**1.5 <= seconds[0] <= 60 * 10**4


def test_the_mix_is_that_of_the_paper():
    jobs = drawn_jobs(1, 4000, None, True)
    share = [np.mean([job.gpus == size for job in jobs]) for size in SIZES]
    assert share == pytest.approx([0.7, 0.1, 0.15, 0.05], abs=0.02)
    assert {job.arrival_s for job in jobs} == {0.0}
    gaps = np.diff([job.arrival_s for job in drawn_jobs(1, 4000, 4.0, True)])
    assert gaps.mean() == pytest.approx(900.0, rel=0.05)


def test_a_job_runs_on_as_many_gpus_as_it_asks_for_and_does_whole_steps_in_a_round():
    jobs = drawn_jobs(0, 50, 4.0, True)
    seconds = cluster(jobs, "gavel").jobs.seconds_per_epoch.reshape(50, 3, 4)
    for row, job in zip(seconds, jobs, strict=True):
        column = SIZES.index(job.gpus)
        assert not np.isfinite(np.delete(row, column, axis=1)).any()
        speeds = throughputs()[job.model][job.gpus]
        done = [math.floor(360.0 * speed) for speed in speeds]
        assert (360.0 / row[:, column]) == pytest.approx(done)


def test_too_few_jobs_for_a_steady_state_are_refused():
    instance = cluster(drawn_jobs(0, 30, 4.0, False), "gavel")
    with refused("jobs", 30):
        mean_completion_h(instance, Gavel("fifo"), 20, 30)
    few = mean_completion_h(cluster(drawn_jobs(0, 3000, 4.0, False), "gavel"), Gavel("fifo"), 0, 2)
    assert 0.0 < few < 1000.0


def test_the_slip_gives_the_fastest_type_to_more_jobs_than_fit():
    of = demand([[3, 2, 1]] * 4, capacity=(1, 1, 1))
    x = fifo_as_run(of, np.random.default_rng(1))
    assert x.sum() == 4
    assert x[:, 0].sum() > 1


def test_the_makespan_of_a_hundred_jobs_is_the_published_one():
    """161.16 h in their notebook, the mean of three seeds."""
    (check,) = run_makespan(True).checks
    assert check.met
    assert check.ours == pytest.approx(161.16, abs=0.05)


def test_first_in_first_out_is_the_published_one_to_the_digit():
    (check,) = run_single(True).checks
    assert round(check.ours, 2) == 17.08


def test_steps_have_the_measured_speeds_in_the_configurations_of_the_cluster():
    speeds = step_speeds()
    instance = cluster(drawn_jobs(0, 50, 4.0, True), "gavel", pairs=True)
    seconds, application = instance.jobs.seconds_per_epoch, instance.jobs.application
    for row, speed in zip(seconds, speeds.alone[application], strict=True):
        there = np.isfinite(row)
        assert (360.0 / row[there]) == pytest.approx(np.floor(360.0 * speed[there]))
    assert speeds.paired.shape == (3, 26, 26)


def test_the_parts_of_gavel_are_in_the_catalogue():
    assert {part.name for part in parts_of("gavel")} == {"makespan", "single-gpu", "multi-gpu"}
    assert all(part.needs is None for part in parts_of("gavel"))
