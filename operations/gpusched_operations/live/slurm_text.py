"""How Slurm writes sets of nodes, of tasks and of GPUs, and numbers that may be unlimited."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from gpusched_env.errors import InputError

MOST_OF_A_LIST = 100_000
LARGEST = 2.0**65
"""Slurm has numbers of 64 bits."""
_RANGE = re.compile(r"(\d+)(?:-(\d+)(?::(\d+))?)?")
_BRACKETS = re.compile(r"\[([^\[\]]*)\]")


def split_outside(text: str, opening: str = "[", closing: str = "]") -> list[str]:
    """Split a text at the commas that stand outside brackets; empty parts are left out."""
    parts, depth, part = [], 0, ""
    for letter in text:
        depth += (letter == opening) - (letter == closing)
        if letter == "," and depth == 0:
            parts.append(part)
            part = ""
        else:
            part += letter
    return [each.strip() for each in (*parts, part) if each.strip()]


def numbers_of(text: str, field: str = "numbers") -> list[str]:
    """Return the numbers of a set such as `0-2,007,10-20:5`, as they are written; `...` of a cut set is left out."""
    found: list[str] = []
    for part in split_outside(text):
        if part == "...":
            continue
        match = _RANGE.fullmatch(part)
        if match is None:
            raise InputError(field, text, "a set such as 0-2,7,10-20:5")
        first, last, step = int(match[1]), int(match[2] or match[1]), int(match[3] or 1)
        if last < first or step < 1 or (last - first) // step + len(found) >= MOST_OF_A_LIST:
            raise InputError(field, text, f"rising ranges with at most {MOST_OF_A_LIST:,} numbers")
        found += [str(number).zfill(len(match[1])) for number in range(first, last + 1, step)]
    return found


def hosts_of(text: str) -> tuple[str, ...]:
    """Return the names of a set of nodes such as `a[1-2,05],b7`, in the order in which it names them.

    Raises:
        InputError: It is no such set, or has more than `MOST_OF_A_LIST` nodes.
    """
    if text in ("", "(null)", "None"):
        return ()
    found: list[str] = []
    for part in split_outside(text):
        names = [""]
        place = 0
        for match in _BRACKETS.finditer(part):
            numbers = numbers_of(match[1], "nodes")
            if len(names) * len(numbers) + len(found) > MOST_OF_A_LIST:
                raise InputError("nodes", text, f"at most {MOST_OF_A_LIST:,} nodes")
            names = [f"{name}{part[place : match.start()]}{number}" for name in names for number in numbers]
            place = match.end()
        rest = part[place:]
        if "[" in rest or "]" in rest:
            raise InputError("nodes", text, "a set of nodes such as a[1-2,5],b7")
        found += [name + rest for name in names]
    return tuple(found)


class GresGpus(NamedTuple):
    """GPUs in a text of Slurm.

    Attributes:
        gpu_type: Their type; None: not told.
        many: How many.
        numbers: Their numbers on the node; empty: not told.
    """

    gpu_type: str | None
    many: int
    numbers: tuple[int, ...] = ()


def gpus_of(text: str) -> tuple[GresGpus, ...]:
    """Return the GPUs of a text, by type; those of other resources are left out.

    It may be what a node has (`gpu:v100:4(S:0-1)`), what a job asks for (`gres:gpu:v100:2`, `gres/gpu:v100=2`, `gpu`)
    or holds (`gpu:v100:2(IDX:0-1)`), or all resources of a job (`cpu=4,gres/gpu=2,gres/gpu:v100=2`). Where some are
    told by type, a number without one is their sum.
    """
    found: list[GresGpus] = []
    for part in split_outside(text, "(", ")"):
        whole, _, marks = part.partition("(")
        kind, *rest = re.split(r"[:=/]", re.sub(r"^gres[:/]", "", whole))
        if kind != "gpu":
            continue
        count = _count(rest.pop(), text) if rest and re.match(r"\d+[kKmM]?$", rest[-1]) else 1
        index = re.search(r"IDX:([\d,-]+)", marks)
        numbers = tuple(int(number) for number in numbers_of(index[1], "gres_detail")) if index else ()
        found.append(GresGpus(":".join(rest) or None, count, numbers))
    typed = [gpus for gpus in found if gpus.gpu_type is not None]
    return tuple(typed or found)


def _count(text: str, whole: str) -> int:
    number = int(text.rstrip("kKmM")) * {"k": 1024, "m": 1024**2}.get(text[-1].lower(), 1)
    if number > MOST_OF_A_LIST:
        raise InputError("gres", whole, f"at most {MOST_OF_A_LIST:,} GPUs")
    return number


def number_of(value: Any, field: str) -> float | None:
    """Return a number as any version writes it: 4, or {"set": true, "infinite": false, "number": 4}.

    None stands for one that is not set or unlimited.
    """
    if isinstance(value, dict):
        value = value.get("number") if value.get("set", True) and not value.get("infinite", False) else None
    if value is None or value in ("", "UNLIMITED", "INFINITE"):
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < LARGEST:
        raise InputError(field, value, "a number")
    return float(value)
