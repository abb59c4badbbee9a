"""Outages as Slurm's database has them: what `sacctmgr show event -P` prints."""

from __future__ import annotations

import csv
import math
import re
from collections import Counter
from datetime import datetime
from typing import TYPE_CHECKING

from gpusched_env.errors import InputError
from gpusched_env.mechanisms.failures.model import Outage

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

COLUMNS = ("NodeName", "TimeStart", "TimeEnd", "State")
NO_END = ("", "Unknown", "None")
ALLOWED = "names of nodes such as gpu01 or gpu[01-16,20]"
MOST = 100_000  # nodes of a list
NEVER_S = 100.0 * 365.0 * 86400.0  # when a node that is drained without an end is there again


def is_slurm(path: Path) -> bool:
    """Return whether the first line of a file has columns with `|` between them, as Slurm prints them."""
    with path.open(encoding="utf-8-sig", errors="replace", newline="") as file:
        return "|" in file.readline()


def read_events(path: Path, nodes: Sequence[str], begin: str) -> list[Outage]:
    """Read the times in which nodes were not usable; events of other nodes and of the whole cluster do not count.

    A node that is DOWN stops its jobs. In any other state, such as DRAIN, it only takes no new ones.

    Args:
        path: What `sacctmgr show event format=NodeName,TimeStart,TimeEnd,State -P` printed, with its header.
        nodes: Names of the nodes of the instance, in their order; also lists such as `gpu[01-16]`.
        begin: The time of 0 s, as in the file: `2026-01-31T12:00:00`.

    Raises:
        InputError: A value has the wrong form, a column is missing, two events of a node overlap, or the file has no
            event of these nodes.
    """
    names = {name: n for n, name in enumerate(expanded(nodes))}
    start = _time("failures.outages_begin", begin)
    with path.open(encoding="utf-8-sig", errors="replace", newline="") as file:
        table = csv.DictReader(file, delimiter="|", quoting=csv.QUOTE_NONE)
        if not set(COLUMNS) <= set(table.fieldnames or ()):
            raise InputError(str(path), table.fieldnames, f"the columns {', '.join(COLUMNS)}")
        rows = [row for row in table if row["NodeName"] in names]
    if not rows:
        raise InputError("failures.outages_nodes", list(nodes), f"names of nodes that have events in {path}")
    found, usable_s = [], dict.fromkeys(names, -math.inf)
    for row in sorted(rows, key=_begins_then_ends):
        name, state = row["NodeName"], row["State"]
        since = (_time("TimeStart", row["TimeStart"]) - start).total_seconds()
        until = math.inf if row["TimeEnd"] in NO_END else (_time("TimeEnd", row["TimeEnd"]) - start).total_seconds()
        if not state:
            raise InputError("State", state, f"a state of {name} at {row['TimeStart']} in {path}")
        if since < usable_s[name] or until < since:
            raise InputError("TimeStart", row["TimeStart"], f"times after the last event of {name} in {path}")
        usable_s[name] = until
        begins = max(0.0, since)
        if until > 0.0 and "DOWN" in re.split(r"\W+", state.upper()):
            found.append(Outage(names[name], begins, begins, until))
        elif until > 0.0:
            found.append(Outage(names[name], begins, min(until, NEVER_S), min(until, NEVER_S)))
    return found


def _begins_then_ends(row: Mapping[str, str | None]) -> tuple[str, bool, str]:
    return row["TimeStart"] or "", row["TimeEnd"] in NO_END, row["TimeEnd"] or ""


def expanded(nodes: Sequence[str]) -> list[str]:
    """Return the names of nodes, each once, in their order, where `gpu[01-03,7]` stands for four.

    Raises:
        InputError: A list has the wrong form, or a name stands twice.
    """
    names = [name for text in nodes for name in _of_list(text)]
    twice = next((name for name, count in Counter(names).items() if count > 1), None)
    if twice is not None:
        raise InputError("failures.outages_nodes", twice, "each name once")
    return names


def _of_list(text: str) -> Iterator[str]:
    match = re.fullmatch(r"([^\[\],]*)(?:\[([0-9,-]+)\])?([^\[\],]*)", text)
    if match is None:
        raise InputError("failures.outages_nodes", text, ALLOWED)
    for part in (match[2] or "").split(","):
        first, _, last = part.partition("-")
        if part and not (first.isdigit() and (last or first).isdigit() and int(first) <= int(last or first)):
            raise InputError("failures.outages_nodes", text, ALLOWED)
        numbers = range(int(first), int(last or first) + 1) if part else range(0)
        if len(numbers) > MOST:
            raise InputError("failures.outages_nodes", text, f"at most {MOST} nodes in a list")
        yield from (f"{match[1]}{n:0{len(first)}d}{match[3]}" for n in numbers)
    if match[2] is None:
        yield text


def _time(field: str, text: str | None) -> datetime:
    try:
        made = datetime.fromisoformat(text or "")
    except ValueError as error:
        raise InputError(field, text, "a time such as 2026-01-31T12:00:00") from error
    if made.tzinfo is not None:
        raise InputError(field, text, "a time such as 2026-01-31T12:00:00, without a time zone")
    return made
