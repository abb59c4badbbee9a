"""The part of Markdown that result pages use, as HTML: headings, paragraphs, lists, tables, links, code."""

from __future__ import annotations

import re
from html import escape
from itertools import groupby

_INLINE = re.compile(r"`(?P<code>[^`]+)`|\*\*(?P<bold>[^*]+)\*\*|\[(?P<text>[^\]]+)\]\((?P<target>[^)\s]+)\)")
_CELLS = re.compile(r"(?<!\\)\|")
_NUMBER = re.compile(r"[+-]?\d[\d,]*(\.\d+)?(?=%|\s*\[|$)")
_RULE = re.compile(r"^\|?[\s:|-]+\|?$")


LONG = 40  # rows beyond which a table is folded


def markdown_html(text: str) -> str:
    """Write the text as HTML, everything escaped; headings begin at the second level.

    Links to other pages of the project are written as their text: the page stands alone.
    """
    parts = []
    for kind, group in groupby(text.splitlines(), key=_kind):
        lines = list(group)
        if kind == "heading":
            parts += [_heading(line) for line in lines]
        elif kind == "table":
            parts.append(_table(lines))
        elif kind == "list":
            parts.append("<ul>\n" + "\n".join(f"<li>{_inline(line[2:])}</li>" for line in lines) + "\n</ul>")
        elif kind == "text":
            parts.append(f"<p>{'<br>'.join(_inline(line.strip()) for line in lines)}</p>")
    return "\n".join(parts)


def _kind(line: str) -> str:
    if not line.strip():
        return "blank"
    if line.startswith("#"):
        return "heading"
    if line.startswith("|"):
        return "table"
    return "list" if line.startswith(("- ", "* ")) else "text"


def _heading(line: str) -> str:
    marks = len(line) - len(line.lstrip("#"))
    level = min(6, max(2, marks))
    return f"<h{level}>{_inline(line[marks:].strip())}</h{level}>"


def _table(lines: list[str]) -> str:
    rows = [[cell.strip() for cell in _CELLS.split(line.strip().strip("|"))] for line in lines]
    right = [cell.endswith(":") for cell in rows[1]] if len(rows) > 1 and _RULE.match(lines[1]) else []
    head, body = rows[0], rows[2:] if right else rows[1:]
    kinds = [' class="number"' if i < len(right) and right[i] else "" for i in range(len(head))]
    heads = "".join(f'<th scope="col"{kind}>{_inline(cell)}</th>' for cell, kind in zip(head, kinds, strict=True))
    written = "\n".join(f"<tr>{_cells(row, kinds)}</tr>" for row in body)
    table = (
        f'<div class="scroll"><table>\n<thead><tr>{heads}</tr></thead>\n<tbody>\n{written}\n</tbody>\n</table></div>'
    )
    return table if len(body) <= LONG else f"<details><summary>{len(body)} rows</summary>\n{table}\n</details>"


def _cells(row: list[str], kinds: list[str]) -> str:
    padded = [*row, *[""] * (len(kinds) - len(row))]
    return "".join(f"<td{kind}{_value(cell)}>{_inline(cell)}</td>" for cell, kind in zip(padded, kinds, strict=False))


def _value(cell: str) -> str:
    """Give the number that the cell holds, perhaps as a share or with an interval, by which it is sorted."""
    number = _NUMBER.match(cell)
    return f' data-value="{float(number.group().replace(",", ""))!r}"' if number else ""


def _inline(text: str) -> str:
    parts, end = [], 0
    for match in _INLINE.finditer(text):
        parts += [escape(text[end : match.start()]), _marked(match)]
        end = match.end()
    return "".join([*parts, escape(text[end:])]).replace(r"\|", "|")


def _marked(match: re.Match[str]) -> str:
    if match["code"] is not None:
        return f"<code>{escape(match['code'])}</code>"
    if match["bold"] is not None:
        return f"<strong>{escape(match['bold'])}</strong>"
    target = match["target"]
    is_web = target.startswith(("https://", "http://"))
    return f'<a href="{escape(target)}">{escape(match["text"])}</a>' if is_web else escape(match["text"])
