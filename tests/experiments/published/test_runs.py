from gpusched_experiments.published.run import Run, Runs


def run(policy, seed, cost=1.0, **labels):
    return Run(labels, policy, seed, {"energy_eur": cost})


RUNS = Runs((run("edf", 0, 5.0, nodes=10), run("sts", 0, 3.0, nodes=10), run("edf", 1, 7.0, nodes=20)))


def test_runs_are_chosen_by_policy_and_labels():
    assert RUNS.where("edf").by_seed("energy_eur") == {0: 5.0, 1: 7.0}
    assert RUNS.where("edf", nodes=20).by_seed("energy_eur") == {1: 7.0}
    assert len(RUNS.where(nodes=10)) == 2
    assert len(RUNS.where("sts", nodes=20)) == 0
    assert len(RUNS.where(arrivals="high")) == 0


def test_labels_and_policies_are_listed_once_in_the_order_they_come():
    assert RUNS.labels("nodes") == (10, 20)
    assert RUNS.labels("arrivals") == ()
    assert RUNS.policies == ("edf", "sts")


def test_runs_of_one_seed_are_added_up():
    assert RUNS.where(nodes=10).by_seed("energy_eur") == {0: 8.0}
