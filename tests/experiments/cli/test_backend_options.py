"""Where runs are made: what can be asked for, and what is said if it cannot be had."""

import sys

import pytest

from commands import gpusched
from gpusched_experiments.cli.backend_options import BackendOptions, chosen_workers
from gpusched_experiments.report.backends.ray_cluster import RayCluster
from gpusched_experiments.report.processes import PROCESSES
from refusals import refused

COMMANDS = (["reproduce", "cost", "--quick"], ["leaderboard", "--quick"])


def test_the_usual_backend_is_processes_and_ray_takes_an_address():
    assert BackendOptions("processes", None).chosen() is PROCESSES
    assert BackendOptions("ray", None).chosen() == RayCluster()
    assert BackendOptions("ray", "head:6379").chosen() == RayCluster("head:6379")
    assert chosen_workers(3, RayCluster()) == 3
    assert chosen_workers(None, PROCESSES) == PROCESSES.cores()


def test_what_there_is_not_is_named():
    with refused("--backend", "slurm", "one of processes, ray"):
        BackendOptions("slurm", None).chosen()
    with refused("--ray-address", "auto", "--backend ray"):
        BackendOptions("processes", "auto").chosen()
    with refused("--workers", 0):
        chosen_workers(0, RayCluster())


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[0])
def test_without_the_extra_it_says_how_to_install_it(command, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "ray", None)
    done = gpusched(*command, "--backend", "ray")
    assert done.exit_code == 2
    assert done.stderr.splitlines()[-1] == (
        'error: runs on many machines need ray; install it with: pip install "gpusched-env[ray]"'
    )
    assert not list(tmp_path.iterdir())
