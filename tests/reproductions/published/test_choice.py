import pytest

from gpusched_experiments.report.experiment import Selection, Size, Sizes, available
from refusals import refused

SIZES = Sizes(full=(Size(10, 20, 20), Size(50, 20, 5)), quick=(Size(5, 3, 2),))


def test_the_sizes_and_seeds_are_the_experiments_own_unless_others_are_chosen():
    assert SIZES.nodes(Selection()) == (10, 50)
    assert SIZES.nodes(Selection(quick=True)) == (5,)
    assert SIZES.nodes(Selection(quick=True, nodes=(7, 3))) == (7, 3)
    assert SIZES.seeds(Selection(), 50, "sts") == tuple(range(20))
    assert SIZES.seeds(Selection(), 50, "random-greedy") == tuple(range(5))
    assert SIZES.seeds(Selection(quick=True), 5, "random-greedy") == (0, 1)
    assert SIZES.seeds(Selection(seeds=(9, 4)), 50, "random-greedy") == (9, 4)


def test_a_size_that_is_too_large_for_slow_policies_has_them_only_if_it_is_asked_for():
    sizes = Sizes(full=(Size(100, 20, 0),), quick=())
    assert sizes.seeds(Selection(), 100, "random-greedy") == ()
    assert sizes.seeds(Selection(nodes=(100,)), 100, "random-greedy") == (0,)
    assert len(sizes.seeds(Selection(nodes=(100,)), 100, "sts")) == 20


def test_seeds_may_begin_elsewhere():
    sizes = Sizes(full=(Size(10, 3, 2),), quick=(), first_seed=100)
    assert sizes.seeds(Selection(), 10, "sts") == (100, 101, 102)
    assert sizes.seeds(Selection(), 10, "random-greedy") == (100, 101)
    assert sizes.seeds(Selection(seeds=(4,)), 10, "sts") == (4,)


def test_a_number_of_nodes_that_is_not_listed_goes_as_the_next_larger_one():
    assert len(SIZES.seeds(Selection(), 11, "random-greedy")) == 5
    assert len(SIZES.seeds(Selection(), 3, "random-greedy")) == 20
    assert len(SIZES.seeds(Selection(), 10, "random-greedy")) == 20
    assert len(SIZES.seeds(Selection(), 500, "random-greedy")) == 5


@pytest.mark.parametrize(
    ("values", "field"),
    [
        ({"seeds": (1, 1)}, "seeds"),
        ({"seeds": (-1,)}, "seeds"),
        ({"seeds": ()}, "seeds"),
        ({"nodes": (0,)}, "nodes"),
        ({"policies": ("edf", "edf")}, "policies"),
    ],
)
def test_choices_that_make_no_sense_are_refused(values, field):
    with refused(field):
        Selection(**values)


def test_policies_that_are_not_registered_are_split_off():
    assert available(("edf", "sts-x", "sts"), ("sts", "edf", "fifo")) == (("edf", "sts"), ("sts-x",))
