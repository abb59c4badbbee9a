"""Scenarios and tracks by name, and users' files of them."""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import Literal

from gpusched_env.errors import InputError
from gpusched_env.workload.scenario.comparison import TrackHeader, parse_seeds
from gpusched_env.workload.scenario.places import DRAWN, builtin_files, text_of, track_header, track_place
from gpusched_env.workload.scenario.reading import read_values
from gpusched_env.workload.scenario.scenario import Scenario


def load_scenario(name_or_path: str | Path) -> Scenario:
    """Load a built-in scenario or that of a track by name, or a scenario file (`.toml`); `track:NAME` is a track's.

    A file may build on another one: `base = "default"`. A relative path in it is taken from its folder. A file without
    a name gets its file name.

    Raises:
        InputError: There is no such scenario or file, it is not valid TOML, or a value is not allowed.
    """
    if not isinstance(name_or_path, str | PathLike):
        raise InputError("scenario", name_or_path, "the name of a scenario or track, or the path of a .toml file")
    return Scenario(**read_values(name_or_path, _text_of))


def _text_of(place: str | PathLike[str]) -> tuple[str, str, Path | None]:
    found = DRAWN.fullmatch(str(place))
    if found is None:
        return text_of(place)
    from gpusched_env.workload.drawn import drawn_toml  # noqa: PLC0415 - few need it

    return drawn_toml(int(found[1]), int(found[2])), str(place), None


def builtin_scenarios() -> dict[str, Scenario]:
    """Load all built-in scenarios, by name."""
    return {name: load_scenario(name) for name in builtin_files("scenario")}


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


def load_track(name_or_path: str | Path) -> Track:
    """Load a track of the suite by name, or a file of your own: a scenario file (`.toml`) with a section `track`.

    Raises:
        InputError: There is no such track or file, it has no section `track`, or a value is not allowed.
    """
    place = track_place(name_or_path)
    scenario = load_scenario(place)
    header = track_header(place)
    if header is None:
        raise InputError("track", str(name_or_path), "a scenario file with a section [track]")
    return Track(name=text_of(place)[1], scenario=scenario, **header)


def reward_scale_of(scenario: str | Path | Scenario) -> float:
    """Return the cost that counts as a reward of -1 [€] on a track, given where `load_scenario` finds it.

    A scenario that is no track, or has been loaded already, has 1.
    """
    header = _header_of(scenario)
    return 1.0 if header is None else header.reward_scale_eur


def step_limit_of(scenario: str | Path | Scenario) -> int | None:
    """Return the steps after which an episode on a track is truncated; None: never. Otherwise as `reward_scale_of`."""
    header = _header_of(scenario)
    return None if header is None else header.max_episode_steps


def _header_of(scenario: str | Path | Scenario) -> TrackHeader | None:
    header = None if isinstance(scenario, Scenario) else track_header(scenario)
    return None if header is None else TrackHeader(**header)


def track_toml(track: Track) -> str:
    """Write a track as a commented TOML file that loads back to an equal track, but for its name."""
    from gpusched_env.workload.scenario.scenario_toml import scenario_toml, setting_line  # noqa: PLC0415 - few need it

    header = [setting_line(track, name) for name in TrackHeader.model_fields]
    return "\n".join([scenario_toml(track.scenario), "# What makes it a track.", "[track]", *header]) + "\n"
