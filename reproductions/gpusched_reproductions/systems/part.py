"""What is shown of a system: figures of ours beside published ones, each with the band in which it should lie."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpusched_env.errors import InputError

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
