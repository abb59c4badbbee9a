"""Slurm's commands: tried again without an answer, refused job by job; requests that are changed and restored."""

from __future__ import annotations

import json
import math

import pytest

from gpusched_env.errors import InputError
from gpusched_operations.live.slurm_commands import JOBS_A_CALL, TRIES, Done, SlurmControl, SlurmError
from gpusched_operations.live.slurm_requests import SubmittedRequest
from gpusched_operations.live.slurm_state import cluster_of


def control(*answers: Done | BaseException, dry: bool = False):
    """Return commands that are answered so, one after the other, and what was asked."""
    asked, left = [], list(answers)

    def run(words, text, _limit_s):
        asked.append((" ".join(words), text))
        answer = left.pop(0)
        if isinstance(answer, BaseException):
            raise answer
        return answer

    pauses: list[float] = []
    return SlurmControl(run, pause=pauses.append, dry=dry), asked, pauses


FINE = Done(0, "", "")
DOWN = Done(1, "", "slurm_load_jobs error: Unable to contact slurm controller (connect failure)\n")


def test_what_is_not_answered_is_tried_again_later_and_later():
    commands, asked, pauses = control(DOWN, TimeoutError("no answer within 20 s"), FINE)
    assert commands.hold(["1", "2"]) == {}
    assert [words for words, _ in asked] == ["scontrol hold 1,2"] * 3
    assert pauses == [0.5, 1.0]
    assert (commands.calls, commands.tries) == (3, 3)


def test_after_so_many_tries_it_says_what_slurm_said():
    commands, asked, _ = control(*[DOWN] * TRIES)
    with pytest.raises(SlurmError, match="Unable to contact") as error:
        commands.jobs()
    assert not error.value.answered
    assert len(asked) == TRIES
    with pytest.raises(SlurmError) as missing:
        control(FileNotFoundError(2, "No such file or directory"))[0].jobs()
    assert not missing.value.answered


def test_refusals_are_told_job_by_job():
    said = "Job is pending execution for job 2\nInvalid job id specified for job 99\nslurm_suspend error: No error\n"
    commands, _, _ = control(Done(1, "", said))
    assert commands.stop(["1", "2", "99"]) == {
        "2": "Job is pending execution for job 2",
        "99": "Invalid job id specified for job 99",
    }
    commands, _, _ = control(Done(1, "", "slurm_suspend error: Access/permission denied\n"))
    with pytest.raises(SlurmError, match="denied") as error:
        commands.release(["1", "2"])
    assert error.value.answered


def test_many_jobs_take_few_calls():
    commands, asked, _ = control(*[FINE] * 5)
    commands.hold(map(str, range(2 * JOBS_A_CALL + 1)))
    assert len(asked) == 3
    commands.update({"7": {"ReqNodeList": "v1", "AdminComment": ""}, "8": {"StartTime": "now"}})
    assert asked[3] == ("scontrol", "update JobId=7 ReqNodeList=v1 AdminComment=\nupdate JobId=8 StartTime=now\nquit\n")
    commands.hold([])
    commands.update({})
    assert len(asked) == 4


@pytest.mark.parametrize("value", ["v1 v2", "v1\nrequeue 5", "ä", "x" * 5000, "it's", '"'])
def test_no_value_can_become_another_command(value):
    commands, asked, _ = control(FINE)
    with pytest.raises(InputError, match="ReqNodeList"):
        commands.update({"7": {"ReqNodeList": value}})
    for ids in (["7 8"], ["7;"], ["all"]):
        with pytest.raises(InputError):
            commands.hold(ids)
    with pytest.raises(InputError):
        commands.power_down(["v1", "ALL Reason=x"])
    assert asked == []


def test_a_dry_one_changes_nothing():
    commands, asked, _ = control(dry=True)
    commands.hold(["1"])
    commands.update({"1": {"ReqNodeList": "v1"}})
    commands.power_down(["v1"])
    assert asked == []
    assert commands.not_run == [
        "scontrol hold 1",
        "update JobId=1 ReqNodeList=v1",
        "scontrol update NodeName=v1 State=POWER_DOWN",
    ]


def job(**fields):
    usual = {"job_id": 5, "tres_per_node": "gres:gpu:v100:2", "tres_per_job": "", "node_count": 1, "required_nodes": ""}
    return usual | fields


