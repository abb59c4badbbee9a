"""What a comparison on a trace depends on, in sentences."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpusched_env.workload import Scenario, modelled

if TYPE_CHECKING:
    from pathlib import Path


HOLDS = (
    "Durations hold on V100; the part of its maximum epochs that a job needs is modelled: distributions of the family "
    "histogram."
)


def replay(folder: Path, text: str, **values: object) -> Scenario:
    path = folder / "trace.csv"
    path.write_text(text, encoding="utf-8")
    return Scenario(cluster={"nodes": 6}, trace={"path": str(path), **values})


def test_without_a_trace_nothing_is_to_be_said():
    assert modelled(Scenario()) == ()


def test_everything_that_a_bare_trace_lacks_is_named_with_its_rule(tmp_path):
    said = modelled(replay(tmp_path, "submission_s,duration_s,gpus\n0,9,1\n5,9,16\n"))
    assert said == (
        "GPU demand is elastic: any number of GPUs on offer, whatever a job asked for (trace.gpu_demand).",
        "Due dates are modelled: submission + U(least, greatest full execution time).",
        "Tardiness weights are modelled: U(0.913, 1.6) €/h.",
        "Applications, with memory and speed-up, are modelled: one of all applications for each job, drawn uniformly.",
        HOLDS,
        "1 of 2 jobs asked for more GPUs than are on offer; they run longer on fewer.",
    )


def test_rows_that_are_left_out_are_counted_by_reason(tmp_path):
    text = "submission_s,duration_s,gpus\n0,9,1\n5,9,2\n6,0,1\n"
    said = modelled(replay(tmp_path, text, where=["gpus < 2"], skip_invalid=True))
    assert said[-1] == "Rows of trace.csv that are left out: 1 not gpus < 2, 1 ran for 0 s."


def test_what_the_trace_says_is_the_traces_and_a_scaled_load_is_told(tmp_path):
    text = "submission_s,duration_s,gpus,due_s,tardiness_weight_eur_per_s,application\n"
    text += "0,9,1,20,0.5,lm-wikitext2-bs80\n5,9,1,20,0.5,lm-wikitext2-bs80\n"
    said = modelled(replay(tmp_path, text, gpu_demand="exact", load=0.5, reference_gpu_type="A100"))
    assert said[0].startswith("GPU demand is exact: as many GPUs as a job asked for")
    assert said[1:4] == (
        "Due dates are the trace's.",
        "Tardiness weights are the trace's.",
        "Applications are the trace's; memory and speed-up are theirs.",
    )
    assert "hold on A100" in said[4]
    assert said[5:] == ("Times between submissions are scaled to a load of 0.5.",)


def test_durations_that_hold_on_hardware_which_is_not_there_are_named(tmp_path):
    scenario = replay(tmp_path, "submission_s,duration_s,gpus\n0,9,1\n", reference_gpu_type="H100")
    (said,) = [sentence for sentence in modelled(scenario) if sentence.startswith("Durations")]
    assert "H100, of which the cluster has no node (trace.reference_gpu_type; it has V100, A100, T4)" in said
