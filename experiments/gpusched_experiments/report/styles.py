"""Colours and marks of policies: in every figure the same."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from gpusched_agents.any_policy import is_agent, known_policies
from gpusched_baselines.registry import POLICIES

if TYPE_CHECKING:
    from collections.abc import Iterable

Style: TypeAlias = tuple[str, str]
"""A colour, and a mark by matplotlib's name."""

# Told apart by people who do not see all colours (after Okabe and Ito), and by their marks.
STYLES: tuple[Style, ...] = (
    ("#0072B2", "o"), ("#D55E00", "s"), ("#009E73", "^"), ("#CC79A7", "D"), ("#E69F00", "v"), ("#56B4E9", "P"),
    ("#6E6E6E", "X"), ("#8C510A", "<"), ("#332288", ">"),
)  # fmt: skip


def styles_of(series: Iterable[str]) -> dict[str, Style]:
    """Give every series its style: policies their own, what has none the first that no other of them has."""
    names = dict.fromkeys(series)
    fixed = {name: STYLES[shipped.style] for name, shipped in POLICIES.items() if shipped.style is not None}
    after_them = [style for style in STYLES if style not in fixed.values()]
    fixed |= dict(zip((name for name in known_policies() if is_agent(name)), after_them, strict=False))
    free = [style for style in STYLES if style not in [fixed[name] for name in names if name in fixed]]
    others = [name for name in names if name not in fixed]
    return fixed | {name: (free or list(STYLES))[i % len(free or STYLES)] for i, name in enumerate(others)}