@pytest.mark.parametrize(
    ("fields", "changes"),
    [
        ({}, {"TresPerNode": "gres:gpu:a100:4", "ReqNodeList": "a1"}),
        ({"tres_per_node": "gres:gpu:2"}, {"TresPerNode": "gres:gpu:4", "ReqNodeList": "a1"}),
        ({"tres_per_node": "gres:gpu"}, {"TresPerNode": "gres:gpu:4", "ReqNodeList": "a1"}),
        ({"tres_per_node": "gres/gpu:v100:2"}, {"TresPerNode": "gres/gpu:a100:4", "ReqNodeList": "a1"}),
        ({"tres_per_node": "gres:gpu:2,gres:nvme:1"}, {"TresPerNode": "gres:gpu:4,gres:nvme:1", "ReqNodeList": "a1"}),
        ({"tres_per_node": "", "tres_per_job": "gres:gpu:2"}, {"TresPerJob": "gres:gpu:4", "ReqNodeList": "a1"}),
    ],
)
def test_a_request_keeps_its_form(fields, changes):
    request = SubmittedRequest.of(job(**fields))
    assert request.why_not == ""
    assert request.elsewhere("a100", 4, ["a1"]) == changes


def test_several_nodes_and_a_power_limit():
    request = SubmittedRequest.of(
        job(tres_per_node="", tres_per_job="gres:gpu:v100:4", node_count=2, admin_comment="a")
    )
    changes = request.elsewhere("v100", 4, ["v1", "v2"], 0.7)
    assert changes == {"TresPerJob": "gres:gpu:v100:8", "ReqNodeList": "v1,v2", "AdminComment": "a,gpusched-power=0.7"}
    assert request.elsewhere("v100", 4, ["v1", "v2"], 1.0, "a,gpusched-power=0.7")["AdminComment"] == "a"
    with pytest.raises(InputError, match="nodes"):
        request.elsewhere("v100", 4, ["v1"])


def test_only_what_differs_is_restored():
    first = SubmittedRequest.of(job(admin_comment="a"))
    now = SubmittedRequest.of(job(admin_comment="a", required_nodes="v2", tres_per_node="gres:gpu:v100:4"))
    assert first.restored(now) == {"ReqNodeList": "", "TresPerNode": "gres:gpu:v100:2"}
    assert first.restored(first) == {}
    assert first.restored() == {"ReqNodeList": "", "AdminComment": "a", "TresPerNode": "gres:gpu:v100:2"}


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"array_job_id": {"set": True, "infinite": False, "number": 5}}, "array"),
        ({"array_task_string": "1-4"}, "array"),
        ({"het_job_id": 7}, "heterogeneous"),
        ({"tres_per_node": "", "tres_per_task": "gres:gpu:1"}, "--gpus-per-task"),
        ({"tres_per_node": ""}, "no GPUs"),
        ({"tres_per_node": "gres:gpu:v100:1,gres:gpu:a100:1"}, "more than once"),
        ({"tres_per_job": "gres:gpu:2"}, "more than once"),
        ({"resv_name": "maintenance"}, "reservation"),
        ({"admin_comment": "two words"}, "spaces"),
        ({"admin_comment": "it's"}, "quotes"),
        ({"required_nodes": '"v1'}, "quotes"),
        ({"tres_per_node": "gres:gpu:2,gres:x'y"}, "quotes"),
    ],
)
def test_jobs_that_cannot_be_placed_are_told_why(fields, why):
    assert why in SubmittedRequest.of(job(**fields)).why_not


def test_newer_versions_write_numbers_as_objects():
    unset, two = ({"set": on, "infinite": False, "number": 2 * on} for on in (False, True))
    assert SubmittedRequest.of(job(job_id=5, node_count=two, priority=unset)).nodes == 2


def test_one_job_that_cannot_be_read_costs_the_others_nothing():
    """And keeps its form and place, so that it can be restored."""
    bad = job(job_id=6, priority=math.inf, node_count="two", required_nodes="v1", het_job_id=10**400)
    tasks = job(job_id=7, array_job_id=7, array_task_string="1-2")
    jobs = cluster_of(json.dumps({"jobs": [job(job_id=5), bad, job(job_id="x"), tasks]}), "", 0.0).jobs
    asked = {each.id: each.request for each in jobs}
    assert not asked["5"].why_not
    assert asked["6"].why_not == "Slurm gives no number for node_count, priority, het_job_id"
    assert asked["0"].why_not == "Slurm gives no number for job_id"
    assert all("array" in asked[name].why_not for name in ("7_1", "7_2"))  # the driver holds jobs by whole ids alone
    assert (asked["6"].tres, asked["6"].places) == (asked["5"].tres, "v1")
