"""Where scenarios and tracks are: the files of the package by name, and files of users by path.

It imports little, and loads no scenario: the environments of all tracks are registered by it.
"""

from __future__ import annotations

import re
from importlib.resources import files
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpusched_env.errors import InputError
from gpusched_env.parsing import parse_toml

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

TRACK = "track:"
"""Before its name: the scenario of a track."""

DRAWN = re.compile(r"drawn-(\d{1,18})-(\d{1,6})")
"""Name of a drawn scenario: its seed and number."""

SUITE_VERSION = 8
"""Rises when a track joins or leaves the suite, or one gets a new version: only equal ones have comparable ranks."""

SUITE = (
    "published-1", "published-2", "published-3", "slack", "busy", "full", "restarts-60", "restarts-600",
    "restarts-1800", "few-jobs", "two-point", "lognormal", "flow-time", "whole-nodes", "h100-l4", "a100-h200", "limits",
    "rented", "philly", "openb", "pairs", "hosts", "colocation", "modern", "cap",
    "day-ahead", "day-ahead-caiso", "two-prices",
    "tenants", "surge", "shift", "failures", "mixture", "fleet", "drawn",
)  # fmt: skip
"""Names of the tracks, in the order of tables; each has a file in `tracks`."""


def text_of(name_or_path: str | PathLike[str]) -> tuple[str, str, Path | None]:
    """Return the text of a scenario file, its name, and the folder from which its relative paths are taken, if any."""
    path, given = Path(name_or_path), str(name_or_path)
    if path.suffix != ".toml":
        name, found = given.removeprefix(TRACK), builtin_files("track")
        if given.startswith(TRACK):
            kind, allowed = "track", f"one of {', '.join(found)}"
        else:
            scenarios = builtin_files("scenario")
            kind, allowed = "scenario", f"one of {', '.join(scenarios)}; a track: {', '.join(found)}; drawn-SEED-NUMBER"
            found |= scenarios
        if name not in found:
            raise InputError(kind, name, f"{allowed}, or a .toml file")
        return found[name].read_text(encoding="utf-8"), name, None
    try:
        if not path.is_file():
            raise InputError("scenario", str(path), "a .toml file that exists")
        return path.read_text(encoding="utf-8"), path.stem, path.resolve().parent
    except (OSError, UnicodeDecodeError) as error:
        raise InputError("scenario", str(path), f"a readable file in UTF-8 ({error})") from None


def builtin_files(kind: str) -> dict[str, Traversable]:
    folder = files("gpusched_env").joinpath("workload", f"{kind}s")
    found = {Path(file.name).stem: file for file in folder.iterdir() if file.name.endswith(".toml")}
    return dict(sorted(found.items(), key=lambda item: (item[0] != "default", item[0])))


def list_scenarios() -> tuple[str, ...]:
    """List the names of the built-in scenarios."""
    return tuple(builtin_files("scenario"))


def list_tracks() -> tuple[str, ...]:
    """List the names of the suite's tracks, in its order."""
    return SUITE


def track_place(name_or_path: str | Path) -> str:
    """Return what `load_scenario` and every option `--scenario` take for the scenario of a track."""
    return str(name_or_path) if str(name_or_path).endswith(".toml") else f"{TRACK}{name_or_path}"


def list_environments(kind: str = "") -> tuple[str, ...]:
    """List the names of the suite's tracks that have environments; no scenario is loaded for it.

    Args:
        kind: `Adaptation` for those with an adaptation environment; by default those with all environments.
    """
    headers = {track: track_header(track_place(track)) or {} for track in SUITE}
    wanted = {"all", "adaptation"} if kind else {"all"}
    return tuple(track for track, header in headers.items() if header.get("environments", "all") in wanted)


def track_header(place: str | Path) -> dict[str, Any] | None:
    if DRAWN.fullmatch(str(place)):
        return None
    text = text_of(place)[0]
    try:
        return parse_toml(text).get("track")
    except ValueError as error:
        raise InputError(f"scenario {place}", str(error), "a file in TOML") from None
