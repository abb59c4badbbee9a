import pytest

from gpusched_env.workload import parse_seeds
from refusals import refused


@pytest.mark.parametrize(
    ("text", "seeds"),
    [("0-3", (0, 1, 2, 3)), ("7", (7,)), ("0,3,5", (0, 3, 5)), (" 0-1 , 9 ", (0, 1, 9)), ("4-4", (4,))],
)
def test_seeds_are_numbers_and_ranges(text, seeds):
    assert parse_seeds(text) == seeds


@pytest.mark.parametrize("text", ["", "a", "-1", "3-1", "0,,1", "0-1-2", "1.5", "0-2,1", "0-99999999", "²", "0-"])
def test_anything_else_is_refused(text):
    with refused("--seeds", text):
        parse_seeds(text, "--seeds")
