"""The folder of a small leaderboard, whose figures can be read off its costs."""

from pathlib import Path

from gpusched_env.files import write_atomically
from gpusched_env.provenance import provenance
from gpusched_env.workload import load_track
from gpusched_experiments.leaderboard import leaderboard
from gpusched_experiments.report.experiment_run import write_tables
from gpusched_experiments.report.run import Runs
from gpusched_experiments.report.store import document_json

COSTS = {
    "busy": {"bound": 8, "edf": 20, "sts": 10, "mine": 15, "fifo": 100},
    "full": {"bound": 8, "edf": 10, "sts": 12, "mine": 11, "fifo": 16},
}
"""What a run costs by track and policy [€], about: it differs by seed."""


def standings_folder(folder: Path, costs: dict[str, dict[str, int]] = COSTS) -> Path:
    same = {"energy_eur": 1.0, "tardiness_eur": 2.0, "late_jobs": 1, "jobs": 9}
    rows = (
        (
            {"track": track, "row": "bound" if policy == "bound" else "run"},
            "edf" if policy == "bound" else policy, seed, same | {"total_eur": cost + 0.1 * (seed * cost % 7)},
        )
        for track, policies in costs.items() for policy, cost in policies.items() for seed in range(5)
    )  # fmt: skip
    write_tables(leaderboard([load_track(track) for track in costs]), folder, Runs.of(rows), None)
    made = provenance("gpusched", experiment="leaderboard")
    write_atomically(folder / "record.json", document_json("gpusched reproduction", made))
    return folder
