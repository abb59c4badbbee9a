"""Runs on a cluster of several machines, one of which is lost, give what processes give: nothing lost, nothing twice.

Ray warns of much, and its processes outlive a test that fails: it has a process of its own here.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

PROGRAM = '''
import json, sys, time
from collections import Counter
from itertools import count
from functools import partial
from pathlib import Path

from ray.cluster_utils import Cluster

from gpusched_baselines.registry import make_policy
from gpusched_env.errors import InputError
from gpusched_env.workload import load_scenario
from gpusched_experiments.report.backends import ray_cluster
from gpusched_experiments.report.processes import PROCESSES, call_all
from gpusched_experiments.report.cell import run_cells
from gpusched_experiments.report.store import Store, stored_values
from slow_cell import SlowCell

POLICIES, SEEDS, LONG = ("edf", "sts"), range(5), "edf 2"
TIMES = ("run_s", "decision_s", "decision_s_per_round")
folder = Path(sys.argv[1])


def cells(name, seconds):
    trace = str(folder / f"{name}.begun")
    names = [(f"{p} {s}", p, s) for p in POLICIES for s in SEEDS]
    scenario, took = load_scenario("tiny"), {LONG: seconds}
    return {n: SlowCell((), scenario, p, s, seconds=took.get(n, 0.0), trace=trace) for n, p, s in names}


def begun(name):
    """List the runs that have begun, each with the parent of its process: the raylet of its machine."""
    return [line.rsplit(" ", 1) for line in (folder / f"{name}.begun").read_text().splitlines()]


def times(name):
    return Counter(key for key, _ in begun(name))


def run(name, backend, seconds=0.0, **acts):
    """Run the cells that are not stored yet; after so many of them, do something."""
    store, count_up = Store(folder / f"{name}.csv", ()), count(1)

    def on_finished():
        acts.get(f"after_{next(count_up)}", lambda: None)()

    values = run_cells(cells(name, seconds), stored_values(store.path), store, 2, on_finished, backend)
    return {key: {n: v for n, v in each.items() if n not in TIMES} for key, each in values.items()}


class Stop(Exception):
    pass


def lose_a_machine():
    """Kill the machine that is at the long run."""
    while LONG not in times("cells"):  # the process may only now begin it
        time.sleep(0.01)
    at = next(raylet for key, raylet in begun("cells") if key == LONG)
    node = next(node for node in machines if str(node.all_processes["raylet"][0].process.pid) == at)
    cluster.remove_node(node, allow_graceful=False)


def stop():
    while times("cells")[LONG] < 2:  # until it is known that the machine is lost
        time.sleep(0.01)
    raise Stop


if __name__ == "__main__":
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False})
    machines = [cluster.add_node(num_cpus=1), cluster.add_node(num_cpus=1)]
    backend = ray_cluster.RayCluster(cluster.address)
    told = {"cores": backend.cores()}

    # What a call raises arrives as it is; a machine with other code takes no part.
    own = ray_cluster.versions
    for name, versions in (("raised", own), ("refused", lambda _: (("code", "of yesterday"),))):
        ray_cluster.versions = versions
        try:
            list(call_all([partial(make_policy, "nobody")], (), 1, backend))
        except InputError as error:
            told[name] = [error.field, str(error)]
    ray_cluster.versions = own

    # A machine is lost while it runs something; then the command stops, and goes on when it is given again.
    try:
        run("cells", backend, 600.0, after_2=lose_a_machine, after_6=stop)
    except Stop:
        told["kept"] = sorted(stored_values(folder / "cells.csv"))
    told["twice"] = sorted(key for key, number in times("cells").items() if number > 1)
    before = times("cells")
    told["there"] = run("cells", backend)
    told["again"] = sorted((times("cells") - before).keys() & set(told["kept"]))
    told["stored"] = [line.split(",")[0] for line in (folder / "cells.csv").read_text().splitlines()[1:]]
    told["here"] = run("here", PROCESSES)
    (folder / "told.json").write_text(json.dumps(told))
'''
RUNS = sorted(f"{policy} {seed}" for policy in ("edf", "sts") for seed in range(5))


def _installed(package: str) -> bool:
    try:
        return bool(version(package))
    except PackageNotFoundError:  # find_spec would find the folder of this test
        return False


@pytest.mark.skipif(not _installed("ray"), reason="the extra ray is not installed")
@pytest.mark.skipif(sys.platform != "linux", reason="loses a machine by a signal")
def test_a_cluster_gives_what_processes_give_when_it_is_stopped_and_when_a_machine_is_lost(tmp_path: Path):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM, encoding="utf-8")
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
        "RAY_health_check_initial_delay_ms": "500",
        "RAY_health_check_period_ms": "500",
        "RAY_health_check_timeout_ms": "500",
        "RAY_health_check_failure_threshold": "2",
    }
    done = subprocess.run(
        [sys.executable, str(program), str(tmp_path)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=1200.0,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    told = json.loads((tmp_path / "told.json").read_text(encoding="utf-8"))
    assert told["cores"] == 2
    assert sorted(told["here"]) == RUNS
    assert told["there"] == told["here"]
    assert told["raised"][0] == "policy"
    assert told["refused"][0] == "--ray-address"
    assert "another version of the code" in told["refused"][1]
    assert len(told["kept"]) == 6
    assert told["twice"] == ["edf 2"], "the machine was lost while it ran that"
    assert told["again"] == [], "what is finished does not run again"
    assert sorted(told["stored"]) == RUNS, "every run is stored once"
