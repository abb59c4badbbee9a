from gpusched_env.rendering.lanes import NodeLanes, lanes_of, pick_lanes, pick_parts, runs_of


def test_the_first_gap_that_holds_them_together_is_picked():
    free = [True, False, True, True, True]
    assert pick_lanes(free, 2) == [2, 3]
    assert free == [True, False, False, False, True]
    assert pick_lanes([True, False, True, True], 2) == [2, 3]  # the last ones


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


def test_the_first_part_of_a_shared_gpu_that_holds_a_share_is_picked():
    taken = [(0.0, 0.25), (0.5, 0.25)]
    assert pick_parts(taken, 0.25) == [(0.25, 0.25)]
    assert taken == [(0.0, 0.25), (0.5, 0.25), (0.25, 0.25)]
    assert pick_parts(taken, 0.125) == [(0.75, 0.125)]


def test_a_part_that_fits_exactly_is_not_split():
    assert pick_parts([(0.125, 0.375), (0.75, 0.25)], 0.25) == [(0.5, 0.25)]


def test_a_share_that_fits_no_part_is_split():
    taken = [(0.25, 0.25), (0.75, 0.125)]
    assert pick_parts(taken, 0.5) == [(0.0, 0.25), (0.5, 0.25)]
    assert pick_parts(taken, 0.125) == [(0.875, 0.125)]


def test_a_shared_gpu_is_the_last_free_lane_as_long_as_somebody_has_a_part_of_it():
    lanes = NodeLanes(3)
    assert lanes.hold(1) == ((0, 1),)
    assert lanes.share(0, 0.5) == ((2.0, 0.5),)
    assert lanes.share(1, 0.25) == ((1.0, 0.25),)
    assert lanes.share(0, 0.25) == ((2.5, 0.25),)
    lanes.let_go([(2.0, 0.5)], 0)
    assert lanes.share(0, 0.5) == ((2.0, 0.5),)
    lanes.let_go([(1.0, 0.25)], 1)
    assert lanes.hold(1) == ((1, 1),)


def test_a_gpu_that_is_shared_again_keeps_its_lane_unless_that_is_held():
    lanes = NodeLanes(3)
    whole = lanes.hold(1, before=[2])
    part = lanes.share(0, 0.5)
    assert part == ((1.0, 0.5),)
    lanes.let_go(part, 0)
    lanes.let_go(whole, -1)
    assert lanes.share(0, 0.5) == ((1.0, 0.5),)
    lanes.let_go(((1.0, 0.5),), 0)
    assert lanes.hold(2) == ((0, 2),)
    assert lanes.share(0, 0.5) == ((2.0, 0.5),)


def test_the_lanes_of_runs_are_those_they_lie_on():
    assert lanes_of([(0, 2), (3, 1)]) == [0, 1, 3]
    assert lanes_of([(2.25, 0.5), (2.875, 0.125)]) == [2]
