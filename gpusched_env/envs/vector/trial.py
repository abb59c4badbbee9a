"""Whether helpers are worth having: beside busy processes they can make a step take longer."""

from __future__ import annotations

from statistics import median

TRIAL = 12  # steps that are timed with helpers, and as many without
BETWEEN = 600  # steps until the next trial


class Trial:
    """Says for every step whether helpers shall take part: as it was faster when that was last tried.

    Attributes:
        helped: Whether they take part in the next step.
    """

    def __init__(self) -> None:
        self.helped = True
        self._seconds: dict[bool, list[float]] = {True: [], False: []}
        self._left = 0

    @property
    def settled(self) -> bool:
        """Whether the next step is part of no trial, and helpers take part in it."""
        return self.helped and self._left > 1

    def took(self, seconds: float) -> None:
        """Note how long a step took [s]."""
        if self._left > 0:
            self._left -= 1
            self.helped = self.helped or self._left == 0  # a trial begins with them
            return
        self._seconds[self.helped].append(seconds)
        if len(self._seconds[self.helped]) < TRIAL:
            return
        if self.helped and not self._seconds[False]:
            self.helped = False
            return
        self.helped = median(self._seconds[True]) < median(self._seconds[False])
        self._seconds, self._left = {True: [], False: []}, BETWEEN
