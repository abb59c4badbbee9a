from gpusched_env.rendering.lanes import pick_lanes, runs_of


def test_the_first_gap_that_holds_them_together_is_picked():
    free = [True, False, True, True, True]
    assert pick_lanes(free, 2) == [2, 3]
    assert free == [True, False, False, False, True]


def test_a_job_keeps_the_gpus_that_it_held():
    assert pick_lanes([True] * 4, 2, before=[2, 3]) == [2, 3]
    assert pick_lanes([True] * 4, 1, before=[2, 3]) == [2]


def test_a_job_that_grows_keeps_its_gpus_and_gets_the_rest_from_the_first_gap():
    assert pick_lanes([True, True, False, True], 3, before=[3]) == [0, 1, 3]


def test_without_a_gap_that_is_large_enough_the_first_free_gpus_are_picked():
    free = [True, False, True, False, True]
    assert pick_lanes(free, 3) == [0, 2, 4]
    assert free == [False] * 5


def test_neighbouring_lanes_join_to_runs():
    assert runs_of([0, 1, 3, 5, 6, 7]) == ((0, 2), (3, 1), (5, 3))
    assert runs_of([]) == ()
