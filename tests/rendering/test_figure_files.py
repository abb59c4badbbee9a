import pytest

from gpusched_baselines.registry import make_policy
from gpusched_env.rendering import figure_bytes, gantt_figure
from gpusched_env.simulator import simulate
from gpusched_env.workload import load_scenario, make_instance
from refusals import refused

RESULT = simulate(make_instance(load_scenario("tiny"), 0), make_policy("edf"))
BEGINNINGS = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}


@pytest.mark.parametrize("form", BEGINNINGS)
def test_a_figure_is_a_file_of_each_form_and_equal_figures_are_equal_files(form):
    first, second = (figure_bytes(gantt_figure(RESULT, dpi=60), form) for _ in range(2))
    assert first.startswith(BEGINNINGS[form])
    assert first == second
    assert b"Date" not in first.replace(b"due date", b"")


def test_another_form_is_an_error():
    with refused("form", "jpg", "png, svg, pdf"):
        figure_bytes(gantt_figure(RESULT, dpi=60), "jpg")
