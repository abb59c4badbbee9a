"""The parts of systems, and their figures: what was published, what we get, and where ours should lie."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, get_args

from gpusched_env.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from gpusched_experiments.report.chart import Chart

Kind = Literal["prediction", "fitted", "input", "own formula"]
"""What a figure can tell of a model.

- `prediction`: a published figure that nothing was fitted to; it could have come out otherwise. Only these are counted.
- `fitted`: a published figure to which a parameter, a subset or the band itself was chosen.
- `input`: what was put in, or what is true by construction.
- `own formula`: compared with a formula or a program of ours, or with what was published of other rules.
"""
KINDS: tuple[str, ...] = get_args(Kind)


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
        kind: What the figure can tell; a prediction has a band.

    Raises:
        InputError: The band is empty, there is no such kind, or a prediction has no band.
    """

    what: str
    ours: float
    low: float = -math.inf
    high: float = math.inf
    published: float | None = None
    source: str = ""
    kind: Kind = "own formula"

    def __post_init__(self) -> None:
        if not self.low <= self.high:
            raise InputError("check.low", self.low, f"a number <= check.high ({self.high})")
        if self.kind not in KINDS:
            raise InputError("check.kind", self.kind, f"one of {', '.join(KINDS)}")
        if self.kind == "prediction" and not self.banded:
            raise InputError("check.low and check.high", (self.low, self.high), "a finite end for a prediction")

    @property
    def banded(self) -> bool:
        return math.isfinite(self.low) or math.isfinite(self.high)

    @property
    def met(self) -> bool:
        return self.low <= self.ours <= self.high

    @classmethod
    def around(
        cls, what: str, ours: float, published: float, tolerance: float, source: str = "", kind: Kind = "prediction"
    ) -> Check:
        """Make the check that our figure lies within `tolerance`, in its unit, of the published one."""
        return cls(what, ours, published - tolerance, published + tolerance, published, source, kind)

    @classmethod
    def within(
        cls, what: str, ours: float, published: float, share: float, source: str = "", kind: Kind = "prediction"
    ) -> Check:
        """Make the check that our figure lies within `share` of the published one, 0.02 for 2 %."""
        return cls.around(what, ours, published, abs(published) * share, source, kind)


@dataclass(frozen=True, slots=True)
class Measured:
    """What a part came to: its figures, and a chart, if it has one."""

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
    run: Callable[[bool], Measured]
    needs: Path | None = None
