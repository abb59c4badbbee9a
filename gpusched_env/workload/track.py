"""Tracks: a named, versioned suite of workloads on which policies are ranked."""

from __future__ import annotations

import tomllib
from typing import TYPE_CHECKING, Any, Literal

from gpusched_env.errors import InputError
from gpusched_env.workload.scenario.comparison import TrackHeader, parse_seeds
from gpusched_env.workload.scenario.scenario import Scenario
from gpusched_env.workload.scenario.scenario_file import (
    TRACK,
    load_scenario,
    scenario_toml,
    setting_line,
    text_of,
)

if TYPE_CHECKING:
    from pathlib import Path

SUITE_VERSION = 2
"""Rises when a track joins or leaves the suite, or one gets a new version: only equal ones have comparable ranks."""

SUITE = (
    "published-1", "published-2", "published-3", "slack", "busy", "full", "restarts-60", "restarts-600", "two-point",
    "lognormal", "flow-time", "whole-nodes", "philly", "openb", "pairs", "hosts", "tenants",
)  # fmt: skip
"""Names of the tracks, in the order of tables; each has a file in `tracks`."""

Purpose = Literal["training", "validation", "test"]


class Track(TrackHeader):
    """A workload with fixed seeds, and why it is in the suite.

    Attributes:
        name: Its name.
        scenario: Its scenario; the seeds of its comparisons are the test seeds.
    """

    name: str
    scenario: Scenario

    def seeds(self, purpose: Purpose) -> tuple[int, ...]:
        """List the seeds for one purpose; those for different ones have none in common."""
        return parse_seeds(getattr(self, purpose), purpose)


def list_tracks() -> tuple[str, ...]:
    """List the names of the suite's tracks, in its order."""
    return SUITE


def load_track(name_or_path: str | Path) -> Track:
    """Load a track of the suite by name, or a file of your own: a scenario file (`.toml`) with a section `track`.

    Raises:
        InputError: There is no such track or file, it has no section `track`, or a value is not allowed.
    """
    place = track_place(name_or_path)
    scenario = load_scenario(place)
    header = _header(place)
    if header is None:
        raise InputError("track", str(name_or_path), "a scenario file with a section [track]")
    return Track(name=text_of(place)[1], scenario=scenario, **header)


def reward_scale_of(scenario: str | Path | Scenario) -> float:
    """Return the cost that counts as a reward of -1 [€] on a track, given where `load_scenario` finds it.

    A scenario that is no track, or has been loaded already, has 1.
    """
    header = None if isinstance(scenario, Scenario) else _header(scenario)
    return 1.0 if header is None else TrackHeader(**header).reward_scale_eur


def step_limit_of(track: str) -> int | None:
    """Return the steps after which an episode on a track of the suite is truncated; no scenario is loaded for it."""
    limit: int | None = (_header(track_place(track)) or {}).get("max_episode_steps")
    return limit


def _header(place: str | Path) -> dict[str, Any] | None:
    """Return the section `track` of a scenario's file, if it has one."""
    return tomllib.loads(text_of(place)[0]).get("track")


def track_place(name_or_path: str | Path) -> str:
    """Give what `load_scenario` and every option `--scenario` take for the scenario of a track."""
    return str(name_or_path) if str(name_or_path).endswith(".toml") else f"{TRACK}{name_or_path}"


def track_toml(track: Track) -> str:
    """Write a track as a commented TOML file that loads back to an equal track, but for its name."""
    header = [setting_line(track, name) for name in TrackHeader.model_fields]
    return "\n".join([scenario_toml(track.scenario), "# What makes it a track.", "[track]", *header]) + "\n"
