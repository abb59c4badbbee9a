"""The file `finished.jsonl`: every finished run of a comparison, stored the moment it is finished."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpusched_env.errors import InputError
from gpusched_env.files import one_error, write_atomically
from gpusched_experiments.report import fared, run_summary
from gpusched_experiments.report.fared import NAN, GroupFared
from gpusched_experiments.report.run_summary import RunSummary
from gpusched_experiments.report.store import finite

if TYPE_CHECKING:
    from collections.abc import Mapping

NAME = "finished.jsonl"


def key_of(**definition: Any) -> str:
    """Give what identifies a run: equal keys mean equal definitions, made by the same code."""
    text = json.dumps(definition, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8")).hexdigest()[:20]


@cache
def measured_by() -> str:
    """Give a fingerprint of what makes numbers of a run: runs that other code measured are measured again."""
    sources = (Path(module.__file__ or "").read_bytes() for module in (fared, run_summary))
    return hashlib.sha256(b"".join(sources)).hexdigest()[:12]


class Journal:
    """Finished runs by key, in a file that grows by a line a run.

    A line is written in one piece, so whenever a command is killed the file holds every finished run, and at most its
    last line is incomplete, which is passed over.

    Args:
        path: The file; it need not exist.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.runs = _read(path)
        self._whole = not path.exists() or path.read_bytes()[-1:] in {b"", b"\n"}

    def add(self, key: str, run: RunSummary) -> None:
        """Add a finished run.

        Raises:
            InputError: It cannot be written.
        """
        self.runs[key] = run
        line = _line(key, run)
        with one_error(self.path):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self.path.open("ab", buffering=0) as file:
                data = (line if self._whole else "\n" + line).encode("ascii")
                if file.write(data) < len(data):
                    raise InputError("path", str(self.path), "a file on a disk with room")
        self._whole = True

    def keep(self, keys: Mapping[str, object] | set[str]) -> None:
        """Write the file anew with these runs alone."""
        self.runs = {key: run for key, run in self.runs.items() if key in keys}
        write_atomically(self.path, "".join(_line(key, run) for key, run in self.runs.items()))


def _line(key: str, run: RunSummary) -> str:
    values = {"key": key, **run.as_dict(), "groups": [asdict(group) for group in run.groups]}
    return json.dumps(finite(values), allow_nan=False) + "\n"


def _read(path: Path) -> dict[str, RunSummary]:
    """Read the runs that were finished whole; what is no such line is passed over, and run again."""
    try:
        lines = path.read_bytes().split(b"\n")
    except OSError:
        return {}
    found = {}
    for line in lines:
        try:
            values = json.loads(line)
            groups = tuple(_group(each) for each in values["groups"])
            found[values["key"]] = RunSummary.from_dict(values, groups)
        except (ValueError, KeyError, TypeError):
            continue
    return found


def _group(values: Mapping[str, Any]) -> GroupFared:
    known: dict[str, Any] = {name: NAN if value is None else value for name, value in values.items()}
    return GroupFared(**known)
