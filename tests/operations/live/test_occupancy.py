"""What of each node is held, by whom, and what may not start: by Slurm's texts, whose forms are those of its manual."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpusched_operations.live.job_rules import JobRules
from gpusched_operations.live.occupancy import NodeUse, occupancy
from gpusched_operations.live.request import LiveRequest, request_of
from gpusched_operations.live.slurm_nodes import nodes_of
from gpusched_operations.live.slurm_state import cluster_of
from gpusched_operations.live.state import LiveCluster

AT = 1_795_657_761.0


def node(name: str, gres: str, **fields: str) -> str:
    shown = {"Gres": gres, "State": "MIXED", "Partitions": "gpu"} | fields
    return f"NodeName={name} Arch=x86_64\n   " + "\n   ".join(f"{key}={value}" for key, value in shown.items()) + "\n\n"


def job(number: int, asks: str, on: str = "", **fields: Any) -> dict[str, Any]:
    """A job that asks for resources of each node; it runs where a node is given, else it waits for GPUs."""
    state = {"job_state": ["RUNNING"], "nodes": on, "start_time": 100} if on else {"state_reason": "Resources"}
    record = {"job_id": number, "job_state": ["PENDING"], "partition": "gpu", "tres_per_node": asks, "time_limit": 600}
    return record | state | fields


def cluster(nodes: str, *jobs: dict[str, Any]) -> LiveCluster:
    return cluster_of(json.dumps({"jobs": jobs}), nodes, AT)


def held_on(name: str, found: LiveCluster) -> tuple[int, int]:
    """Return the GPUs of a node that are held, and those of them that no job that can be seen holds."""
    use = occupancy(found)[name]
    return use.held, use.unseen


def asked(found: LiveCluster) -> LiveRequest:
    return request_of(found, JobRules(), "edf", preemptive=False)


def offered(found: LiveCluster) -> dict[str, int]:
    return {each["name"]: each["gpus"] for each in asked(found).fields["cluster"]["nodes"]}


def test_gpus_that_a_node_tells_are_held_are_held_by_jobs_that_cannot_be_seen() -> None:
    nodes = node("a1", "gpu:a100:8", CfgTRES="cpu=64,gres/gpu=8", AllocTRES="cpu=48,gres/gpu=7,gres/gpu:a100=7")
    found = cluster(nodes, job(1, "gres/gpu:a100:2", "a1", gres_detail=["gpu:a100:2(IDX:0-1)"]), job(2, "gres/gpu:4"))
    assert held_on("a1", found) == (7, 5)
    assert offered(found) == {"a1": 3}  # two are those of job 1, which the policy is told
    assert asked(found).left_out == {"2": "jobs that the policy is not told hold the GPUs that it may use"}


@pytest.mark.parametrize(
    ("told", "held"),
    [
        ({}, (2, 0)),
        ({"AllocTRES": "cpu=4"}, (2, 0)),  # GPUs are none of the resources that it counts
        ({"AllocTRES": "cpu=4,gres/gpu=1"}, (2, 0)),  # it is late: the larger number counts
        ({"AllocTRES": "gres/gpu=6"}, (6, 4)),
        ({"GresUsed": "gpu:a100:5(IDX:0-4)"}, (5, 3)),
        ({"GresUsed": "gpu:a100:2(IDX:0-1)", "AllocTRES": "gres/gpu=3"}, (3, 1)),
    ],
)
def test_the_larger_of_what_jobs_hold_and_what_the_node_tells(told: dict[str, str], held: tuple[int, int]) -> None:
    nodes = node("a1", "gpu:a100:8(S:0-1)", **told)
    found = cluster(nodes, job(1, "gres/gpu:a100:2", "a1", gres_detail=["gpu:a100:2(IDX:0-1)"]))
    assert held_on("a1", found) == held


@pytest.mark.parametrize(
    ("told", "free"),
    [
        ({"CPUAlloc": "64", "CPUEfctv": "64", "CPUTot": "66"}, 0),
        ({"CPUAlloc": "63", "CPUEfctv": "64"}, 6),
        ({"CPUAlloc": "63", "CPUTot": "64", "State": "ALLOCATED"}, 6),
        ({"State": "ALLOCATED"}, 0),
    ],
)
def test_no_job_starts_where_others_hold_all_cpus(told: dict[str, str], free: int) -> None:
    runs = job(1, "gres/gpu:a100:2", "a1", gres_detail=["gpu:a100:2(IDX:0-1)"])
    found = cluster(node("a1", "gpu:a100:8", **told) + node("a2", "gpu:a100:8"), runs, job(2, "gres/gpu:2"))
    use = occupancy(found)["a1"]
    assert (use.held, use.stranded, use.free) == (2, 6 - free, free)
    assert offered(found) == {"a1": 2 + free, "a2": 8}


def test_the_json_of_nodes_tells_the_same() -> None:
    told = {"name": "a1", "state": ["MIXED"], "gres": "gpu:a100:8", "gres_used": "gpu:a100:5(IDX:0-4)"}
    assert [each.allocated for each in nodes_of(json.dumps({"nodes": [told]}))] == [5]
    told |= {"gres_used": "", "tres_used": "cpu=4,gres/gpu=6", "tres": "cpu=64,gres/gpu=8"}
    assert [each.allocated for each in nodes_of(json.dumps({"nodes": [told]}))] == [6]


@pytest.mark.parametrize(
    ("fields", "held"),
    [
        ({"tres_alloc_str": "cpu=4,gres/gpu=6,gres/gpu:a100=6"}, 6),
        ({"tres_alloc_str": "cpu=4,gres/gpu=6", "gres_detail": [""]}, 6),
        ({"tres_alloc_str": "gres/gpu=6", "gres_detail": ["gpu:a100:2(IDX:0-1)"]}, 6),
        ({"gres_detail": ["gpu:a100:6(IDX:0-5)"]}, 6),
        ({"tres_alloc_str": "gres/gpu=5,gres/gpu:a100=2"}, 5),  # of some types it counts no GPUs
        ({}, 2),
    ],
)
def test_what_a_running_job_holds_comes_before_what_it_asked_for(fields: dict[str, Any], held: int) -> None:
    found = cluster(node("a1", "gpu:a100:8"), job(1, "gres/gpu:2", "a1", **fields))
    assert found.jobs[0].gpus == sum(many for _, many in found.jobs[0].holds) == held_on("a1", found)[0] == held


@pytest.mark.parametrize("kind", ["shard", "mps"])
def test_a_share_keeps_jobs_of_whole_gpus_off_its_gpu(kind: str) -> None:
    details = [f"{kind}:a100:4(0/8,4/8,0/8,0/8)", f"{kind}:a100:2(0/8,2/8,0/8,0/8)", f"{kind}:a100:8(IDX:3)"]
    jobs = [job(n, f"gres/{kind}:4", "a1", gres_detail=[each]) for n, each in enumerate(details, 1)]
    nodes = node("a1", f"gpu:a100:4(S:0-1),{kind}:a100:32(S:0-1)", AllocTRES=f"cpu=16,gres/{kind}=14")
    found = cluster(nodes, *jobs, job(9, "gres/gpu:a100:4"))
    assert held_on("a1", found) == (2, 0)
    made = asked(found)
    assert made.left_out["1"] == f"asks for parts of GPUs: {kind}:4"
    assert offered(found) == {"a1": 2}
    assert made.left_out["9"] == "jobs that the policy is not told hold the GPUs that it may use"


def test_shares_that_cannot_be_seen_may_each_be_on_a_gpu_of_its_own() -> None:
    mine = job(1, "gres/shard:4", "a1", gres_detail=["shard:4(4/8,0/8,0/8,0/8)"])
    gres = "gpu:a100:4,shard:a100:32"
    assert held_on("a1", cluster(node("a1", gres, AllocTRES="gres/shard=6"), mine)) == (3, 2)
    assert held_on("a1", cluster(node("a1", gres, AllocTRES="gres/shard=26"), mine)) == (4, 3)
    used = "gpu:a100:1(IDX:3),shard:a100:6(6/8,0/8,0/8,0/8)"
    assert held_on("a1", cluster(node("a1", gres, GresUsed=used, AllocTRES="gres/gpu=1,gres/shard=6"), mine)) == (2, 1)
    assert held_on("a1", cluster(node("a1", gres), job(2, "gres/shard:4", "a1"))) == (1, 0)


def test_slices_are_no_gpus_and_the_whole_gpus_beside_them_are_usable() -> None:
    nodes = node("m1", "gpu:a100:3(S:0),gpu:a100_3g.20gb:2(S:1)", AllocTRES="gres/gpu=2")
    nodes += node("m2", "gpu:h200_1g.18gb:7,gpu:h200_4g.71gb:1", State="IDLE")
    runs = job(1, "gres/gpu:a100_3g.20gb:1", "m1", gres_detail=["gpu:a100_3g.20gb:1(IDX:3)"])
    found = cluster(nodes, runs, job(2, "gres/gpu:a100:1", "m1"), job(3, "gres/gpu:h200_1g.18gb:2"))
    assert [(each.gpus, each.gpu_type, each.parts) for each in found.nodes] == [
        (3, "a100", (("a100_3g.20gb", 2),)),
        (0, "gpu", (("h200_1g.18gb", 7), ("h200_4g.71gb", 1))),
    ]
    assert held_on("m1", found) == (1, 0)
    assert offered(found) == {"m1": 3}  # one is that of job 2, which the policy is told
    made = asked(found)
    assert made.left_out == {
        "1": "asks for parts of GPUs: gpu:a100_3g.20gb:1",
        "3": "asks for parts of GPUs: gpu:h200_1g.18gb:2",
    }
    assert made.nodes_left_out == {"m2": "it has no whole GPUs, but 7 h200_1g.18gb, 1 h200_4g.71gb"}
    typed = "gres/gpu=3,gres/gpu:a100=2,gres/gpu:a100_3g.20gb=1"
    assert held_on("m1", cluster(node("m1", "gpu:a100:3,gpu:a100_3g.20gb:2", AllocTRES=typed), runs)) == (2, 2)


@pytest.mark.parametrize("text", ["gpu:a100:x4", "gres/gpu=two", "gres/gpu:a100=2.5", "gpu:4.5", "gpu:-1", "gpu:a:b:2"])
def test_a_number_that_cannot_be_read_is_an_error_of_that_job_and_never_one(text: str) -> None:
    """The GPUs of its node, of which it may hold any number, are not offered."""
    nodes = node("a1", "gpu:a100:8") + node("a2", "gpu:a100:8")
    found = cluster(nodes, job(1, text, "a1"), job(2, text), job(3, "gres/gpu:1"))
    made = asked(found)
    assert all("gres" in made.left_out[name] for name in ("1", "2"))
    assert list(made.jobs) == ["3"]
    assert offered(found) == {"a2": 8}


def test_what_asks_for_other_accelerators_is_told_by_its_name() -> None:
    made = asked(cluster(node("a1", "gpu:a100:8"), job(1, "gres/npu:2"), job(2, "gres/gpu:1,gres/nic:1")))
    assert made.left_out == {"1": "asks for npu:2, which is not read"}
    assert list(made.jobs) == ["2"]


@pytest.mark.parametrize(("alone", "usable"), [("true", {"a2": 8}), ("user", {"a2": 8}), ("false", {"a1": 6, "a2": 8})])
def test_no_job_starts_beside_one_that_has_its_node_alone(alone: str, usable: dict[str, int]) -> None:
    nodes = node("a1", "gpu:a100:8") + node("a2", "gpu:a100:8")
    rule = {"exclusive": [alone], "gres_detail": ["gpu:a100:2(IDX:0-1)"], "resv_name": "theirs"}
    found = cluster(nodes, job(1, "gres/gpu:2", "a1", **rule), job(2, "gres/gpu:2"))
    assert offered(found) == usable
    if "a1" not in usable:
        assert "job 1 has it alone" in asked(found).nodes_left_out["a1"]


def reasons() -> dict[str, str]:
    """Return the class of each reason that Slurm has had since 22.05, also of those on its page only.

    With `starts` a job starts as soon as there are GPUs; it is `held`; or it `waits` for something else.
    """
    with (Path(__file__).parent / "data" / "slurm_reasons.csv").open(encoding="utf-8", newline="") as file:
        return {row["reason"]: row["class"] for row in csv.DictReader(file)}


def test_every_reason_of_slurm_is_in_its_class_and_one_that_is_not_known_waits() -> None:
    classes = {"": "starts", **reasons(), "SomethingNew": "waits"}
    jobs = [job(number, "gres/gpu:1", state_reason=reason) for number, reason in enumerate(classes, 1)]
    found = asked(cluster(node("a1", "gpu:a100:8"), *jobs))
    numbers = {reason: str(number) for number, reason in enumerate(classes, 1)}
    starts, held = ([reason for reason, of in classes.items() if of == each] for each in ("starts", "held"))
    assert starts == ["", "None", "Priority", "Resources"]
    assert held == ["JobHeldAdmin", "JobHeldUser", "JobHoldMaxRequeue"]
    assert list(found.jobs) == [numbers[reason] for reason in starts]
    for reason in classes.keys() - {*starts, *held}:
        assert found.left_out[numbers[reason]] == f"waits for something else: {reason}"
    assert [found.left_out[numbers[reason]] for reason in held] == [f"held: {reason}" for reason in held]


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"eligible_time": AT + 60.0}, "BeginTime"),
        ({"eligible_time": AT - 60.0}, ""),
        ({"eligible_time": AT + 60.0, "restart_cnt": 1}, ""),  # Slurm lets a job that was put back wait two minutes
        ({"priority": {"set": True, "infinite": False, "number": 0}}, "a priority above 0"),
        ({"priority": 12}, ""),
    ],
)
def test_a_job_that_may_not_start_yet_does_not_whatever_its_reason(fields: dict[str, Any], why: str) -> None:
    found = cluster(node("a1", "gpu:a100:8"), job(1, "gres/gpu:1", state_reason="None", **fields))
    assert asked(found).left_out == ({"1": f"waits for something else: {why}"} if why else {})


def test_a_reason_counts_by_its_name_and_not_by_its_description() -> None:
    why = "Nodes required for job are DOWN, DRAINED or reserved for jobs in higher priority partitions"
    fits = cluster(node("a1", "gpu:a100:8"), job(1, "gres/gpu:1", state_description=why))
    assert list(asked(fits).jobs) == ["1"]
    told = cluster(node("a1", "gpu:a100:8"), job(1, "gres/gpu:1", state_description=why, state_reason="NodeDown"))
    assert why in asked(told).left_out["1"]
    first = cluster(node("a1", "gpu:a100:8"), job(1, "gres/gpu:1", state_reason="None", dependency="afterok:7"))
    assert asked(first).left_out == {"1": "waits for something else: Dependency"}
    again = cluster(node("a1", "gpu:a100:8"), job(1, "gres/gpu:1", state_reason="BeginTime", restart_cnt=1))
    assert list(asked(again).jobs) == ["1"]


@pytest.mark.parametrize("limit", [{"array_task_string": "3-8%2"}, {"array_task_string": "3-8", "array_max_tasks": 2}])
@pytest.mark.parametrize("running", [0, 1, 2, 3])
def test_of_an_array_no_more_tasks_start_than_may_run_at_once(limit: dict[str, Any], running: int) -> None:
    tasks = [job(10 + n, "gres/gpu:1", "a1", array_job_id=9, array_task_id=n) for n in range(running)]
    found = cluster(node("a1", "gpu:a100:8"), *tasks, job(9, "gres/gpu:1", array_job_id=9, **limit))
    made = asked(found)
    waiting = {each.id for each in found.jobs if each.phase == "pending"}
    assert len(waiting) == 6
    assert len(waiting & made.jobs.keys()) == max(0, 2 - running)
    assert all("at most 2 tasks" in made.left_out[name] for name in waiting - made.jobs.keys())


def test_a_limit_of_an_array_that_cannot_be_read_is_an_error_of_that_array() -> None:
    found = cluster(node("a1", "gpu:a100:8"), job(9, "gres/gpu:1", array_job_id=9, array_task_string="1-6%x"))
    assert "array_task_string" in asked(found).left_out["9"]


# Generated clusters

GPUS = 8


@st.composite
def clusters(draw: st.DrawFn) -> tuple[LiveCluster, dict[str, set[int]]]:
    """Return nodes on which jobs hold GPUs and shares of them, some hidden, and the GPUs that are really held."""
    nodes, records, really = "", [job(1, "gres/gpu:a100:2"), job(2, "gres/shard:1"), job(3, "gres/npu:1")], {}
    for name in draw(st.sampled_from([("a1",), ("a1", "a2")])):
        free, whole, shares = list(range(GPUS)), set[int](), dict.fromkeys(range(GPUS), 0)
        for _ in range(draw(st.integers(0, 5))):
            kind, many = draw(st.sampled_from(["gpu", "shard"])), draw(st.integers(1, 3))
            hidden, tells = draw(st.booleans()), draw(st.booleans())
            if kind == "gpu" and len(free) >= many:
                mine = [free.pop() for _ in range(many)]
                whole |= set(mine)
                detail = [f"gpu:a100:{many}(IDX:{','.join(map(str, mine))})"]
            elif kind == "shard" and free:
                on = draw(st.sampled_from(sorted({*free, *(n for n in shares if shares[n])})))
                shares[on] += many
                free = [n for n in free if n != on]
                detail = [f"shard:a100:{many}({','.join(f'{many if n == on else 0}/64' for n in range(GPUS))})"]
            else:
                continue
            if not hidden:
                known = {"tres_alloc_str": f"cpu=1,gres/{kind}={many}"}
                if tells or kind == "shard":
                    known["gres_detail"] = detail
                records.append(job(10 + len(records), f"gres/{kind}:{many}", name, **known))
        used = {"AllocTRES": f"cpu=9,gres/gpu={len(whole)},gres/shard={sum(shares.values())}"}
        if draw(st.booleans()):
            indices = f"(IDX:{','.join(map(str, sorted(whole)))})" if whole else ""
            each = ",".join(f"{shares[n]}/64" for n in range(GPUS))
            used["GresUsed"] = f"gpu:a100:{len(whole)}{indices},shard:a100:{sum(shares.values())}({each})"
        nodes += node(name, f"gpu:a100:{GPUS},shard:a100:512", **used)
        really[name] = whole | {n for n in shares if shares[n]}
    return cluster(nodes, *records), really


@given(clusters())
@settings(max_examples=60, deadline=None)
def test_what_somebody_holds_is_never_offered_and_every_job_is_in_one_list(
    given_cluster: tuple[LiveCluster, dict[str, set[int]]],
) -> None:
    found, really = given_cluster
    for name, use in occupancy(found).items():
        assert isinstance(use, NodeUse)
        assert use.by_jobs + use.unseen == use.held <= GPUS
        assert use.held >= len(really[name])
    if all(use.held == GPUS for use in occupancy(found).values()):
        return
    made = asked(found)
    assert {each.id for each in found.jobs} == made.jobs.keys() | made.left_out.keys()
    assert not made.jobs.keys() & made.left_out.keys()
    own: dict[str, int] = {}
    for each in found.jobs:
        if each.id in made.jobs:
            own |= {name: own.get(name, 0) + many for name, many in each.holds}
    for name, gpus in offered(found).items():
        assert gpus - own.get(name, 0) <= GPUS - len(really[name])
