"""The stored gallery is what its script makes of the stored leaderboard, and has what it links to."""

import json
import re
import runpy
from pathlib import Path

import pytest
from PIL import Image

from gpusched_env import make_instance
from gpusched_env.workload import list_environments, list_tracks, load_track

ROOT = Path(__file__).parents[1]
SCRIPT = runpy.run_path(str(ROOT / "scripts/gallery.py"))
STORED = ROOT / "docs/results/gallery.md"
PAGE = STORED.read_text(encoding="utf-8")


def test_the_page_is_that_of_the_stored_leaderboard():
    assert SCRIPT["page"]() == PAGE, "run python scripts/gallery.py"
    assert tuple(re.findall(r"^## (.*)$", PAGE, re.MULTILINE)) == list_tracks()


def test_what_it_links_to_is_there():
    for target, _, heading in (link.partition("#") for link in re.findall(r"\]\(([^)\s]+)\)", PAGE)):
        assert (STORED.parent / target).exists(), target
        if heading:
            page = STORED.parent / target if target else STORED
            headings = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
            assert heading in {each.lower().replace(" ", "-") for each in headings}, heading


def test_each_track_with_an_environment_has_a_small_frame():
    frames = sorted((STORED.parent / "gallery").iterdir())
    assert {frame.name for frame in frames} == {f"{name}.png" for name in list_environments()}
    for frame in frames:
        assert f"](gallery/{frame.name})" in PAGE
        with Image.open(frame) as image:
            assert (image.size[0] <= 640, image.mode) == (True, "P")
    assert sum(frame.stat().st_size for frame in frames) < 700_000


def test_spaces_without_an_environment_are_those_of_one():
    gymnasium = pytest.importorskip("gymnasium")
    track = load_track("slack")
    env = gymnasium.make("gpusched_env/GpuCluster-v0", scenario="slack")
    text = SCRIPT["spaces_of"](make_instance(track.scenario, 0))
    for name, box in env.observation_space.items():
        assert f"`{name}` {box.shape}" in text
    size = sum(box.shape[0] for box in env.observation_space.values())
    assert text.endswith(f"; flat ({size},); action `{env.action_space}`")


def test_costs_are_compared_with_the_best_known_and_a_missing_track_is_named():
    known = {"best_eur": "100.0", "best_policy": "agent:b", "bound_eur": "90.0"}
    policies = {"edf": 2000.0, "sts-x": 110.0, "agent:a": 120.0, "agent:b": 100.0, "fifo": 500.0}
    lines = SCRIPT["cost_lines"](known, policies, 99.0)
    assert lines[2:] == [
        "| `edf` | 2,000.00 | 20.0 |",
        "| `sts-x` | 110.00 | 1.100 |",
        "| `agent:b` | 100.00 | 1.000 |",
        "| PPO, trained here | 99.00 | 0.990 |",
        "",
    ]
    assert SCRIPT["cost_lines"](None, {}, None) == ["Costs: not in the leaderboard.\n"]
    facts = {"track": "a", "nodes": "1", "jobs": "2", "load": "0.50"}
    assert SCRIPT["overview_row"](facts, known, policies) == "| [a](#a) | 1 | 2 | 0.50 | 100.00 | 0.909 |"
    assert SCRIPT["overview_row"](facts, None, {}).endswith("| not in the leaderboard |  |")


def test_the_studies_with_curves_are_those_of_the_results():
    for track, folder in SCRIPT["studies_of_tracks"]().items():
        record = json.loads((STORED.parent / folder / "summary.json").read_text(encoding="utf-8"))
        assert f"--scenario track:{track} " in record["provenance"]["command"]
