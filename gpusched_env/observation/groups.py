"""Groups of features that are not in observations unless they are asked for: mechanisms write them."""

from __future__ import annotations

from importlib import import_module
from zlib import crc32

from gpusched_env.parts import part_of

MECHANISM_OF: dict[str, str] = import_module("gpusched_env.mechanisms").GROUPS
"""The mechanism that writes each group, by the name of its part of an observation (`hooks.write_group`)."""

GROUPS = tuple(MECHANISM_OF)


def features_of(group: str) -> tuple[str, ...]:
    """Return the names of the features of a group: one of `GROUPS`, or a mechanism of another package.

    `limits` has a row of them for each configuration.
    """
    own = MECHANISM_OF.get(group)
    return tuple((part_of(group, "features") if own is None else part_of(own, "names")).FEATURES)


def group_number(group: str) -> int:
    """Return the number by which `hooks.write_group` names a group: its place in `GROUPS`, or one of its name."""
    return GROUPS.index(group) if group in GROUPS else len(GROUPS) + crc32(group.encode())
