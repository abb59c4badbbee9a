"""Check that a tag may be released: it names the version of pyproject.toml, and the changelog has that section.

python scripts/check_release.py v0.1.0
"""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def main(arguments: list[str]) -> int:
    """Print what is wrong with the tag; return 0 if nothing is, 1 if something is, 2 if no tag is given."""
    if len(arguments) != 1:
        print("usage: python scripts/check_release.py TAG", file=sys.stderr)
        return 2
    version = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    wrong = faults(arguments[0], version, (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"))
    for fault in wrong:
        print(f"check_release: FAILED: {fault}", file=sys.stderr)
    if not wrong:
        print(f"check_release: {arguments[0]} may be released")
    return 1 if wrong else 0


def faults(tag: str, version: str, changelog: str) -> list[str]:
    """Return what is wrong with a tag, a sentence each; nothing if it may be released.

    Args:
        tag: The tag, which should be `v` and the version.
        version: The version of pyproject.toml.
        changelog: The text of CHANGELOG.md, in the format of Keep a Changelog: a version has a section with a heading
            such as `## [0.1.0] - 2026-11-23`, and at least a line below it.
    """
    wrong = []
    if tag != f"v{version}":
        wrong.append(f"the tag is {tag}, and pyproject.toml has version {version}, whose tag is v{version}")
    heading = rf"^## \[{re.escape(version)}\] - \d{{4}}-\d{{2}}-\d{{2}}$"
    section = re.search(rf"{heading}\n(.*?)(?=^## |\Z)", changelog, re.MULTILINE | re.DOTALL)
    if section is None:
        wrong.append(f"CHANGELOG.md has no section with the heading `## [{version}] - YEAR-MONTH-DAY`")
    elif not section[1].strip():
        wrong.append(f"CHANGELOG.md says nothing below the heading of {version}")
    return wrong


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
