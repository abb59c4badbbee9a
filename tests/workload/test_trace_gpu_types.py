"""The GPU type of each row of a trace: on which its duration holds."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from gpusched_baselines import AsTraced, edf
from gpusched_env import Scenario, make_instance, simulate
from gpusched_env.errors import InputError
from gpusched_env.formats import load_instance, save_instance
from gpusched_env.workload import modelled, read_trace
from gpusched_env.workload.traces.presets import likely_gpu_type
from refusals import refused
from run_files import audited

if TYPE_CHECKING:
    from pathlib import Path

H100_AND_L4 = [
    {"gpu_type": "H100", "nodes": 6, "gpus_per_node": 8},
    {"gpu_type": "L4-8", "nodes": 10},
]
L4_8 = [{"name": "L4-8", "like": "L4", "gpus_per_node": 8}]
MIXED = """submission_s,start_s,duration_s,gpus,gpu_type
0,0,1000,8,h100
10,20,2000,4,L4
30,40,500,1,
"""


def replay(folder: Path, text: str, **values: object) -> Scenario:
    """Replay on 6 nodes of 8 H100 and 10 of 8 L4; durations are true to a millionth of a second."""
    path = folder / "trace.csv"
    path.write_text(text, encoding="utf-8")
    base = Scenario(
        gpu_types=L4_8,
        cluster={"pools": H100_AND_L4},
        jobs={"applications": ["yolov3-voc-global64"]},
        trace={"path": str(path), "resolution_s": 1e-6},
    )
    return base.replace(values)


def took_s(scenario: Scenario) -> list[float]:
    """Return the time of every job's realised run on what it was traced on [s]."""
    jobs = make_instance(scenario, 0).jobs
    seconds = jobs.seconds_per_epoch[np.arange(len(jobs)), jobs.traced_config]
    return (jobs.epochs_needed * seconds).tolist()


def traced_on(scenario: Scenario) -> list[str]:
    instance = make_instance(scenario, 0)
    return [instance.configurations[i].name for i in instance.jobs.traced_config]


def test_every_jobs_duration_holds_on_the_type_of_its_own_row(tmp_path):
    scenario = replay(tmp_path, MIXED)
    assert traced_on(scenario) == ["H100x8", "L4-8x4", "H100x1"]
    assert took_s(scenario) == pytest.approx([1000.0, 2000.0, 500.0], abs=1e-5)
    assert make_instance(scenario, 0).jobs.traced_type_known.tolist() == [True, True, False]


def test_where_every_row_names_its_type_no_answer_hangs_on_the_reference_type(tmp_path):
    text = MIXED.replace("500,1,", "500,1,l4")
    instances = [
        make_instance(replay(tmp_path, text, **{"trace.reference_gpu_type": name}), 0) for name in ("H100", "L4-8")
    ]
    runs = [[simulate(each, policy).energy_eur for policy in (AsTraced(), edf())] for each in instances]
    assert runs[0] == runs[1]
    ignoring = {"trace.columns": {"gpu_type": ""}}
    guessed = [
        simulate(make_instance(replay(tmp_path, text, **{"trace.reference_gpu_type": name}, **ignoring), 0), AsTraced())
        for name in ("H100", "L4-8")
    ]
    assert guessed[0].energy_eur > 3.0 * guessed[1].energy_eur


def test_rows_that_name_no_type_are_of_the_reference_type(tmp_path):
    assert traced_on(replay(tmp_path, MIXED, **{"trace.reference_gpu_type": "L4-8"}))[2] == "L4-8x1"


def test_a_name_is_that_of_the_cluster_or_of_its_only_type_that_is_like_it_and_as_fast(tmp_path):
    assert traced_on(replay(tmp_path, MIXED))[1] == "L4-8x4"
    faster = [{"name": "L4-8", "like": "L4", "gpus_per_node": 8, "speed": 1.5}]
    with refused("trace.csv: gpu_type", "L4 1 jobs"):
        make_instance(replay(tmp_path, MIXED, gpu_types=faster), 0)


