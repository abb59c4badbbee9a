"""Muri's traces: completion and makespan with AntMan beside what its authors simulated.

Files: trace1.csv to trace4.csv, and the same jobs submitted at once, trace1_pr.csv to trace4_pr.csv. Ratios agree
within 20 %: mean completion with AntMan over that with Tiresias, and makespan with AntMan over that with SRTF, on 64
GPUs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpusched_env.errors import InputError
from gpusched_reproductions.conform.answer import Answer
from gpusched_reproductions.systems.muri.ratios import COMPLETION, MAKESPAN, TOLERANCE, ratios
from gpusched_reproductions.systems.muri.traces import read_trace

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

AT_ONCE = "_pr"
"""How the name of a trace ends whose jobs are all submitted at once."""


def answers(paths: Sequence[Path]) -> Iterator[Answer]:
    for path in (file for given in paths for file in _files(given)):
        name = _name(path)
        own = ratios(read_trace(path, at_once=name.endswith("'")))
        for what, ours, published in (
            ("mean completion with AntMan over Tiresias'", own.completion, COMPLETION[name]),
            ("makespan with AntMan over SRTF's", own.makespan, MAKESPAN[name]),
        ):
            agrees = abs(ours / published - 1.0) <= TOLERANCE
            yield Answer(
                f"{path.stem}: {what}", f"{published:.3f}", f"{ours:.3f} ({ours / published - 1.0:+.0%})", agrees
            )


def _name(path: Path) -> str:
    stem = path.stem.removeprefix("trace")
    name = stem.removesuffix(AT_ONCE) + ("'" if stem.endswith(AT_ONCE) else "")
    if name not in COMPLETION or path.suffix != ".csv":
        raise InputError("files", str(path), "trace1.csv to trace4.csv, or with _pr before the ending")
    return name


def _files(given: Path) -> list[Path]:
    if given.is_file():
        return [given]
    found = sorted(given.glob("trace*.csv"))
    if not found:
        raise InputError("files", str(given), "a folder with trace1.csv to trace4.csv")
    return found
