"""Seconds per epoch of an application on every GPU type and number of GPUs."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from applications.curve import speed_at
from applications.point import MAX_GPUS, Point
from applications.power import GPUS_PER_NODE
from applications.screening import screen

if TYPE_CHECKING:
    from pathlib import Path

    from applications.recipes import Recipe


@dataclass(frozen=True, slots=True)
class ProfileRow:
    """One line of `applications.csv`."""

    application: str
    gpu_type: str
    gpus: int
    seconds_per_epoch: float
    method: str
    source: str


class Profile:
    """The usable rows of one application, and what follows for every GPU type.

    Args:
        recipe: Which public rows to use.
        factors: Single-GPU speed against a V100, by GPU type.
        data: Folder of the public measurements.
    """

    def __init__(self, recipe: Recipe, factors: dict[str, float], data: Path) -> None:
        self._recipe, self._factors = recipe, factors
        self._rows = {gpu: self._usable(row.read(data)) for gpu, row in recipe.rows.items()}
        measured = {gpu: points for gpu, points in self._rows.items() if len(points) > 1}
        self._shapes = measured | {gpu: screen(row.read(data))[0] for gpu, row in recipe.shapes.items()}

    @staticmethod
    def _usable(points: list[Point]) -> list[Point]:
        return [point for point in screen(points)[0] if point.gpus <= MAX_GPUS]

    def rows(self) -> list[ProfileRow]:
        """Return a line for every GPU type and 1 to 8 GPUs."""
        return [self._row(gpu, gpus) for gpu in self._factors for gpus in range(1, MAX_GPUS + 1)]

    def _row(self, gpu: str, gpus: int) -> ProfileRow:
        speed, method, source = self._speed(gpu, gpus)
        return ProfileRow(self._recipe.name, gpu, gpus, self._recipe.samples_per_epoch / speed, method, source)

    def _speed(self, gpu: str, gpus: int) -> tuple[float, str, str]:
        points = self._rows.get(gpu, [])
        exact = next((point for point in points if point.gpus == gpus), None)
        if exact is not None:
            return exact.samples_per_s, "measured", exact.source + self._two_nodes(gpu, gpus)
        if len(points) > 1:
            return speed_at(points, gpus), "interpolated", self._neighbours(points, gpus) + self._two_nodes(gpu, gpus)
        first, note = (points[0].samples_per_s, points[0].source) if points else self._first_from_nearest(gpu)
        if gpus == 1:
            return first, "scaled", note
        speed_up, shape_note = self._speed_up(gpu, gpus)
        return first * speed_up, "scaled", f"{note}; {shape_note}"

    def _two_nodes(self, gpu: str, gpus: int) -> str:
        return f" (over two nodes of {GPUS_PER_NODE[gpu]})" if gpus > GPUS_PER_NODE[gpu] else ""

    @staticmethod
    def _neighbours(points: list[Point], gpus: int) -> str:
        if gpus > points[-1].gpus:
            return f"log-log line through {points[-2].gpus} and {points[-1].gpus} GPUs continued: {points[-1].source}"
        low = max(p.gpus for p in points if p.gpus < gpus)
        high = min(p.gpus for p in points if p.gpus > gpus)
        below = next(p for p in points if p.gpus == low)
        return f"log-log line between {low} and {high} GPUs: {below.source} and its row for {high}"

    def _nearest(self, gpu: str, among: dict[str, list[Point]]) -> str:
        return min(among, key=lambda other: (abs(math.log(self._factors[other] / self._factors[gpu])), other))

    def _first_from_nearest(self, gpu: str) -> tuple[float, str]:
        donor = self._nearest(gpu, self._rows)
        factor = self._factors[gpu] / self._factors[donor]
        point = self._rows[donor][0]
        return point.samples_per_s * factor, f"{factor:.4f} x speed on {donor}: {point.source}"

    def _speed_up(self, gpu: str, gpus: int) -> tuple[float, str]:
        """Return a borrowed speed-up, never above linear: another type's superlinear point proves nothing here."""
        donor = gpu if gpu in self._shapes else self._nearest(gpu, self._shapes)
        points = [point for point in self._shapes[donor] if point.gpus <= GPUS_PER_NODE[donor]]
        speed_up = min(speed_at(points, gpus) / points[0].samples_per_s, float(gpus))
        note = (
            f"speed-up {speed_up:.4f} of {donor} within one node: {points[0].source} and its rows to {points[-1].gpus}"
        )
        return speed_up, note + (" (network between two nodes not counted)" if gpus > GPUS_PER_NODE[gpu] else "")
