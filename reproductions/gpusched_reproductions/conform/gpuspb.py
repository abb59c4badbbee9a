"""Instances of the published generator: energy of our policies beside the answers of the published program.

FIFO, EDF, PS, G and EDF-mean agree within 2 % of the energy; STS solves its single-job problem exactly here, and agrees
where it costs at most 2 % more than the published STS. Files: NAME.csv, an instance, with results.csv beside it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpusched_baselines import make_policy
from gpusched_env import simulate
from gpusched_env.errors import InputError
from gpusched_reproductions.conform.answer import Answer
from gpusched_reproductions.published.conformance import METHODS
from gpusched_reproductions.published.reference_instances import read_answers, read_instance

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

RESULTS = "results.csv"
TOLERANCE = 0.02


def answers(paths: Sequence[Path]) -> Iterator[Answer]:
    """Yield the energy of each policy on each instance, ours and theirs."""
    for path in (file for given in paths for file in _files(given)):
        there = path.parent / RESULTS
        if not there.is_file():
            raise InputError("files", str(path), f"an instance with {RESULTS} beside it")
        instance, published = read_instance(path), read_answers(there)
        for policy, method in METHODS.items():
            if (path.stem, method) in published:
                theirs = published[path.stem, method].energy_eur
                ours = simulate(instance, make_policy(policy)).energy_eur
                deviation = ours / theirs - 1.0
                agrees = deviation <= TOLERANCE if method == "STS" else abs(deviation) <= TOLERANCE
                case = f"{path.stem}, {policy} (published as {method}): energy [EUR]"
                yield Answer(case, f"{theirs:.4f}", f"{ours:.4f} ({deviation:+.2%})", agrees)


def _files(given: Path) -> list[Path]:
    """List the instances of a folder, or the one file that was given."""
    if given.is_file():
        return [given]
    found = sorted(path for path in given.rglob("*-*-*.csv") if (path.parent / RESULTS).is_file())
    if not found:
        raise InputError("files", str(given), f"a folder with instances KIND-NODES-SEED.csv and {RESULTS}")
    return found
