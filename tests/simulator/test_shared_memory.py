"""Memory that moves between the jobs on a GPU: limits, overflow, and the delay with which limits follow; by hand."""

from dataclasses import replace

import numpy as np
import pytest

from fixed import Fixed
from gpusched_env import Configuration, EpochDistribution, GpuType, Instance, Job, Node, SharedMemory, UtilisationModel
from gpusched_env.audit import audit
from gpusched_env.envs.env import GpuClusterEnv
from gpusched_env.formats import write_run
from gpusched_env.simulator import simulate
from refusals import refused
from run_files import audited, edited, loaded_again

CERTAIN = EpochDistribution.certain()
GPU = GpuType("V", gpu_power_w=250.0, node_base_power_w=100.0, memory_gib=16.0, max_gpus_per_node=1)
FIRST, SECOND = Configuration("V", 1, share=0.6, priority=1), Configuration("V", 1, share=0.4)
ADDED = 2.0 * 2**30 / 12e9  # seconds that 1 GiB takes out and back


def instance_of(
    *, need: tuple[float, float], least=(1.0, 1.0), adapt_s: float = 0.0, first_s: float = 1000.0
) -> Instance:
    """Make a guaranteed and an opportunistic job that are busy half the time, with mini-batches of a second."""
    jobs = [
        Job(0.0, 1e6, 0.001, long_s, CERTAIN, long_s, {config: 1.0}, memory, name, opportunistic=config is SECOND)
        for name, config, long_s, memory in (("first", FIRST, first_s, need[0]), ("second", SECOND, 2000.0, need[1]))
    ]
    memory = SharedMemory(np.array(need), np.array(least), np.ones((1, 2)), adapt_s=adapt_s)
    model = UtilisationModel(np.array([[0.5, 0.5]]), overhead=0.25, filled=1.0, memory=memory)
    return Instance.from_jobs([GPU], [Node("V", 1)], jobs, (FIRST, SECOND), interference=model)


def completed(instance: Instance, folder) -> list[float]:
    result = simulate(instance, Fixed((0, 1)))
    assert audited(result, folder / "run") == []
    return result.completion_s.tolist()


def test_what_does_not_fit_is_moved_in_every_mini_batch_and_what_fits_slows_nothing(tmp_path):
    """10 GiB beside 6: more than 0.4 of 16. The other runs in half of the time; the guaranteed one at 1 / 1.25."""
    assert completed(instance_of(need=(6.0, 10.0)), tmp_path) == pytest.approx([1250.0, 2000.0])
    # 4 GiB of the other are in host memory while the guaranteed job is there: 1 + 4 · ADDED as long.
    slow = 1.0 + 4.0 * ADDED
    assert completed(instance_of(need=(10.0, 10.0)), tmp_path) == pytest.approx(
        [1250.0, 1250.0 + 2000.0 - 1250.0 / slow]
    )
    # 6 GiB are left and 7 are the least: the other has the least speed, 0.02, until the first job has left.
    instance = instance_of(need=(10.0, 10.0), least=(1.0, 7.0))
    assert completed(instance, tmp_path) == pytest.approx([1250.0, 1250.0 + 2000.0 - 0.02 * 1250.0])


def test_limits_grow_back_after_a_delay_and_until_they_are_right_the_guaranteed_job_is_an_equal(tmp_path):
    """0.5 + 0.5 leave equals full speed: the guaranteed job loses nothing. The other waits 10 s for memory."""
    slow = 1.0 + 4.0 * ADDED
    first_s, second_s = completed(instance_of(need=(10.0, 10.0), adapt_s=10.0), tmp_path)
    assert first_s == pytest.approx(1250.0)
    assert second_s == pytest.approx(1250.0 + 2000.0 - 1250.0 / slow + 10.0 * (1.0 - 1.0 / slow))


def test_the_loss_of_the_guaranteed_job_is_measured_where_equals_would_be_slower(tmp_path):
    """With 0.9 + 0.9 equals run at 1 / 1.8, and the guaranteed job at 1 / 1.25 after 10 s: it loses a part."""
    instance = instance_of(need=(6.0, 6.0), adapt_s=10.0)
    instance = replace(instance, interference=replace(instance.interference, utilisation=np.full((1, 2), 0.9)))
    first_s, _ = completed(instance, tmp_path)
    assert first_s == pytest.approx(1250.0 + 10.0 * (1.0 - 1.25 / 1.8))


