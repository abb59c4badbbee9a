"""The figure of the leaderboard: how far every policy is from the best on every track."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpusched_experiments.leaderboard.standings import overall, track_results
from gpusched_experiments.report.chart import Chart, Panel, series

if TYPE_CHECKING:
    from gpusched_experiments.report.run import Runs

CELL_INCHES = (0.62, 0.3)
ROOM_INCHES = (1.7, 1.1)  # for the names


def ratio_chart(runs: Runs) -> Chart:
    """Draw the ratios as a map: a row for each policy, the best over all tracks first, and a column for each track."""
    results = track_results(runs)
    tracks = [result.name for result in results]
    rows = tuple(series(each.policy, ((s.track, s.to_best) for s in each.standings)) for each in overall(results))
    panel = Panel("", "track", "policy", rows, kind="map", categories=tuple(tracks))
    width, height = (
        cell * count + room
        for cell, count, room in zip(CELL_INCHES, (len(tracks), len(rows)), ROOM_INCHES, strict=True)
    )
    return Chart("Total cost over that of the track's best policy", ((panel,),), (width, height))
