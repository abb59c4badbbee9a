"""README.md shows what its record holds, and what the record holds is what the code does now."""

import json
import runpy
from pathlib import Path

import pytest

from gpusched_env.workload import load_track
from gpusched_experiments import compare

ROOT = Path(__file__).parents[1]
SCRIPT = runpy.run_path(str(ROOT / "scripts/front_page.py"))
RECORD = json.loads(SCRIPT["RECORD"].read_text(encoding="utf-8"))
PAGE = SCRIPT["README"].read_text(encoding="utf-8")


def test_the_page_is_that_of_the_record():
    assert SCRIPT["filled"](PAGE, RECORD) == PAGE
    assert RECORD["provenance"]["facts"]["training"] == SCRIPT["box"](2)


def test_other_pages_show_the_same_savings():
    shown = SCRIPT["_against"](RECORD["costs_eur"]["slack"])
    assert [
        page for page in ("train", "adaptation") if shown not in (ROOT / f"docs/{page}.md").read_text("utf-8")
    ] == []


def test_another_record_makes_another_page():
    costs = {track: {name: {"0": 1.0} for name in each} for track, each in RECORD["costs_eur"].items()}
    other = SCRIPT["filled"](PAGE, {"boxes": {"1": "none\n"}, "costs_eur": costs})
    assert "| EDF (earliest due date first) | 1.00 | 1.00 |" in other
    assert "```text\nnone\n```" in other


def test_the_record_has_every_test_seed_and_five_agents():
    for track, costs in RECORD["costs_eur"].items():
        seeds = [str(seed) for seed in load_track(track).seeds("test")]
        assert [list(each) for each in costs.values()] == [seeds] * len(costs)
        assert sum(name.startswith("ppo-") for name in costs) == 5


def test_the_first_box_prints_what_is_recorded():
    assert SCRIPT["printed"](SCRIPT["box"](1)) == RECORD["boxes"]["1"]


@pytest.mark.parametrize("policy", SCRIPT["RULES"])
def test_the_first_seed_costs_what_is_recorded(policy):
    (run,) = compare([policy], "slack", seeds=[30_000])
    assert run.total_eur == pytest.approx(RECORD["costs_eur"]["slack"][policy]["30000"], abs=1e-3)
