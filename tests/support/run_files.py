"""Files of runs and instances: written and audited, saved and loaded again, changed."""

import csv
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from gpusched_env import Instance, Result
from gpusched_env.audit import Difference, audit
from gpusched_env.formats import load_instance, save_instance, write_run


def audited(result: Result, folder: Path) -> list[Difference]:
    write_run(result, folder)
    return audit(folder)


def loaded_again(instance: Instance, folder: Path) -> Instance:
    """Save an instance as `instance.json` in a folder, and load it again."""
    save_instance(instance, folder / "instance.json")
    return load_instance(folder / "instance.json")


@contextmanager
def edited(path: Path) -> Iterator[Any]:
    document = json.loads(path.read_text(encoding="utf-8"))
    yield document
    path.write_text(json.dumps(document), encoding="utf-8")


@contextmanager
def csv_rows(path: Path) -> Iterator[list[dict[str, str]]]:
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    columns = list(rows[0])
    yield rows
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, columns)
        writer.writeheader()
        writer.writerows(rows)
