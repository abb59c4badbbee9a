"""The file `record.json`: how the results beside it were made."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from gpusched_agents.any_policy import is_agent
from gpusched_env.child_processes import usable_cores
from gpusched_env.errors import InputError
from gpusched_env.parsing import parse_json
from gpusched_env.provenance import provenance
from gpusched_env.workload import Scenario
from gpusched_experiments.report.cell import NO_TEXT, Cell
from gpusched_experiments.report.code_version import agent_version, code_version, commit, machine
from gpusched_experiments.report.store import document_json, finite


@dataclass(frozen=True, slots=True)
class RunProgress:
    """How far the report is.

    Attributes:
        runs: Different runs of the whole set.
        reused: Runs that former commands had finished.
        workers: Number of processes.
        duration_s: Seconds that this command took for the report so far.
        runs_s: Seconds that all runs of the set took, added up over processes and commands.
        finished: Whether every run is finished and the tables and the figure are theirs.
    """

    runs: int
    reused: int
    workers: int
    duration_s: float = 0.0
    runs_s: float = 0.0
    finished: bool = False


def fingerprint(keys: Iterable[str]) -> str:
    return hashlib.sha256("\n".join(sorted(set(keys))).encode()).hexdigest()[:16]


def where_made() -> dict[str, Any]:
    return {"code": code_version(), "commit": commit(), "machine": machine(), "cores": usable_cores()}


def record_json(
    experiment: str, cells: Sequence[tuple[str, Cell]], progress: RunProgress, *, quick: bool, reported: Sequence[Any]
) -> str:
    """Write the record of an experiment as JSON; `quick`: whether it is the quick set."""
    made = where_made()
    facts = {
        "experiment": experiment,
        "quick": quick,
        "fingerprint": fingerprint(key for key, _ in cells),
        "code": made.pop("code"),
        "agents": {name: agent_version(name) for name in sorted({c.policy for _, c in cells}) if is_agent(name)},
        **made,
        **asdict(progress),
        "groups": _groups(cell for _, cell in cells),
        "reported": [asdict(each) for each in reported],
    }
    return document_json("gpusched reproduction", provenance(None, **facts))


def recorded_facts(path: Path) -> dict[str, Any]:
    try:
        facts = parse_json(path.read_bytes())["provenance"]["facts"]
    except (OSError, ValueError, KeyError, TypeError):
        return {}
    return facts if isinstance(facts, dict) else {}


def check_same(out: str, file: Path, facts: Mapping[str, Any]) -> None:
    """Check that a document of results, if there is one, is of these facts: results of others are not replaced.

    Args:
        out: What `--out` was given.
        file: The document.
        facts: What its provenance says of the same command, such as the scenario, the policy and the seed.
    """
    former, own = recorded_facts(file), json.loads(json.dumps(finite(dict(facts))))
    before, now = (flat_settings({name: each.get(name) for name in own}) for each in (former, own))
    names = [name for name in {**before, **now} if not name.endswith((".description", "instance_file"))]
    changed = [name for name in names if before.get(name) != now.get(name)]
    if former and changed:
        name = changed[0]
        allowed = (
            f"another place: its results are of {name} = {before.get(name)}, these of {now.get(name)}; or remove it"
        )
        raise InputError("--out", out, allowed)


def _groups(cells: Iterable[Cell]) -> list[dict[str, Any]]:
    """List every group of cells with equal labels: its settings that are not the defaults, policies and seeds."""
    groups: dict[tuple[Any, ...], dict[str, Any]] = {}
    for cell in cells:
        group = groups.setdefault(cell.labels, {"labels": dict(cell.labels), "seeds": {}})
        if "settings" not in group:
            group["settings"] = _own_settings(cell.scenario)
            group["change"] = None if cell.change is None else {type(cell.change).__name__: asdict(cell.change)}
            group["measure"] = cell.measure.name
        group["seeds"].setdefault(cell.policy, []).append(cell.seed)
    for group in groups.values():
        group["seeds"] = {policy: _seeds_text(seeds) for policy, seeds in group["seeds"].items()}
    return list(groups.values())


def _own_settings(scenario: Scenario) -> dict[str, Any]:
    defaults = flat_settings(Scenario().model_dump(mode="json"))
    own = flat_settings(scenario.model_dump(mode="json", exclude=NO_TEXT))
    return {name: value for name, value in own.items() if name not in defaults or defaults[name] != value}


def flat_settings(settings: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in settings.items():
        if isinstance(value, dict):
            flat |= flat_settings(value, f"{prefix}{name}.")
        else:
            flat[prefix + name] = value
    return flat


def _seeds_text(seeds: list[int]) -> str:
    """Write seeds as options take them: `0-19`, or `0,3,5`."""
    if len(seeds) > 2 and seeds == list(range(seeds[0], seeds[0] + len(seeds))):
        return f"{seeds[0]}-{seeds[-1]}"
    return ",".join(map(str, seeds))
