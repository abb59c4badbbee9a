from gpusched_experiments.report.run import Runs


def run(policy, seed, cost=1.0, **labels):
    return labels, policy, seed, {"energy_eur": cost}


RUNS = Runs.of((run("edf", 0, 5.0, nodes=10), run("sts", 0, 3.0, nodes=10), run("edf", 1, 7.0, nodes=20)))


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


def test_groups_are_the_runs_of_a_policy_in_one_place_beside_those_of_others():
    edf, sts, far = RUNS.groups("nodes")
    assert [(g.policy, g.labels, len(g.own)) for g in (edf, sts, far)] == [
        ("edf", {"nodes": 10}, 1), ("sts", {"nodes": 10}, 1), ("edf", {"nodes": 20}, 1),
    ]  # fmt: skip
    assert sts.beside("edf").by_seed("energy_eur") == {0: 5.0}
    assert edf.beside(nodes=20).by_seed("energy_eur") == {1: 7.0}
    assert len(far.beside("sts")) == 0


def test_every_combination_of_labels_has_its_part_even_if_nothing_ran_there():
    runs = Runs.of((run("edf", 0, nodes=10, arrivals="high"), run("edf", 0, nodes=20, arrivals="low")))
    assert [len(part) for part in runs.parts("nodes", "arrivals")] == [1, 0, 0, 1]


def test_a_label_may_be_named_like_a_measure_and_labels_that_differ_in_kind_are_texts():
    runs = Runs.of((run("edf", 0, energy_eur="flat"), run("edf", 1, energy_eur=0.5)))
    assert runs.labels("energy_eur") == ("flat", "0.5")
    assert runs.where(energy_eur=0.5).by_seed("energy_eur") == {1: 1.0}


def test_no_runs_have_no_labels_no_policies_and_no_values():
    none = Runs.of(())
    assert (len(none), none.policies, none.labels("nodes"), none.by_seed("energy_eur")) == (0, (), (), {})
    assert list(none.groups("nodes")) == []
