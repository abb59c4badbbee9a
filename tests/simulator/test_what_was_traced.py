"""Who sees when jobs of a trace really started: policies that replay, and nobody else."""

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest

from any_instance import AnyInstance
from gpusched_baselines import make_policy
from gpusched_env import Scenario, make_instance, simulate
from gpusched_env.envs.vector import GpuClusterVectorEnv
from gpusched_env.simulator import layout as at

ROWS = "submission_s,start_s,duration_s,gpus\n0,100,1000,4\n10,50,200,8\n20,60,50,2\n"


@pytest.fixture
def scenario(tmp_path: Path) -> Scenario:
    path = tmp_path / "trace.csv"
    path.write_text(ROWS, encoding="utf-8")
    return Scenario(cluster={"nodes": 1, "gpu_types": ["V100"]}, trace={"path": str(path)})


def shown(rows: np.ndarray) -> tuple[list[float], list[float]]:
    """Return what rows of jobs say of their traced starts and configurations, without rows that are not there yet."""
    there = rows[~np.isnan(rows[:, at.SUBMISSION])]
    return there[:, at.TRACED_START_S].tolist(), there[:, at.TRACED_CONFIG].tolist()


@dataclass
class Reader:
    """Decides as EDF, and notes what it sees of the jobs that are there."""

    name: str = "reader"
    preemption: bool = True
    seen: list[tuple[list[float], list[float]]] = field(default_factory=list)

    def decide(self, view, rng):
        self.seen.append(shown(view.jobs))
        make_policy("edf").decide(view, rng)


@dataclass
class Replayer(Reader):
    replays: bool = True


def test_a_policy_that_does_not_replay_sees_no_traced_starts(scenario):
    instance = make_instance(scenario, 0)
    assert instance.jobs.traced_start_s.tolist() == [100.0, 50.0, 60.0]
    for policy in (Reader(), Replayer(replays=False)):
        simulate(instance, policy)
        assert len(policy.seen[-1][0]) == 3
        for starts, configurations in policy.seen:
            assert np.isnan(starts).all()
            assert set(configurations) == {-1.0}


def test_a_policy_that_replays_sees_those_of_jobs_that_are_submitted(scenario):
    policy = Replayer()
    instance = make_instance(scenario, 0)
    simulate(instance, policy)
    assert policy.seen[0] == ([100.0], [float(instance.jobs.traced_config[0])])
    assert policy.seen[-1] == ([100.0, 50.0, 60.0], instance.jobs.traced_config.astype(float).tolist())


def test_environments_never_show_them(scenario):
    single = AnyInstance(make_instance(scenario, 0))
    single.reset()
    several = GpuClusterVectorEnv(1, scenario)
    several.reset(seed=0)
    assert all(instance.jobs.traced_start_s is not None for instance in (single.instance, *several.instances))
    for view in (single.view, several.views[0]):
        starts, configurations = shown(view.jobs)
        assert starts
        assert np.isnan(starts).all()
        assert set(configurations) == {-1.0}
