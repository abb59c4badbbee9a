"""Two stages: an application runs on whole GPUs for `profile_s` before shares are open to it; by hand, and audited."""

from dataclasses import dataclass, replace

import numpy as np
import pytest

from any_instance import AnyInstance
from gpusched_baselines import make_policy
from gpusched_env import (
    Configuration,
    EpochDistribution,
    GpuType,
    Instance,
    Job,
    Node,
    Scenario,
    UtilisationModel,
    load_scenario,
    make_instance,
    rollout,
    simulate,
)
from gpusched_env.audit import audit
from gpusched_env.simulator import State
from gpusched_env.simulator import layout as at
from refusals import refused
from run_files import audited, edited, loaded_again

ONE, SHARE = Configuration("V", 1), Configuration("V", 1, share=0.5)
CERTAIN = EpochDistribution.certain()
GPU = GpuType("V", gpu_power_w=1000.0, node_base_power_w=1000.0, memory_gib=16.0, max_gpus_per_node=4)


@dataclass(frozen=True)
class ShareIfOpen:
    """Give every job a share, or a whole GPU while shares are closed to it; from `pause_s` to 10 s later nothing."""

    pause_s: float = np.inf
    name: str = "share-if-open"
    preemption: bool = True

    def decide(self, view, rng):
        paused = self.pause_s <= view.now_s < self.pause_s + 10.0
        for job in view.active:
            view.set_timer(
                int(job), self.pause_s + (10.0 if paused else 0.0) if view.now_s < self.pause_s + 10.0 else np.inf
            )
            if not paused:
                view.place(int(job), 1 if np.isfinite(view.board.tau[job, 1]) else 0)


def jobs_of(profile_s: float, **model: object) -> Instance:
    """Make two jobs of an application, from 0 and 10 s, and one of another from 10 s: each takes 500 s."""
    seconds = {ONE: 1.0, SHARE: 1.0}
    jobs = [
        Job(at_s, 1e6, 0.001, 500.0, CERTAIN, 500.0, seconds, application=name)
        for at_s, name in ((0.0, "a"), (10.0, "a"), (10.0, "b"))
    ]
    interference = UtilisationModel(np.full((1, 2), 0.5), profile_s=profile_s, **model)
    return Instance.from_jobs([GPU], [Node("V", 4)], jobs, (ONE, SHARE), interference=interference)


def lines_of(instance: Instance, policy: object) -> list[tuple[int, str, float, float]]:
    intervals = simulate(instance, policy).intervals()
    names = ("job", "configuration", "start_s", "end_s")
    return sorted(zip(*(list(intervals[name]) for name in names), strict=True))


def test_shares_open_to_all_jobs_of_an_application_when_one_of_them_has_been_profiled():
    """The first job from 0 to 100 s: shares of its application open at 100 s, of the other one at 110 s."""
    assert lines_of(jobs_of(100.0), ShareIfOpen()) == [
        (0, "Vx0.5", 100.0, 500.0), (0, "Vx1", 0.0, 100.0), (1, "Vx0.5", 100.0, 510.0), (1, "Vx1", 10.0, 100.0),
        (2, "Vx0.5", 110.0, 510.0), (2, "Vx1", 10.0, 110.0),
    ]  # fmt: skip
    assert lines_of(jobs_of(0.0), ShareIfOpen())[0] == (0, "Vx0.5", 0.0, 500.0)


def test_a_profile_that_is_interrupted_begins_again():
    """Paused from 50 to 60 s, both applications run for 100 s from then on."""
    starts = {line[2] for line in lines_of(jobs_of(100.0), ShareIfOpen(50.0)) if line[1] == "Vx0.5"}
    assert starts == {160.0}


def test_a_job_that_is_shorter_than_the_profile_never_shares():
    assert {line[1] for line in lines_of(jobs_of(600.0), ShareIfOpen())} == {"Vx1"}


