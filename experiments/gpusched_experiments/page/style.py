"""How the page looks: its colours, from the charts' palette, in light and dark, and its files of style and script."""

from __future__ import annotations

from importlib.resources import files

from gpusched_env.rendering import palette

LIGHT = {
    "ink": palette.INK, "subtle": palette.SUBTLE, "grid": palette.GRID, "stripes": palette.STRIPES,
    "paper": palette.PAPER, "late": palette.LATE, "energy": palette.ENERGY, "tardiness": palette.TARDINESS,
    "link": "#1F5F93", "best": "#E7F2E9", "veil": "rgba(34,38,43,0.45)",
    "lateness": "rgba(200,16,46,0.4)",
}  # fmt: skip
DARK = {
    "ink": "#E6E9ED", "subtle": "#A2ABB5", "grid": "#363D45", "stripes": "#20252B", "paper": "#171A1E",
    "late": "#FF5C72", "energy": "#5C9CCF", "tardiness": "#E0717E", "link": "#86BFEA", "best": "#1D3527",
    "veil": "rgba(10,12,14,0.55)", "lateness": "rgba(255,60,90,0.45)",
}  # fmt: skip


def style_text() -> str:
    """Give the page's style: colours as variables, dark ones where the reader prefers that, light ones on paper."""
    light, dark = _variables(LIGHT), _variables(DARK)
    return (
        f":root{{color-scheme:light dark;{light}}}\n"
        f"@media screen and (prefers-color-scheme:dark){{:root:not(.on-paper){{{dark}}}}}\n{_asset('report.css')}"
    )


def script_text() -> str:
    """Give the page's own script, which draws the figures and sorts the tables."""
    return _asset("report.js")


def _variables(colours: dict[str, str]) -> str:
    return "".join(f"--{name}:{colour};" for name, colour in colours.items())


def _asset(name: str) -> str:
    return files("gpusched_experiments.page").joinpath("assets", name).read_text(encoding="utf-8")
