"""What parts came to, in files, so that a command that was stopped goes on where it was."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from gpusched_env.files import write_atomically
from gpusched_env.provenance import provenance
from gpusched_experiments.report.code_version import code_version, commit, machine, systems_version
from gpusched_experiments.report.results_file import document_json
from gpusched_reproductions.systems.part import Check

if TYPE_CHECKING:
    from pathlib import Path

    from gpusched_reproductions.systems.part import Part


@dataclass(frozen=True, slots=True)
class Shown:
    """What a part came to.

    Attributes:
        part: The part.
        checks: Its figures.
        run_s: Seconds that it took.
    """

    part: Part
    checks: tuple[Check, ...]
    run_s: float


def file_of(part: Part) -> str:
    """Name the files of a part, without their ending."""
    return f"{part.system}-{part.name}"


def store(folder: Path, shown: Shown, *, quick: bool) -> None:
    """Write what a part came to, and how it was made."""
    facts = {**_key(shown.part, quick), "commit": commit(), "machine": machine(), "run_s": round(shown.run_s, 3)}
    checks = [asdict(check) | {"met": check.met} for check in shown.checks]
    text = document_json("gpusched system", provenance(None, **facts), title=shown.part.title, checks=checks)
    write_atomically(folder / f"{file_of(shown.part)}.json", text)


def stored(folder: Path, part: Part, *, quick: bool) -> Shown | None:
    """Read what a part came to; None if it has not run, or other code or settings made it."""
    try:
        document = json.loads((folder / f"{file_of(part)}.json").read_text(encoding="utf-8"))
        facts = document["provenance"]["facts"]
        if {name: facts.get(name) for name in _key(part, quick)} != _key(part, quick):
            return None
        return Shown(part, tuple(_check(entry) for entry in document["checks"]), float(facts["run_s"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _key(part: Part, quick: bool) -> dict[str, Any]:
    code = f"{code_version()}-{systems_version()}"
    return {"system": part.system, "part": part.name, "quick": quick, "code": code}


def _check(entry: dict[str, Any]) -> Check:
    """Make the check that was written; what JSON has no number for is null there."""
    ends = {"low": -math.inf, "high": math.inf, "ours": math.nan}
    values: dict[str, Any] = {name: value for name, value in entry.items() if name != "met"}
    values |= {name: end for name, end in ends.items() if values[name] is None}
    return Check(**values)
