"""What the sources reported: to stand beside our figures, never to be aimed at."""

from __future__ import annotations

from dataclasses import dataclass

THESIS = "L. Marchi, Politecnico di Milano, 2022"
PAPER = "F. Filippini et al., IEEE Trans. Cloud Computing 12(1), 2024"


@dataclass(frozen=True, slots=True)
class Reported:
    """One result as its source reported it.

    Attributes:
        what: What was measured.
        figure: The figure.
        source: Where it stands.
    """

    what: str
    figure: str
    source: str
