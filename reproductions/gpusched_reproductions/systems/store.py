"""Parts of a system's reproduction, and what they came to, in files: a stopped command goes on where it was."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from gpusched_env.errors import InputError
from gpusched_env.files import write_atomically
from gpusched_env.provenance import provenance
from gpusched_experiments.report.code_version import code_version, commit, machine, systems_version
from gpusched_experiments.report.store import document_json

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from gpusched_experiments.report.chart import Chart


@dataclass(frozen=True, slots=True)
class Check:
    """One figure: what was published, what we get, and where ours should lie.

    Args:
        what: What is measured, with its unit.
        ours: Our figure.
        low: Lower end of the band, included; -inf where there is none.
        high: Upper end, included; inf where there is none.
        published: The published figure, or None where there is only a band.
        source: Where the published figure stands, or where the band comes from.

    Raises:
        InputError: The band is empty.
    """

    what: str
    ours: float
    low: float = -math.inf
    high: float = math.inf
    published: float | None = None
    source: str = ""

    def __post_init__(self) -> None:
        if not self.low <= self.high:
            raise InputError("check.low", self.low, f"a number <= check.high ({self.high})")

    @property
    def met(self) -> bool:
        """Say whether our figure lies in the band; NaN lies in none."""
        return self.low <= self.ours <= self.high

    @classmethod
    def around(cls, what: str, ours: float, published: float, tolerance: float, source: str = "") -> Check:
        """Make the check that our figure lies within `tolerance`, in its unit, of the published one."""
        return cls(what, ours, published - tolerance, published + tolerance, published, source)

    @classmethod
    def within(cls, what: str, ours: float, published: float, share: float, source: str = "") -> Check:
        """Make the check that our figure lies within `share` of the published one, 0.02 for 2 %."""
        return cls.around(what, ours, published, abs(published) * share, source)


@dataclass(frozen=True, slots=True)
class Findings:
    """What a part came to.

    Attributes:
        checks: Its figures.
        chart: Its figure, if it has one.
    """

    checks: tuple[Check, ...]
    chart: Chart | None = None


@dataclass(frozen=True, slots=True)
class Part:
    """One experiment on one system: it runs in a process of its own, so `run` must be a function of a module.

    Attributes:
        system: The system, as its page is called: `pipeswitch`, `antman`, `fikit`, `gavel`, `byteps`, `hived`.
        name: Name of the part, unique within the system, which its files take: letters, digits and hyphens.
        title: What it shows, in a line.
        run: Runs it; told whether a quick version is wanted, of some tens of seconds at most.
        needs: Public data that it needs, a file or folder; without it the part is left out, and said to be.
    """

    system: str
    name: str
    title: str
    run: Callable[[bool], Findings]
    needs: Path | None = None


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
