"""The public data that some experiments need and the project does not hold: where from, which content, what is here."""

from __future__ import annotations

import csv
import hashlib
from functools import cache
from http.client import HTTPException
from pathlib import Path
from typing import NamedTuple
from urllib.request import urlopen

from gpusched_env.errors import InputError
from gpusched_env.files import write_atomically

DATA = Path("../shared/data")
"""The folder that has a folder for each source."""
SOURCES = {
    "gpuspb": "made with github.com/ai-sprint-eu-project/GPUScheduler at 0f0ccf6 (Apache-2.0), a table reference/KIND-"
    "NODES-SEED.csv for each instance and the program's answers in reference/results.csv",
    "hived": "cases and answers of the tests and the program of github.com/microsoft/hivedscheduler at 66f26ac (MIT)",
    "gavel": "scheduler/*_throughputs.json of github.com/stanford-futuredata/gavel at c4fa400 (MIT)",
    "gavel_policies": "answers of scheduler/policies of github.com/stanford-futuredata/gavel at c4fa400 (MIT)",
    "gaia_reference": "github.com/umassos/GAIA at 62a5efc (MIT; its trace CC BY 4.0), with what its program answers",
    "muri": "simulator/trace-data/trace*.csv of github.com/pkusys/Muri at 4e69a78 (Apache-2.0)",
    "muri_antman": "what simulator/run_sim.py of github.com/pkusys/Muri at 4e69a78 (Apache-2.0) answers; trace3.csv",
    "orion": "benchmarking/model_kernels of github.com/eth-easl/orion at aded65d (MIT), with the ending .csv",
    "philly": "pollux/pollux_simulator/traces/philly.csv of github.com/pkusys/ElasticFlow at 04a0109 (data CC BY 4.0)",
}
"""By folder of `DATA`: what it holds, from which address, commit and licence."""
NEEDED_BY = {
    "gpuspb": "reproduce conformance, conform gpuspb",
    "hived": "reproduce hived, conform hived",
    "gavel": "reproduce fikit",
    "gavel_policies": "conform gavel",
    "gaia_reference": "conform gaia",
    "muri": "reproduce antman",
    "muri_antman": "conform muri",
    "orion": "reproduce fikit",
    "philly": "reproduce forecasts, reproduce hived",
}
"""The commands that read each folder."""
WHOLE, MISSING, OTHER = "whole", "missing", "other content"
_MOST = 100 * 2**20  # bytes of a file
_SECONDS = 60.0


class DataFile(NamedTuple):
    """A file of public data.

    Attributes:
        folder: The folder in `DATA`.
        file: Its path there.
        sha256: Of its content.
        address: Where it can be fetched unchanged; empty: nowhere, since a program made it from other files.
    """

    folder: str
    file: str
    sha256: str
    address: str

    def path(self, data: Path = DATA) -> Path:
        return data / self.folder / self.file

    def state(self, data: Path = DATA) -> str:
        """Return `WHOLE`, `MISSING` or `OTHER`: what is at its place in the folder of all data."""
        path = self.path(data)
        if not path.is_file():
            return MISSING
        return WHOLE if hashlib.sha256(path.read_bytes()).hexdigest() == self.sha256 else OTHER

    def fetch(self, data: Path = DATA) -> None:
        """Download it to its place, if what comes has its content.

        Raises:
            InputError: It has no address, the address cannot be read, or what comes is something else.
        """
        if not self.address:
            raise InputError(f"{self.folder}/{self.file}", "", "a file that can be fetched")
        try:
            with urlopen(self.address, timeout=_SECONDS) as answer:  # noqa: S310 - an address of the table
                content: bytes = answer.read(_MOST)
        except (HTTPException, OSError) as error:
            raise InputError(self.address, str(error), "an address that can be read") from error
        found = hashlib.sha256(content).hexdigest()
        if found != self.sha256:
            raise InputError(self.address, found, f"content with the SHA-256 {self.sha256}")
        path = self.path(data)
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, content)


@cache
def data_files() -> tuple[DataFile, ...]:
    """Return all files, by folder."""
    with Path(__file__).with_name("data_files.csv").open(encoding="utf-8", newline="") as file:
        return tuple(DataFile(**row) for row in csv.DictReader(file))


def where_from(path: Path) -> str:
    """Return where the data of a file or folder come from, as a phrase in brackets; empty if it is not known."""
    name = next((part for part in reversed(path.parts) if part in SOURCES), None)
    return "" if name is None else f" (source: {SOURCES[name]})"
