"""The fit behind `communication.csv`; the script's folder is no package."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

SCRIPTS = str(Path(__file__).parents[1] / "scripts")


@pytest.fixture
def module() -> Iterator[Any]:
    sys.path.insert(0, SCRIPTS)
    try:
        from applications import communication  # noqa: PLC0415 - the script's folder is no package

        yield communication
    finally:
        sys.path.remove(SCRIPTS)


def test_a_fit_finds_the_times_that_made_it(module):
    found = module.fit({n: 0.3 / n + 0.02 * 2 * (n - 1) / n for n in (1, 2, 4, 8)})
    assert (found.compute_s, found.sync_s) == (pytest.approx(0.3), pytest.approx(0.02))
    assert found.worst_error < 1e-12
    assert found.iteration_s(3) == pytest.approx(0.1 + 0.08 / 3)


def test_a_fit_is_the_best_in_relative_error(module):
    measured = {1: 0.31, 2: 0.16, 4: 0.11, 8: 0.07}
    best = module.fit(measured)

    def squares(compute_s: float, sync_s: float) -> float:
        made = module.Fit(compute_s, sync_s, 0.0, 8)
        return sum((made.iteration_s(n) / seconds - 1.0) ** 2 for n, seconds in measured.items())

    found = squares(best.compute_s, best.sync_s)
    for change in (0.99, 1.01):
        assert squares(best.compute_s * change, best.sync_s) > found
        assert squares(best.compute_s, best.sync_s * change) > found
