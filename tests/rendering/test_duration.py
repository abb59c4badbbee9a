import pytest

from gpusched_env.rendering.text import axis_unit, duration_text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.0, "0 s"),
        (42.4, "42 s"),
        (60.0, "1 min"),
        (61.0, "1 min 1 s"),
        (3_600.0, "1 h"),
        (3_660.0, "1 h 1 min"),
        (3_659.6, "1 h 1 min"),
        (86_400.0 + 3 * 3_600.0 + 59.0, "1 d 3 h"),
    ],
)
def test_a_duration_is_written_with_its_two_largest_units(seconds, text):
    assert duration_text(seconds) == text


@pytest.mark.parametrize(
    ("span_s", "unit"), [(100.0, "seconds"), (7_000.0, "minutes"), (8_000.0, "hours"), (5 * 86_400.0, "days")]
)
def test_the_unit_of_an_axis_fits_its_length(span_s, unit):
    assert axis_unit(span_s)[1] == unit