def test_the_columns_that_follow_from_times_leave_closed_shares_out():
    instance = jobs_of(100.0)
    cheap = replace(instance.jobs, seconds_per_epoch=np.array([[2.0, 1.0]] * 3))
    state = State(replace(instance, jobs=cheap))
    state.advance()
    row = state.board.jobs[0]
    assert np.isinf(state.board.tau[0, 1])
    assert (row[at.MIN_TAU], row[at.MAX_TAU], row[at.CHEAPEST], row[at.CHEAPEST_TAU]) == (2.0, 2.0, 0.0, 2.0)
    state.board.jobs[0, at.PROFILED] = 1.0
    state.restore()
    assert state.board.tau[0, 1] == state.hidden.tau[0, 1]
    assert (row[at.MIN_TAU], row[at.CHEAPEST]) == (state.hidden.jobs[0, at.MIN_TAU], state.hidden.jobs[0, at.CHEAPEST])


def test_jobs_that_may_use_no_whole_gpus_and_times_below_0_are_refused():
    instance = jobs_of(100.0)
    with refused("interference.profile_s", 100.0, "job 0 may use no whole GPUs"):
        replace(instance, jobs=replace(instance.jobs, seconds_per_epoch=np.array([[np.inf, 1.0]] * 3)))
    with refused("interference.profile_s", -1.0):
        jobs_of(-1.0)


def two_stages(jobs: int = 40) -> Scenario:
    settings = {"jobs.count": jobs, "cluster.nodes": 3, "sharing.profile_s": 600.0, "sharing.gaps": [5, 20, 200]}
    return load_scenario("guaranteed-and-opportunistic").replace(settings)


@pytest.mark.parametrize("name", ["fill", "antman", "pack", "sts-x"])
def test_policies_keep_to_it_and_every_run_audits_clean(tmp_path, name):
    instance, policy = make_instance(two_stages(), seed=1), make_policy(name)
    result = simulate(instance, policy)
    assert audited(result, tmp_path / "run") == []
    lines = result.intervals()
    shared = np.array(["x0." in configuration for configuration in lines["configuration"]])
    assert not shared.all()
    assert shared.any() or name == "sts-x"
    env = AnyInstance(instance, job_order=policy.job_order, preemption=policy.preemption, milestones=0)
    assert rollout(env, policy, instance=instance)[0].total_eur == pytest.approx(result.total_eur, rel=1e-9)


def test_a_share_before_the_profile_is_found(tmp_path):
    assert audited(simulate(jobs_of(100.0), ShareIfOpen()), tmp_path / "run") == []
    with edited(tmp_path / "run" / "instance.json") as document:
        document["interference"]["profile_s"] = 101.0
    found = audit(tmp_path / "run")
    assert {difference.what for difference in found} == {
        "start of a share, not before a job of the application has run on whole GPUs for profile_s [s]"
    }
    assert len(found) == 3


def test_an_instance_file_keeps_it_and_says_nothing_of_0(tmp_path):
    for profile_s in (0.0, 100.0):
        assert loaded_again(jobs_of(profile_s), tmp_path) == jobs_of(profile_s)
        assert ("profile_s" in (tmp_path / "instance.json").read_text(encoding="utf-8")) == (profile_s > 0.0)
    assert jobs_of(0.0) != jobs_of(100.0)


def test_gaps_are_drawn_by_application_and_take_the_place_of_the_number():
    scenario = load_scenario("guaranteed-and-opportunistic").replace({"jobs.count": 5})
    model = make_instance(scenario.replace({"sharing.gaps": [20]}), seed=0).interference
    np.testing.assert_allclose(model.filled[:, :2], [[0.2255, 0.8251]] * model.utilisation.shape[1])
    mixed = make_instance(scenario.replace({"sharing.gaps": [1, 200]}), seed=0).interference
    assert len(np.unique(mixed.filled[:, 0])) == 2
    np.testing.assert_array_equal(mixed.utilisation, make_instance(scenario, seed=0).interference.utilisation)
    with refused("sharing.filled", 0.5):
        scenario.replace({"sharing.gaps": [20], "sharing.filled": 0.5})
    with refused("sharing.gaps[0]", 7):
        scenario.replace({"sharing.gaps": [7]})
