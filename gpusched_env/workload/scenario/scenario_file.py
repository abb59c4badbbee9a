"""Scenarios and tracks as TOML files: the built-in ones, users' ones, and a template."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from gpusched_env.errors import InputError
from gpusched_env.parsing import parse_toml
from gpusched_env.parts import short_name
from gpusched_env.workload.catalogue import NAMED_TABLES
from gpusched_env.workload.scenario.cluster import Cluster, OwnGpuType, Pool
from gpusched_env.workload.scenario.comparison import JobClass, MixtureScenario, TraceReplay, TrackHeader, parse_seeds
from gpusched_env.workload.scenario.epochs import GIVEN_HISTOGRAMS, OwnApplication
from gpusched_env.workload.scenario.places import builtin_files, text_of, track_header, track_place
from gpusched_env.workload.scenario.scenario import Scenario, changed_description
from gpusched_env.workload.scenario.settings import Settings
from gpusched_env.workload.scenario.sharing import OwnTenant
from gpusched_env.workload.tables import MLPERF, PRICE_SERIES, PUBLISHED
from gpusched_env.workload.traces.formats import UTF_8

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo

REPLACED_WITH = {
    "epochs": (GIVEN_HISTOGRAMS, GIVEN_HISTOGRAMS),
    "cluster": (("pools",), ("pools", "nodes", "gpu_types", "gpus_per_node")),
}
"""By section: settings of a file that replace settings of its base, and which ones."""


def load_scenario(name_or_path: str | Path) -> Scenario:
    """Load a built-in scenario or that of a track by name, or a scenario file (`.toml`); `track:NAME` is a track's.

    A file may build on another one: `base = "default"`. A relative path in it is taken from its folder. A file without
    a name gets its file name.

    Raises:
        InputError: There is no such scenario or file, it is not valid TOML, or a value is not allowed.
    """
    if not isinstance(name_or_path, str | PathLike):
        raise InputError("scenario", name_or_path, "the name of a scenario or track, or the path of a .toml file")
    return Scenario(**_read(*text_of(name_or_path), ()))


def builtin_scenarios() -> dict[str, Scenario]:
    """Load all built-in scenarios, by name."""
    return {name: load_scenario(name) for name in builtin_files("scenario")}


def scenario_for_trace(
    path: str | Path,
    jobs: int | None = None,
    nodes: int | None = None,
    *,
    base: Scenario | None = None,
    trace_format: str | None = None,
) -> Scenario:
    """Make the scenario that replays a trace.

    Args:
        path: The trace.
        jobs: Most jobs to take; by default all of the trace.
        nodes: Number of nodes; by default those of `base`.
        base: Scenario for all else; by default the built-in `default`. Settings of its own `trace` section stay.
        trace_format: Format of the trace; by default detected from its columns.

    Raises:
        InputError: There is no such format, the file cannot be read, or a number is out of its range.
    """
    from gpusched_env.workload.traces.presets import check_format  # noqa: PLC0415 - few need it
    from gpusched_env.workload.traces.trace import detect_format, read_trace  # noqa: PLC0415 - for polars

    if trace_format is not None:
        check_format(trace_format)
    chosen = load_scenario("default") if base is None else base
    encoding = UTF_8 if chosen.trace is None else chosen.trace.encoding
    kind = detect_format(path, encoding) if trace_format is None else trace_format
    replay = {} if chosen.trace is None else chosen.trace.model_dump(exclude_none=True)
    replay |= {"path": str(Path(path).resolve()), "format": kind}
    trace = TraceReplay(**replay)
    if jobs is None:
        jobs = len(read_trace(trace.path, trace.format, trace.columns, jobs=None, **trace.selection))
    description = f"Replays {Path(path).name}; what it lacks is modelled as in scenario {chosen.name}."
    values = {"name": Path(path).stem, "description": description, "jobs.count": jobs, "trace": trace}
    return chosen.replace(values if nodes is None else {**values, "cluster.nodes": nodes})


def scenario_toml(scenario: Scenario) -> str:
    """Write a scenario as a commented TOML file that loads back to an equal scenario."""
    lines = [
        setting_line(scenario, field)
        for field in ("name", "description", "restart_s", "decision_interval_s", "tenancy", "mechanisms")
    ]
    if not isinstance(scenario.applications, tuple):
        lines.append(setting_line(scenario, "applications"))
    lines += [] if scenario.restart_by_application else [""]
    lines += _table(scenario, "restart_by_application", "restart_by_application")
    lines += _array("gpu_types", scenario.gpu_types, OwnGpuType)
    lines += _array("tenants", scenario.tenants, OwnTenant)
    lines += _array("mixture", scenario.mixture, MixtureScenario)
    lines += _array("job_classes", scenario.job_classes, JobClass)
    if isinstance(scenario.applications, tuple):
        lines += _array("applications", scenario.applications, OwnApplication)
    for section in (*Scenario.model_fields, *map(short_name, scenario.mechanisms)):
        value = getattr(scenario, section)
        if isinstance(value, Settings):
            summary = (type(value).__doc__ or "").splitlines()[0]
            lines += ["", f"# {summary}", f"[{section}]", *_section(value, section)]
    if scenario.trace is None:
        lines += ["", "# A trace in place of modelled arrivals and durations:", "# [trace]"]
        lines += [_unset(name, info) for name, info in TraceReplay.model_fields.items()]
    return "\n".join(lines) + "\n"


def _section(settings: Settings, prefix: str) -> list[str]:
    """Write the values of a section, then its tables; TOML wants them last."""
    values, tables = [], []
    for name in type(settings).model_fields:
        value = getattr(settings, name)
        if isinstance(settings, Cluster) and name == "pools":
            tables += _array(f"{prefix}.{name}", settings.pools, Pool)
        elif isinstance(settings, Cluster) and settings.pools and name in {"nodes", "gpu_types"}:
            continue  # the pools contain it
        elif isinstance(value, Mapping):
            tables += _table(settings, name, f"{prefix}.{name}")
        else:
            values.append(setting_line(settings, name))
    return values + tables


def _array(header: str, tables: Sequence[Settings], kind: type[Settings]) -> list[str]:
    """Write a list of tables; where it is empty, how to begin one."""
    if not tables:
        return ["", f"# {(kind.__doc__ or '').splitlines()[0]}", f"# [[{header}]]"]
    lines = []
    for table in tables:
        given = {name: value for name in type(table).model_fields if (value := getattr(table, name)) is not None}
        lines += ["", f"[[{header}]]", *(f"{name} = {_toml(value)}" for name, value in given.items())]
    return lines


def _table(settings: Settings, name: str, header: str) -> list[str]:
    """Write the values of a setting that is a table of its own; where it has none, how to begin it."""
    info, value = type(settings).model_fields[name], getattr(settings, name)
    if not value:
        return [f"# {info.description}", f"# [{header}]"]
    if not all(isinstance(item, Settings) for item in value.values()):
        lines = [f"{_key(key)} = {_toml(item)}" for key, item in value.items()]
        return ["", f"# {info.description}", f"[{header}]", *lines]
    lines = []
    for key, item in value.items():
        lines += ["", f"[{header}.{_key(key)}]", *_section(item, f"{header}.{_key(key)}")]
    return lines


def setting_line(settings: Settings, name: str) -> str:
    info, value = type(settings).model_fields[name], getattr(settings, name)
    return _unset(name, info) if value is None else f"{name} = {_toml(value)}  # {info.description}"


def _unset(name: str, info: FieldInfo) -> str:
    return f"# {name} =   # {info.description}"


def _toml(value: object) -> str:
    if isinstance(value, Mapping):
        return f"{{ {', '.join(f'{_key(key)} = {_toml(item)}' for key, item in value.items())} }}"
    if isinstance(value, tuple | list):
        return f"[{', '.join(_toml(item) for item in value)}]"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        # JSON's escapes are TOML's, except that TOML also wants DEL escaped.
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return repr(value)


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else _toml(name)


def _read(text: str, name: str, folder: Path | None, above: tuple[str, ...]) -> dict[str, Any]:
    """Read the values of a scenario file, on top of those of its `base`; `above` are the files that build on it."""
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
        below = text_of(place)
    except InputError as error:
        raise InputError("base", base, error.allowed) from None
    under = _read(*below, (*above, place))
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
    for variant in data["mixture"] if isinstance(data.get("mixture"), list) else ():
        _from_folder(variant, "scenario", folder, only=".toml")


def _from_folder(section: object, name: str, folder: Path, names: tuple[str, ...] = (), only: str = "") -> None:
    """Resolve the path of a file in a section from the scenario's folder, if it is a path and no name."""
    given = section.get(name) if isinstance(section, dict) else None
    if isinstance(section, dict) and isinstance(given, str) and given not in names and given.endswith(only):
        section[name] = str(folder / section[name])


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
    header = None if isinstance(scenario, Scenario) else track_header(scenario)
    return 1.0 if header is None else TrackHeader(**header).reward_scale_eur


def track_toml(track: Track) -> str:
    """Write a track as a commented TOML file that loads back to an equal track, but for its name."""
    header = [setting_line(track, name) for name in TrackHeader.model_fields]
    return "\n".join([scenario_toml(track.scenario), "# What makes it a track.", "[track]", *header]) + "\n"
