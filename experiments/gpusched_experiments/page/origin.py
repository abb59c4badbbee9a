"""Where a report comes from: command, seeds, versions, machine."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

SHOWN_SEEDS = 12  # above it only the first and the last are named


def origin_html(provenance: Mapping[str, Any]) -> str:
    """Write the section; empty if nothing is known."""
    rows = [(name, value) for name, value in _rows(provenance) if value]
    if not rows:
        return ""
    lines = "\n".join(f"<dt>{escape(name)}</dt><dd>{value}</dd>" for name, value in rows)
    return f"<h2>Where it comes from</h2>\n<dl>\n{lines}\n</dl>"


def seeds_text(seeds: object) -> str:
    """Write seeds as options take them: `0-19`, or `0,3,5`."""
    if not isinstance(seeds, list | tuple) or not all(isinstance(seed, int) for seed in seeds):
        return str(seeds or "")
    if len(seeds) > 2 and list(seeds) == list(range(seeds[0], seeds[0] + len(seeds))):
        return f"{seeds[0]}-{seeds[-1]}"
    if len(seeds) > SHOWN_SEEDS:
        return f"{len(seeds)} from {min(seeds)} to {max(seeds)}"
    return ",".join(map(str, seeds))


def _rows(provenance: Mapping[str, Any]) -> list[tuple[str, str]]:
    """List what is known, written as HTML."""
    facts = provenance.get("facts") if isinstance(provenance.get("facts"), dict) else {}
    packages = provenance.get("packages") if isinstance(provenance.get("packages"), dict) else {}
    command = str(provenance.get("command") or "")
    seeds = facts.get("seeds", facts.get("seed", "")) if isinstance(facts, dict) else ""
    versions = [f"{name} {version}" for name, version in (packages or {}).items() if version]
    where = [str(provenance.get("platform") or ""), str((facts or {}).get("machine") or "")]
    return [
        ("command", f"<code>{escape(command)}</code>" if command else ""),
        ("seeds", escape(seeds_text(seeds) if seeds != 0 else "0")),
        (
            "versions",
            escape(", ".join([*versions, f"Python {provenance['python']}"] if "python" in provenance else versions)),
        ),
        ("machine", escape(", ".join(part for part in where if part))),
        ("made", escape(str(provenance.get("made_utc") or "").replace("T", " ").replace("+00:00", " UTC"))),
    ]