def test_types_that_the_cluster_does_not_have_are_one_error_with_counts_and_ways_out(tmp_path):
    text = MIXED.replace("h100", "nvidia_h100_80gb") + "50,50,9,1,nvidia_h100_80gb\n60,60,9,1,b200\n"
    with pytest.raises(InputError) as error:
        make_instance(replay(tmp_path, text), 0)
    assert str(error.value) == (
        "trace.csv: gpu_type = 'nvidia_h100_80gb 2 jobs, b200 1 jobs'; allowed: GPU types of the cluster (H100, L4-8); "
        "say which of them each is: --set trace.gpu_types.nvidia_h100_80gb=H100 --set trace.gpu_types.b200=TYPE; "
        'or take other rows: --where "gpu_type in (L4)"; or leave the column unread: --set trace.columns.gpu_type='
    )


def test_a_name_with_dots_is_mapped_as_one(tmp_path):
    scenario = replay(tmp_path, MIXED.replace("h100", "a100_1g.5gb"), **{"trace.gpu_types.a100_1g.5gb": "H100"})
    assert scenario.trace.gpu_types == {"a100_1g.5gb": "H100"}
    assert traced_on(scenario)[0] == "H100x8"


def test_other_spellings_are_mapped_whatever_their_letters_and_an_empty_text_names_no_type(tmp_path):
    text = MIXED.replace("h100", "Hopper").replace("L4", "misc")
    mapped = {"trace.gpu_types": {"hopper": "h100", "MISC": ""}, "trace.reference_gpu_type": "L4-8"}
    scenario = replay(tmp_path, text, **mapped)
    assert traced_on(scenario) == ["H100x8", "L4-8x4", "L4-8x1"]
    assert make_instance(scenario, 0).jobs.traced_type_known.tolist() == [True, False, False]
    with pytest.raises(InputError, match=r"trace\.gpu_types\.Hopper = 'H10'; allowed: one of .*did you mean"):
        make_instance(replay(tmp_path, text, **{"trace.gpu_types": {"Hopper": "H10"}}), 0)


def test_durations_may_hold_on_a_type_that_is_named_though_the_cluster_has_none(tmp_path):
    """What the jobs of V100s would do here: they are as long as on V100s, and run on what there is."""
    scenario = replay(tmp_path, MIXED.replace("h100", "v100"), **{"trace.gpu_types": {"v100": "V100"}})
    assert traced_on(scenario)[0] == "H100x8"
    assert took_s(scenario)[0] < 1000.0
    assert not make_instance(scenario, 0).jobs.traced_type_known[0]


def test_a_job_that_asked_for_more_than_a_node_of_its_type_has_stays_on_its_type(tmp_path):
    pools = [{"gpu_type": "H100", "nodes": 1, "gpus_per_node": 8}, {"gpu_type": "T4", "nodes": 2}]
    text = "submission_s,start_s,duration_s,gpus,gpu_type\n0,0,1000,8,T4\n"
    assert traced_on(replay(tmp_path, text, **{"cluster.pools": pools, "gpu_types": []})) == ["T4x4"]
    guessed = {"trace.columns": {"gpu_type": ""}, "trace.reference_gpu_type": "T4"}
    assert traced_on(replay(tmp_path, text, **{"cluster.pools": pools, "gpu_types": []}, **guessed)) == ["H100x8"]