def test_files_keep_memory_that_moves_and_the_audit_finds_another_bandwidth(tmp_path):
    instance = instance_of(need=(10.0, 10.0), adapt_s=10.0)
    assert loaded_again(instance, tmp_path) == instance
    write_run(simulate(instance, Fixed((0, 1))), tmp_path / "run")
    with edited(tmp_path / "run" / "instance.json") as document:
        document["interference"]["memory"]["host_gb_per_s"] = 24.0
    assert "epochs done in the interval" in {difference.what for difference in audit(tmp_path / "run")}


def test_wrong_values_are_named():
    with refused("memory.least_gib", allowed="from 0 to need_gib"):
        SharedMemory(np.array([1.0]), np.array([2.0]), np.ones((1, 1)))
    with refused("memory.iteration_s", allowed="> 0"):
        SharedMemory(np.array([1.0]), np.array([1.0]), np.zeros((1, 1)))
    with refused("interference.memory.adapt_s", 10.0, "0 with a decision_interval_s"):
        replace(instance_of(need=(1.0, 1.0), adapt_s=10.0), decision_interval_s=60.0)


def test_an_agent_sees_the_limit_and_the_jobs_beside_it():
    """The other would have 6 of its 10 GiB beside the guaranteed job, and one job beside it: 1 / (1 + 1)."""
    instance = instance_of(need=(10.0, 10.0))
    env = GpuClusterEnv(instance=instance, shared_features="memory", flat=True, job_order="submission")
    env.reset(seed=0)
    observation, *_ = env.step(1)
    seen = dict(zip(env.feature_names, observation.tolist(), strict=True))
    limit, beside = (
        next(value for name, value in seen.items() if name.startswith("options[Vx0.4]") and part in name)
        for part in ("memory that it", "jobs beside it")
    )
    assert (limit, beside) == (pytest.approx(0.6), 0.5)


def test_a_scenario_offers_memory_that_moves_and_shares_of_several_gpus():
    env = GpuClusterEnv(
        scenario="guaranteed-and-opportunistic",
        settings={"sharing.memory": "moves", "sharing.gpu_counts": [1, 2], "jobs.count": 5},
    )
    assert "V100x2x0.6!" in [c.name for c in env.configurations]
    env.reset(seed=0)
    with refused("sharing.memory", "moves", "utilisation"):
        GpuClusterEnv(scenario="default", settings={"sharing.memory": "moves"})


@pytest.mark.parametrize("later", [(3, 4), (4, 3), (2, 3), (1, 4)])
def test_a_job_stands_whenever_other_jobs_take_the_places_beside_it(later, tmp_path):
    """At 100 s two jobs give way to two with less load; the numbers of both pairs may have the same sum.

    Job 0 has run at a third until then. It then runs at 1 / 1.2, after 10 s at a third: it needs 6 s more than
    100 + 1.2 · (400 - 100 / 3).
    """
    third, first = Configuration("V", 1, share=1 / 3), tuple({1, 2, 3, 4} - set(later))
    loads = {0: "full", **dict.fromkeys(first, "full"), **dict.fromkeys(later, "light")}
    jobs = [Job(0.0, 1e6, 0.0, 400.0, CERTAIN, 400.0, {third: 1.0}, 1.0, loads[j]) for j in range(5)]
    memory = SharedMemory(np.zeros(2), np.zeros(2), np.ones((1, 2)), adapt_s=10.0)
    model = UtilisationModel(np.array([[1.0, 0.1]]), overhead=0.03, memory=memory)
    instance = Instance.from_jobs([GPU], [Node("V", 1)], jobs, (third,), interference=model)
    result = simulate(instance, InTurn((0, *first), (0, *later), 100.0))
    assert audited(result, tmp_path / "run") == []
    assert result.completion_s[0] == pytest.approx(546.0)


class InTurn:
    """Runs one set of jobs until a time, and then another while it lasts."""

    name, preemption = "in-turn", True

    def __init__(self, first: tuple[int, ...], later: tuple[int, ...], time_s: float) -> None:
        self.sets, self.time_s = (first, later), time_s

    def decide(self, view, rng):
        begun = view.now_s >= self.time_s
        for job in (*self.sets[begun], *(self.sets[0] if begun else ())):
            if job in view.active:
                view.place(job, 0)
        if not begun:
            view.set_timer(0, self.time_s)
