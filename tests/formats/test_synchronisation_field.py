from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from gpusched_env import load_instance, save_instance
from helpers import helped_instance
from refusals import refused
from run_files import edited, loaded_again

if TYPE_CHECKING:
    from pathlib import Path


def test_what_was_saved_is_loaded(tmp_path: Path) -> None:
    instance = helped_instance(3)
    assert loaded_again(instance, tmp_path) == instance
    assert loaded_again(instance, tmp_path) != replace(instance, mechanisms=())


def test_every_kind_of_network_is_saved_and_what_is_default_is_not(tmp_path: Path) -> None:
    for seed in range(8):
        instance = helped_instance(seed, varied=True)
        assert loaded_again(instance, tmp_path) == instance
    save_instance(helped_instance(3), tmp_path / "i.json")
    document = json.loads((tmp_path / "i.json").read_text(encoding="utf-8"))
    assert document["synchronisation"].keys() == {"compute_s", "sync_s", "cpu_machines"}


def test_an_instance_without_it_has_no_such_field(tmp_path: Path) -> None:
    save_instance(replace(helped_instance(3), mechanisms=()), tmp_path / "i.json")
    assert "synchronisation" not in json.loads((tmp_path / "i.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"cpu_machines": 1.5}, "synchronisation.cpu_machines"),
        ({"cpu_machines": -1}, "synchronisation.cpu_machines"),
        ({"colour": "red"}, "synchronisation.colour"),
        ({"backend": "ring"}, "synchronisation.backend"),
        ({"core_nodes": 0.0}, "synchronisation.core_nodes"),
        ({"inside_s": [[1.0, 1.0], [1.0]]}, "synchronisation.inside_s"),
        ({"compute_s": [[1.0, 1.0], [1.0]]}, "synchronisation.compute_s"),
        ({"compute_s": []}, "synchronisation.compute_s"),
        ({"compute_s": [[1.0, 1.0]]}, "synchronisation.sync_s"),
        ({"compute_s": [[1.0, 1.0], [1.0, 0.0]]}, "synchronisation.compute_s[1, 1]"),
        ({"sync_s": [[1.0, 1.0], [1.0, "2"]]}, "synchronisation.sync_s[1][1]"),
        ({"sync_s": [[1.0, 1.0], [-1.0, 1.0]]}, "synchronisation.sync_s[1, 0]"),
        ({"sync_s": [[1.0]], "compute_s": [[1.0]]}, "synchronisation.compute_s"),
    ],
)
def test_an_edited_field_is_named(tmp_path: Path, change: dict[str, Any], field: str) -> None:
    path = tmp_path / "i.json"
    save_instance(helped_instance(3), path)
    with edited(path) as document:
        document["synchronisation"].update(change)
    with refused(f"{path}: {field}"):
        load_instance(path)
