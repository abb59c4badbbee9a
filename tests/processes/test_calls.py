"""Calls in several processes: what they raise, what becomes of them when nobody wants the rest, and their end."""

import os
import subprocess
import sys
import time
from dataclasses import replace
from functools import partial
from multiprocessing import active_children
from pathlib import Path

import pytest

from gpusched_baselines.registry import make_policy
from gpusched_env import Instance
from gpusched_env.workload import load_scenario, make_instance
from gpusched_experiments.report import compare
from gpusched_experiments.report.processes import WorkerError, call_all
from refusals import refused
from waiting import eventually

PROGRAM = """
import multiprocessing, os, sys, time
from concurrent.futures import ProcessPoolExecutor
from gpusched_experiments.report.processes import start_worker

if __name__ == "__main__":
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(1, mp_context=context, initializer=start_worker, initargs=((),))
    print(pool.submit(os.getpid).result(), flush=True)
    pool.submit(time.sleep, 600)
    os.kill(os.getpid(), 9)
"""


def test_calls_in_several_processes_that_nobody_waits_for_are_stopped_at_once():
    results = call_all([partial(os.getpid), *[partial(time.sleep, 3000.0)] * 3], (), 2)
    assert next(results)[0] == 0
    results.close()
    assert not active_children()


def test_what_a_call_raises_in_another_process_is_raised_here():
    with refused("scenario", "nowhere"):
        list(call_all([partial(load_scenario, "nowhere")] * 2, (), 2))
    with pytest.raises(WorkerError, match="ended early"):
        list(call_all([partial(os._exit, 1)] * 2, (), 2))


def test_a_comparison_in_two_processes_gives_what_one_process_gives():
    made, seen, scenario = [], [], load_scenario("tiny")

    def make(seed: int) -> Instance:
        made.append(seed)
        return make_instance(scenario, seed)

    policies = [make_policy("edf"), make_policy("random-greedy")]
    together = compare(policies, make, [3, 1], workers=2, on_result=seen.append)
    assert made == [3, 1]  # an instance is made once a seed
    assert sorted((result.policy, result.seed) for result in seen) == [("edf", 3), ("random-greedy", 3)]
    alone = compare(policies, make, [3, 1])
    assert [replace(run, decision_s=0.0) for run in together] == [replace(run, decision_s=0.0) for run in alone]


def runs(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rsplit(")", 1)[1].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks processes up in /proc")
def test_a_worker_ends_when_its_parent_is_killed(tmp_path):
    program = tmp_path / "parent.py"
    program.write_text(PROGRAM, encoding="utf-8")
    parent = subprocess.run([sys.executable, str(program)], stdout=subprocess.PIPE, text=True, check=False)
    worker = int(parent.stdout)
    assert worker != os.getpid()
    eventually(lambda: not runs(worker))