def test_as_traced_waits_for_the_type_that_the_row_names_and_takes_another_where_it_is_a_guess(tmp_path):
    """Two jobs want the only H100 node from 5 s on: the second has it from 1005 s, or takes L4s after a minute."""
    pools = [{"gpu_type": "H100", "nodes": 1, "gpus_per_node": 8}, {"gpu_type": "L4-8", "nodes": 1}]
    text = "submission_s,start_s,duration_s,gpus,gpu_type\n0,5,1000,8,h100\n0,5,1000,8,h100\n"
    named = simulate(make_instance(replay(tmp_path, text, **{"cluster.pools": pools}), 0), AsTraced())
    assert named.start_s.tolist() == pytest.approx([5.0, 1005.0], abs=1e-5)
    assert set(named.intervals()["configuration"]) == {"H100x8"}
    unread = {"cluster.pools": pools, "trace.columns": {"gpu_type": ""}}
    guessed = simulate(make_instance(replay(tmp_path, text, **unread), 0), AsTraced())
    assert guessed.start_s.tolist() == pytest.approx([5.0, 65.0], abs=1e-5)


def test_that_a_type_is_known_is_kept_in_files_and_passes_the_audit(tmp_path):
    instance = make_instance(replay(tmp_path, MIXED), 0)
    save_instance(instance, tmp_path / "instance.json")
    again = load_instance(tmp_path / "instance.json")
    assert again.jobs.traced_type_known.tolist() == [True, True, False]
    assert audited(simulate(again, AsTraced()), tmp_path / "run") == []


def test_what_is_modelled_names_the_types_with_their_jobs(tmp_path):
    said = next(each for each in modelled(replay(tmp_path, MIXED)) if each.startswith("Durations"))
    assert "the GPU type of each row: h100 1 jobs, L4 (here L4-8) 1 jobs, none named (here H100) 1 jobs; " in said
    strange = modelled(replay(tmp_path, MIXED.replace("h100", "b200")))
    assert any("b200 (no such node here) 1 jobs" in each for each in strange)


def test_a_name_that_is_merely_alike_is_another_type():
    assert likely_gpu_type("nvidia_h100_80gb_hbm3", ("V100", "H100")) == "H100"
    assert likely_gpu_type("h100", ("V100", "A100")) is None
    assert likely_gpu_type("NVIDIA-A100-SXM4", ("A10", "A100")) == "A100"


@pytest.mark.parametrize(
    ("columns", "row", "named"),
    [
        ("AllocTRES", "cpu=8,gres/gpu:h100=8,gres/gpu=8,node=1", "h100"),
        ("AllocTRES|ReqTRES", "gres/gpu=8|gres/gpu:a100_80gb=8", "a100_80gb"),
        ("ReqGRES", "gpu:a100:2(IDX:0,1)", "a100"),
        ("ReqGRES", "gpu:2080ti", "2080ti"),
        ("AllocTRES", "gres/gpu:v100=1,gres/gpu:a100=1", "v100+a100"),
        ("AllocTRES", "gres/gpu:v100=0,gres/gpu:a100=1", "a100"),
    ],
)
def test_sacct_says_the_type_of_each_job(columns, row, named, tmp_path):
    text = f"JobID|Submit|Start|End|ElapsedRaw|{columns}\n1|2024-01-31T12:00:00|2024-01-31T12:00:00|"
    path = tmp_path / "jobs.txt"
    path.write_text(f"{text}2024-01-31T12:00:07|7|{row}\n", encoding="utf-8")
    assert read_trace(path, "sacct").gpu_type == (named,)


def test_slurms_jobs_without_a_type_have_no_such_field(tmp_path):
    path = tmp_path / "jobs.txt"
    path.write_text("JobID|Submit|ElapsedRaw|ReqGRES\n1|2024-01-31T12:00:00|7|gpu:3\n", encoding="utf-8")
    assert read_trace(path, "sacct").gpu_type is None


def test_any_column_may_name_the_type(tmp_path):
    path = tmp_path / "jobs.txt"
    path.write_text(
        "JobID|Submit|ElapsedRaw|ReqGRES|Partition\n1|2024-01-31T12:00:00|7|gpu:3|gpu-l4\n", encoding="utf-8"
    )
    assert read_trace(path, "sacct", {"gpu_type": "Partition"}).gpu_type == ("gpu-l4",)
