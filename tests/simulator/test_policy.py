"""Policies that cannot decide on every instance are found out before anything runs."""

from gpusched_baselines import edf
from gpusched_env.errors import InputError
from gpusched_env.simulator.policy import can_decide, check_fit
from gpusched_experiments.report import compare
from gpusched_experiments.report.warm_up import tiny_instance, warm_up
from instances import three_jobs
from refusals import refused


class OnlyTheThreeJobs:
    """Decides as EDF does, on instances of one name, and counts its rounds."""

    name, preemption = "choosy", False

    def __init__(self) -> None:
        self.rounds = 0

    def check(self, instance):
        if instance.name != "three-jobs":
            raise InputError("instance.name", instance.name, "three-jobs")

    def decide(self, view, rng):
        self.rounds += 1
        edf().decide(view, rng)


def test_a_policy_that_does_not_fit_is_named_with_what_it_lacks():
    check_fit([edf(), OnlyTheThreeJobs()], three_jobs())
    with refused("choosy: instance.name", "warm-up"):
        check_fit([edf(), OnlyTheThreeJobs()], tiny_instance())


def test_a_policy_without_a_check_fits_everything():
    assert can_decide(edf(), tiny_instance())
    assert can_decide(OnlyTheThreeJobs(), three_jobs())
    assert not can_decide(OnlyTheThreeJobs(), tiny_instance())


def test_a_comparison_begins_no_run_if_a_policy_does_not_fit_one_of_the_instances():
    policy, runs = OnlyTheThreeJobs(), []
    with refused("choosy: instance.name", "warm-up"):
        compare([edf(), policy], lambda seed: tiny_instance() if seed else three_jobs(), [0, 1], on_run=runs.append)
    assert (runs, policy.rounds) == ([], 0)


def test_a_policy_that_does_not_fit_the_warm_up_is_left_out_of_it_and_compared():
    policy = OnlyTheThreeJobs()
    warm_up([policy])
    assert policy.rounds == 0
    first, second = compare([edf(), policy], lambda _: three_jobs(), [0])
    assert (first.policy, second.policy) == ("edf", "choosy")
    assert first.total_eur == second.total_eur
    assert policy.rounds == second.rounds
