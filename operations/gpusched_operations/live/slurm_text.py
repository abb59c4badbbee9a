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
SHARES = ("shard", "mps")
KINDS = ("gpu", *SHARES)
_NUMBER = re.compile(r"\d+[kmgtp]?", re.IGNORECASE)
_TYPE = re.compile(r"(?=.*[A-Za-z_])\w[\w.+\-]*")
_OF_EACH = re.compile(r"(\d+)/\d+")
"""How many shares of each GPU are held, and how many it has."""


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
        many: How many; of `shard` and `mps`, how many shares of GPUs.
        numbers: Their numbers on the node; empty: not told.
        kind: `gpu`, or `shard` or `mps`: shares of GPUs.
    """

    gpu_type: str | None
    many: int
    numbers: tuple[int, ...] = ()
    kind: str = "gpu"


def gpus_of(text: str) -> tuple[GresGpus, ...]:
    """Return the GPUs of a text, by type, slices of GPUs among them; shares and other resources are left out.

    It may be what a node has (`gpu:v100:4(S:0-1)`), what a job asks for (`gres:gpu:v100:2`, `gres/gpu:v100=2`, `gpu`)
    or holds (`gpu:v100:2(IDX:0-1)`), or all resources of a job (`cpu=4,gres/gpu=2,gres/gpu:v100=2`). Where some are
    told by type, a number without one is their sum, and what it has more has no type.

    Raises:
        InputError: A number cannot be read.
    """
    found = [gres for gres in gres_of(text) if gres.kind == "gpu"]
    typed = [gpus for gpus in found if gpus.gpu_type is not None]
    untyped = [gpus for gpus in found if gpus.gpu_type is None]
    more = sum(gpus.many for gpus in untyped) - sum(gpus.many for gpus in typed)
    return tuple([*typed, GresGpus(None, more)] if typed and more > 0 else typed or untyped)


def gres_of(text: str) -> list[GresGpus]:
    """Return GPUs, slices and shares of GPUs as a text names them, one by one; other resources are left out.

    Raises:
        InputError: A number cannot be read.
    """
    found = []
    for part in split_outside(text.replace("(null)", ""), "(", ")"):
        whole, _, marks = part.partition("(")
        name, equals, value = re.sub(r"^gres[:/]", "", whole).partition("=")
        kind, *words = re.split(r"[:/]", name)
        if kind not in KINDS:
            continue
        words = [word for word in words if word not in ("", "no_consume")]
        if not equals:
            value = words.pop() if words and _NUMBER.fullmatch(words[-1]) else "1"
        if not _NUMBER.fullmatch(value) or len(words) > 1 or not all(map(_TYPE.fullmatch, words)):
            raise InputError("gres", text, "a whole number of GPUs, and one type, such as gpu:a100:4")
        index, used = re.search(r"IDX:([\d,-]+)", marks), _OF_EACH.findall(marks)
        numbers = tuple(int(number) for number in numbers_of(index[1], "gres_detail")) if index else ()
        if kind in SHARES and not index:
            numbers = tuple(number for number, share in enumerate(used) if int(share) > 0)
        found.append(GresGpus(words[0] if words else None, _count(value, text), numbers, kind))
    return found


def other_gres(text: str) -> str:
    """Return the resources of a text that are neither GPUs nor parts of them, as it names them."""
    parts = (re.sub(r"^gres[:/]", "", part) for part in split_outside(text, "(", ")") if re.match(r"gres[:/]", part))
    return ", ".join(part for part in parts if re.split(r"[:/=]", part)[0] not in KINDS)


def _count(text: str, whole: str) -> int:
    number = int(text.rstrip("kmgtpKMGTP")) * 1024 ** " kmgtp".find(text[-1].lower() if text[-1].isalpha() else " ")
    if number > MOST_OF_A_LIST:
        raise InputError("gres", whole, f"at most {MOST_OF_A_LIST:,} GPUs")
    return number


def number_of(value: Any, field: str) -> float | None:
    """Return a number as any version writes it: 4, or {"set": true, "infinite": false, "number": 4}.

    None stands for one that is not set or unlimited.
    """
    if isinstance(value, dict):
        value = value.get("number") if value.get("set", True) and not value.get("infinite", False) else None
    if value is None or value in ("", "UNLIMITED", "INFINITE", "NOT_SET", "Partition_Limit"):
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < LARGEST:
        raise InputError(field, value, "a number")
    return float(value)
