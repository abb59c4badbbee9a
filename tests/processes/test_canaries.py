"""Results on the pages are those of the present code, or are marked as old."""

import runpy
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
SCRIPT = runpy.run_path(str(ROOT / "scripts/canaries.py"))
CANARY, compared, old_policies = SCRIPT["Canary"], SCRIPT["compared"], SCRIPT["old_policies"]
BEFORE = [CANARY("slack", "edf", 300.0, "a1"), CANARY("slack", "sts-x", 240.0, "a1")]


def test_no_cost_has_changed_since_it_was_stored():
    """Else: `python scripts/canaries.py --write`, and the tables that it then calls old are made again."""
    before = SCRIPT["stored"]()
    now = compared(before, SCRIPT["costs"](), "now")
    assert [each for each in now if each.since == "now"] == []
    assert SCRIPT["missing"](before, now) == []


def test_a_cost_that_changes_is_of_the_present_commit():
    now = [("slack", "edf", 300.0 * (1.0 + 1e-12)), ("slack", "sts-x", 239.0), ("busy", "edf", 1.0)]
    made = compared(BEFORE, now, "b2")
    assert [each.since for each in made] == ["a1", "b2", "b2"]
    assert [each.total_eur for each in made] == [300.0, 239.0, 1.0]
    assert SCRIPT["missing"](BEFORE, made[1:]) == [("slack", "edf")]


def folder(path: Path, commit: str, policy: str) -> Path:
    (path / "record.json").write_text(f'{{"provenance": {{"facts": {{"commit": "{commit}"}}}}}}')
    (path / "table.csv").write_text(f"track,policy,total_eur\nslack,{policy},1\n")
    return path


@dataclass
class File:
    src_path: str


def test_a_table_is_old_if_a_policy_of_it_changed_after_its_commit(tmp_path, monkeypatch):
    order = {"first": 0, "a1": 1, "later": 2, "b2": 3, "last": 4}
    stored = [
        CANARY("slack", "edf", 1.0, "a1"), CANARY("slack", "sts-x", 1.0, "b2"), CANARY("slack", "sts", 1.0, "b2"),
        CANARY("busy", "edf", 1.0, "b2"), CANARY("busy", "sts", 1.0, "a1"), CANARY("day-ahead", "edf", 1.0, "last"),
    ]  # fmt: skip
    inside = old_policies.__globals__
    monkeypatch.setitem(inside, "stored", lambda: stored)
    monkeypatch.setitem(inside, "_is_before", lambda one, other: order[one] <= order[other])
    expected = {
        ("later", "edf"): {},
        ("first", "edf"): {"edf": "a1"},
        ("later", "sts-x:alone-rates"): {"sts-x": "b2"},
        ("later", "sts-x:one-price"): {"sts-x": "b2"},  # of former times
        ("later", "sts:published"): {},  # a policy of its own, of which STS's costs are not
        ("last", "sts-x"): {},
        ("", "edf"): {"edf": "a1"},
        ("later", "sts"): {"sts": "b2"},
    }
    for (commit, policy), old in expected.items():
        assert old_policies(folder(tmp_path, commit, policy)) == old
    made = folder(tmp_path, "later", "sts")
    (made / "table.csv").write_text("policy,total_eur\nsts,1\n")  # of all tracks, the last of which is as it was
    assert old_policies(made) == {"sts": "b2"}
    (made / "table.csv").write_text("policy,total_eur\nedf,1\n")  # of no track with prices by period
    assert old_policies(made) == {"edf": "b2"}
    assert SCRIPT["described"]({"sts-x": "b2" * 20, "edf": "a1" * 20}).endswith(": sts-x (b2b2b2b2), edf (a1a1a1a1)")


def test_the_page_of_an_old_table_begins_with_a_warning(monkeypatch):
    mark, inside = SCRIPT["on_page_markdown"], old_policies.__globals__
    page = type("Page", (), {"file": File("results/leaderboard/table.md")})()
    monkeypatch.setitem(inside, "old_policies", lambda _: {"sts-x": "b2"})
    assert mark("# Leaderboard", page).startswith('!!! warning "Old"\n    The costs of these policies have changed')
    monkeypatch.setitem(inside, "old_policies", lambda _: {})
    assert mark("# Leaderboard", page) == "# Leaderboard"
    assert mark("# Model", type("Page", (), {"file": File("model.md")})()) == "# Model"
