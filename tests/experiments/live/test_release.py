"""What a driver did is undone whatever else is wrong: with Numba, and with jobs of others."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence

import pytest

from gpusched_env.workload.tables.applications import builtin_gpu_types
from gpusched_experiments.live.drive_state import DriveState
from gpusched_experiments.live.gpu_names import built_in_gpu_type
from gpusched_experiments.live.lease import release_now
from gpusched_experiments.live.slurm_commands import Done, SlurmControl
from made_up_drives import ELASTIC, driver, scripted
from made_up_slurm import MadeUpJob, MadeUpSlurm

IMPORTED = "print([name for name in ('numba', 'gpusched_env.kernel') if name in sys.modules])"


def printed(text: str, *words: str) -> str:
    done = subprocess.run([sys.executable, "-c", text, *words], check=True, capture_output=True, text=True)
    return done.stdout


@pytest.mark.parametrize("module", ["lease", "slurm_state", "slurm_requests", "progress_reports"])
def test_it_imports_no_compiled_function(module):
    """Where nobody can write Numba's cache, a module of them cannot be imported."""
    assert printed(f"import sys, gpusched_experiments.live.{module}\n{IMPORTED}") == "[]\n"


def test_nor_does_the_command(tmp_path):
    DriveState("gpu").save(tmp_path)
    text = "import sys\nfrom gpusched_experiments.cli.main import run\n"
    text += f"try:\n    run()\nexcept SystemExit as end:\n    assert not end.code, end.code\n{IMPORTED}"
    told = printed(text, "slurm", "release", "--partition", "gpu", "--state", str(tmp_path))
    assert told == f"state: {tmp_path}\nreleased 0 jobs\n[]\n"


def test_nor_does_reading_a_state_with_features():
    job = {"job_id": 7, "job_state": "PENDING", "partition": "gpu", "features": "A100&ib", "comment": "gpusched x"}
    node = "NodeName=n Gres=gpu:2 State=IDLE Partitions=gpu ActiveFeatures=v100"
    text = "import sys\nfrom gpusched_experiments.live.slurm_state import cluster_of\n"
    text += f"print(cluster_of(sys.argv[1], sys.argv[2], 0.0).jobs[0].gpu_type)\n{IMPORTED}"
    assert printed(text, json.dumps({"jobs": [job]}), node) == "A100\n[]\n"


def test_the_names_are_those_of_the_built_in_types():
    assert all(built_in_gpu_type(name.lower()) == name for name in builtin_gpu_types())


class WithOthers:
    """A made-up Slurm that tells of further jobs, of other partitions."""

    def __init__(self, slurm: MadeUpSlurm) -> None:
        self.slurm = slurm

    def run(self, words: Sequence[str], text: str, limit_s: float) -> Done:
        done = self.slurm.run(words, text, limit_s)
        if tuple(words) != ("squeue", "--json"):
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
