"""Scenarios as TOML files: the built-in ones, yours, and one to start from."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping
from importlib.resources import files
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpusched_env.errors import InputError
from gpusched_env.workload.scenario.scenario import Scenario, TraceReplay
from gpusched_env.workload.scenario.settings import Settings
from gpusched_env.workload.traces.trace import detect_format, read_trace

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

    from pydantic.fields import FieldInfo


def load_scenario(name_or_path: str | Path) -> Scenario:
    """Load a built-in scenario by name, or a scenario file (`.toml`).

    A relative path of a trace in a file is taken from the file's folder. A file without a name gets its file name.

    Raises:
        InputError: There is no such scenario or file, it is not valid TOML, or a value is not allowed.
    """
    if not isinstance(name_or_path, str | PathLike):
        raise InputError("scenario", name_or_path, "the name of a built-in scenario, or the path of a .toml file")
    path = Path(name_or_path)
    if path.suffix != ".toml":
        names = _builtin_files()
        if str(name_or_path) not in names:
            raise InputError("scenario", str(name_or_path), f"one of {', '.join(names)}, or a .toml file")
        return _parse(names[str(name_or_path)].read_text(encoding="utf-8"), str(name_or_path), None)
    try:
        if not path.is_file():
            raise InputError("scenario", str(path), "a .toml file that exists")
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError("scenario", str(path), f"a readable file in UTF-8 ({error})") from None
    return _parse(text, path.stem, path.resolve().parent)


def builtin_scenarios() -> dict[str, Scenario]:
    """Load all built-in scenarios, by name."""
    return {name: load_scenario(name) for name in _builtin_files()}


def scenario_for_trace(
    path: str | Path, jobs: int | None = None, nodes: int | None = None, *, base: Scenario | None = None
) -> Scenario:
    """Make the scenario that replays a trace; its format is told by its columns.

    Args:
        path: The trace.
        jobs: Most jobs to take; by default all of the trace.
        nodes: Number of nodes; by default those of `base`.
        base: Scenario for all else; by default the built-in `default`. Settings of its own `trace` section stay.

    Raises:
        InputError: The file cannot be read, or a number is out of its range.
    """
    chosen = load_scenario("default") if base is None else base
    kind = detect_format(path)
    replay = {} if chosen.trace is None else chosen.trace.model_dump(exclude_none=True)
    replay |= {"path": str(Path(path).resolve()), "format": kind}
    trace = TraceReplay(**replay)
    if jobs is None:
        jobs = len(read_trace(trace.path, trace.format, trace.columns, sort=trace.sort, first=trace.first))
    description = f"Replays {Path(path).name}; what it lacks is modelled as in scenario {chosen.name}."
    values = {"name": Path(path).stem, "description": description, "jobs.count": jobs, "trace": trace}
    return chosen.replace(values if nodes is None else {**values, "cluster.nodes": nodes})


def scenario_toml(scenario: Scenario) -> str:
    """Write a scenario as a commented TOML file that loads back to an equal scenario."""
    lines = [_line(scenario, field) for field in ("name", "description", "restart_s")]
    lines += [] if scenario.restart_by_application else [""]
    lines += _table(scenario, "restart_by_application", "restart_by_application")
    for section in Scenario.model_fields:
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
        if isinstance(getattr(settings, name), Mapping):
            tables += _table(settings, name, f"{prefix}.{name}")
        else:
            values.append(_line(settings, name))
    return values + tables


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


def _line(settings: Settings, name: str) -> str:
    info, value = type(settings).model_fields[name], getattr(settings, name)
    return _unset(name, info) if value is None else f"{name} = {_toml(value)}  # {info.description}"


def _unset(name: str, info: FieldInfo) -> str:
    return f"# {name} =   # {info.description}"


def _toml(value: object) -> str:
    if isinstance(value, tuple):
        return f"[{', '.join(_toml(item) for item in value)}]"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        # JSON's escapes are TOML's, except that TOML also wants DEL escaped.
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return repr(value)


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else _toml(name)


def _builtin_files() -> dict[str, Traversable]:
    folder = files("gpusched_env").joinpath("workload", "scenarios")
    found = {Path(file.name).stem: file for file in folder.iterdir() if file.name.endswith(".toml")}
    return dict(sorted(found.items(), key=lambda item: (item[0] != "default", item[0])))


def _parse(text: str, name: str, folder: Path | None) -> Scenario:
    try:
        data: dict[str, Any] = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"scenario {name}", str(error), "a file in TOML") from None
    trace = data.get("trace")
    if folder is not None and isinstance(trace, dict) and isinstance(trace.get("path"), str):
        trace["path"] = str(folder / trace["path"])
    return Scenario(**{"name": name, **data})
