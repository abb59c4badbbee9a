"""Scenarios and tracks as commented TOML files."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from gpusched_env.parts import short_name
from gpusched_env.workload.scenario.cluster import Cluster, OwnGpuType, Pool
from gpusched_env.workload.scenario.comparison import JobClass, MixtureScenario, TraceReplay
from gpusched_env.workload.scenario.epochs import OwnApplication
from gpusched_env.workload.scenario.scenario import Scenario
from gpusched_env.workload.scenario.settings import Settings
from gpusched_env.workload.scenario.sharing import OwnTenant

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo


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
