"""What a driver did is undone whatever else is wrong: with Numba, and with jobs of others."""

from __future__ import annotations

import json
from collections.abc import Sequence

from gpusched_env.workload.tables.applications import builtin_gpu_types
from gpusched_operations.live.lease import release_now
from gpusched_operations.live.slurm_commands import Done, SlurmControl
from gpusched_operations.service.gpu_names import built_in_gpu_type
from made_up_drives import ELASTIC, driver, scripted
from made_up_slurm import MadeUpJob, MadeUpSlurm


def test_the_names_are_those_of_the_built_in_types():
    assert all(built_in_gpu_type(name.lower()) == name for name in builtin_gpu_types())


class WithOthers:
    """A made-up Slurm that tells of further jobs, of other partitions."""

    def __init__(self, slurm: MadeUpSlurm) -> None:
        self.slurm = slurm

    def run(self, words: Sequence[str], text: str, limit_s: float) -> Done:
        done = self.slurm.run(words, text, limit_s)
        if tuple(words) != ("squeue", "--all", "--json"):
            return done
        waits = {"job_id": 90, "job_state": ["PENDING"], "partition": "cpu"}
        jobs = [
            waits | {"array_job_id": 90, "array_task_string": "0-200000"},
            waits | {"job_id": 91, "priority": "high", "time_limit": "1:00"},
            waits | {"job_id": 92, "job_state": ["DANCING"], "nodes": "v1"},
        ]
        return done._replace(output=json.dumps({"jobs": [*jobs, *json.loads(done.output)["jobs"]]}))


def test_jobs_of_others_that_cannot_be_read_stop_neither_a_driver_nor_a_release(tmp_path):
    slurm = MadeUpSlurm()
    for number in (1, 2):
        slurm.submit(MadeUpJob(number, ELASTIC, work_s=1e6), held=True)
    made, _ = driver(slurm, tmp_path, scripted({"1": ("start", "A100x4", "a1"), "2": ("start", "V100x4", "v1")}))
    made.commands.run = WithOthers(slurm).run
    made.round()
    assert slurm.jobs[1].node == "a1"
    assert slurm.jobs[2].state == "PENDING"  # a job may hold GPUs of v1
    assert slurm.jobs[2].request() == slurm.jobs[2].first
    slurm.down = set(slurm.nodes)
    commands = SlurmControl(WithOthers(slurm).run, pause=slurm.pause)
    assert release_now(tmp_path, "gpu", commands, "by hand") == ["2"]
    assert slurm.jobs[2].priority > 0
