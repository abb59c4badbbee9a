"""How much memory a policy gets."""

from gpusched_baselines import DispatchPolicy
from gpusched_env import GpuClusterEnv, GpuClusterVectorEnv, simulate
from gpusched_env.simulator import State
from gpusched_env.simulator.policy import FREE_COLUMNS, memory_columns
from instances import three_jobs
from refusals import refused


class Remembers(DispatchPolicy):
    """EDF that asks for as many columns as its order says."""

    columns = 40

    def memory_columns(self, instance):
        return self.columns * len(instance.gpu_types)


class TooFew(Remembers):
    columns = 0


def columns_seen(policy) -> set[int]:
    seen = set()
    simulate(three_jobs(), policy, on_round=lambda state: seen.add(state.view.memory.shape[1]))
    return seen


def test_a_policy_gets_its_columns_and_three_for_each_gpu_type():
    assert columns_seen(DispatchPolicy("edf", "due")) == {FREE_COLUMNS + 3} == {26}
    assert State(three_jobs()).view.memory.shape == (3, 26)


def test_an_environment_has_room_for_controls_whichever_policy_chooses():
    env, vector = GpuClusterEnv(instance=three_jobs()), GpuClusterVectorEnv(1, instance=three_jobs())
    env.reset(seed=0)
    vector.reset(seed=0)
    assert env.unwrapped.view.memory.shape == vector.views[0].memory.shape == (3, 26 + 44 + 2)


def test_a_policy_that_says_how_many_columns_it_needs_gets_them():
    assert columns_seen(Remembers("edf", "due")) == {40}


def test_a_policy_that_asks_for_no_column_is_refused():
    with refused("edf: memory_columns", 0):
        memory_columns(TooFew("edf", "due"), three_jobs())
