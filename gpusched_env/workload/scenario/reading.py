"""The values of scenario files, which may build on others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from gpusched_env.errors import InputError
from gpusched_env.parsing import parse_toml
from gpusched_env.parts import short_name
from gpusched_env.workload.catalogue import NAMED_TABLES
from gpusched_env.workload.scenario.comparison import TrackHeader
from gpusched_env.workload.scenario.epochs import GIVEN_HISTOGRAMS
from gpusched_env.workload.scenario.places import text_of
from gpusched_env.workload.scenario.scenario import changed_description
from gpusched_env.workload.tables import MLPERF, PRICE_SERIES, PUBLISHED

if TYPE_CHECKING:
    from collections.abc import Callable
    from os import PathLike
    from pathlib import Path

    Find: TypeAlias = Callable[[str | PathLike[str]], tuple[str, str, Path | None]]

REPLACED_WITH = {
    "epochs": (GIVEN_HISTOGRAMS, GIVEN_HISTOGRAMS),
    "cluster": (("pools",), ("pools", "nodes", "gpu_types", "gpus_per_node")),
}
"""By section: settings of a file that replace settings of its base, and which ones."""


def read_values(place: str | PathLike[str], find: Find = text_of) -> dict[str, Any]:
    """Read the values of a scenario, on top of those of its `base`.

    Args:
        place: Its name, or the path of its file.
        find: Finds the text of a scenario.

    Raises:
        InputError: There is no such scenario or file, or it is not valid TOML.
    """
    return _read(*find(place), (), find)


def _read(text: str, name: str, folder: Path | None, above: tuple[str, ...], find: Find) -> dict[str, Any]:
    """Read the values of a text; `above` are the files that build on it."""
    try:
        data: dict[str, Any] = parse_toml(text)
    except ValueError as error:
        raise InputError(f"scenario {name}", str(error), "a file in TOML") from None
    if folder is not None:
        _resolve(data, folder)
    if "track" in data:
        _take_track(data)
    base = data.pop("base", None)
    if base is None:
        return {"name": name, **data}
    if not isinstance(base, str):
        raise InputError("base", base, "the name of a built-in scenario, or the path of a .toml file")
    place = str((folder / base).resolve()) if folder and base.endswith(".toml") else base
    if place in above:
        raise InputError("base", base, "a scenario that does not build on this one in turn")
    try:
        below = find(place)
    except InputError as error:
        raise InputError("base", base, error.allowed) from None
    under = _read(*below, (*above, place), find)
    if "description" not in data:
        under["description"] = changed_description(under["name"], under.get("description", ""), data)
    return _on_top(under, {"name": name, **data})


def _take_track(data: dict[str, Any]) -> None:
    """Remove the section of a track; comparisons on a track use its test seeds."""
    values = data.pop("track")
    if not isinstance(values, dict):
        raise InputError("track", values, "a table of settings")
    try:
        header = TrackHeader(**values)
    except InputError as error:
        raise InputError(f"track.{error.field}", error.value, error.allowed) from None
    compare = data.setdefault("compare", {})
    if isinstance(compare, dict) and compare.setdefault("seeds", header.test) != header.test:
        raise InputError("compare.seeds", compare["seeds"], f"the test seeds of the track: {header.test}")


def _on_top(base: dict[str, Any], data: dict[str, Any]) -> dict[str, Any]:
    """Replace values of the base by those of a file: section by section, but as a whole where it has a kind or family.

    As with `Scenario.replace`, histograms given in one way replace those given in another, and pools the nodes.
    """
    merged = dict(base)
    for name, value in data.items():
        below = base.get(name)
        if not isinstance(value, dict) or value.keys() & {"kind", "family"} or not isinstance(below, dict):
            merged[name] = value
            continue
        given, dropped = REPLACED_WITH.get(name, ((), ()))
        left_out = dropped if value.keys() & set(given) else ()
        merged[name] = _on_top({key: kept for key, kept in below.items() if key not in left_out}, value)
    return merged


def _resolve(data: dict[str, Any], folder: Path) -> None:
    _from_folder(data, "applications", folder, NAMED_TABLES)
    _from_folder(data.get("trace"), "path", folder)
    _from_folder(data.get("prices"), "series", folder, PRICE_SERIES)
    for setting in ("library", "runs"):
        _from_folder(data.get("epochs"), setting, folder, (PUBLISHED, MLPERF))
    mechanisms = data["mechanisms"] if isinstance(data.get("mechanisms"), list) else ()
    for section in (data.get(short_name(name)) for name in mechanisms if isinstance(name, str)):
        for setting in [name for name in section if name.endswith("_file")] if isinstance(section, dict) else ():
            _from_folder(section, setting, folder)
    for variant in data["mixture"] if isinstance(data.get("mixture"), list) else ():
        _from_folder(variant, "scenario", folder, only=".toml")


def _from_folder(section: object, name: str, folder: Path, names: tuple[str, ...] = (), only: str = "") -> None:
    """Resolve the path of a file in a section from the scenario's folder, if it is a path and no name."""
    given = section.get(name) if isinstance(section, dict) else None
    if isinstance(section, dict) and isinstance(given, str) and given not in names and given.endswith(only):
        section[name] = str(folder / section[name])
