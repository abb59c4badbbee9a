import sys

import pytest

from commands import gpusched
from gpusched_baselines.registry import policy_names, usual_policy_names
from gpusched_env.workload import Scenario, TraceReplay, load_scenario, make_instance
from gpusched_experiments.cli.backend_options import BackendOptions, chosen_workers
from gpusched_experiments.cli.comparison_plan import ComparisonPlan
from gpusched_experiments.report.backends.ray_cluster import RayCluster
from gpusched_experiments.report.comparison_writing import Workload
from gpusched_experiments.report.processes import PROCESSES
from refusals import refused

WRITTEN = Scenario(compare={"policies": ["sts", "fifo"], "seeds": "2-4", "reference": "fifo", "workers": 3})


def plan(scenario, policies=None, seeds=None, reference=None, workers=None):
    return ComparisonPlan.of(Workload(scenario), policies, seeds, reference, workers)


def names(planned):
    return tuple(policy.name for policy in planned.policies)


def test_without_a_word_the_usual_policies_run_on_forty_seeds_against_edf():
    planned = plan(Scenario())
    assert names(planned) == usual_policy_names()
    assert set(names(planned)) < set(policy_names())
    assert planned.seeds == tuple(range(40))
    assert planned.reference == "edf"
    assert 1 <= planned.workers <= 4


def test_a_trace_or_an_instance_runs_on_five_seeds_unless_others_are_given():
    replay = Scenario(trace=TraceReplay(path="x.csv"))
    assert plan(replay).seeds == (0, 1, 2, 3, 4)
    assert set(names(plan(replay))) == {*usual_policy_names(), "easy", "conservative", "multifactor"}
    assert plan(replay.replace({"compare.seeds": "7"})).seeds == (7,)
    assert plan(replay, seeds="0-9").seeds == tuple(range(10))
    workload = Workload(None, make_instance(load_scenario("tiny"), 3), "mine.json")
    planned = ComparisonPlan.of(workload, "fifo,edf", None, None, 1)
    assert (planned.seeds, planned.workload) == ((0, 1, 2, 3, 4), workload)
    assert planned.workload.maker()(4) is workload.instance


def test_a_scenario_says_what_is_compared_and_options_win_over_it():
    planned = plan(WRITTEN)
    assert (names(planned), planned.seeds) == (("sts", "fifo"), (2, 3, 4))
    assert (planned.reference, planned.workers) == ("fifo", 3)
    planned = plan(WRITTEN, "all", "9", "greedy", 1)
    assert (names(planned), planned.seeds) == (policy_names(), (9,))
    assert (planned.reference, planned.workers) == ("greedy", 1)


def test_the_scenario_of_a_plan_makes_the_same_plan():
    planned = plan(Scenario(), "greedy,edf", " 0-1,5 ", workers=2)
    assert planned.workload.scenario.compare.policies == ("greedy", "edf")
    assert planned.workload.scenario.compare.seeds == "0-1,5"
    assert plan(planned.workload.scenario) == planned
    assert plan(planned.workload.scenario, policies="sts").reference == "sts"


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
