"""Public names, pages and help texts use the terms of the glossary, which lists the words that are not used."""

import ast
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from gpusched_baselines.registry import policy_descriptions
from gpusched_env import load_scenario
from gpusched_env.workload import load_track, scenario_toml, track_toml
from gpusched_experiments.cli.app import app, command_places

ROOT = Path(__file__).parents[1]
GLOSSARY = (ROOT / "docs/glossary.md").read_text(encoding="utf-8")
PACKAGES = ("gpusched_env", "baselines", "agents", "experiments", "operations", "reproductions", "examples")
MODULES = sorted({path for package in PACKAGES for path in (ROOT / package).rglob("*.py")})
PAGES = sorted(
    {ROOT / "README.md", *(ROOT / "docs").rglob("*.md")}
    - {ROOT / "docs/glossary.md"}
    - set((ROOT / "docs/results").rglob("table.md"))
)


def not_used() -> set[str]:
    table = GLOSSARY.split("## Words that are not used")[1]
    rows = re.findall(r"^\| ([^|]+) \| [^|]+ \|$", table, re.MULTILINE)
    return {word.strip() for row in rows[1:] for word in row.split(",")}


WORDS = not_used()
PLAIN = re.compile(
    rf"(?<![\w-])({'|'.join(map(re.escape, sorted(WORDS, key=len, reverse=True)))})s?(?![\w-])", re.IGNORECASE
)


def parts(name: str) -> set[str]:
    return {part.lower() for part in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", name)}


def public_names(module: Path) -> set[str]:
    """Collect what a module has without an underscore: functions, classes, their members and arguments, constants."""
    found = set(module.relative_to(ROOT).with_suffix("").parts)

    def visit(node: ast.AST) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.FunctionDef | ast.ClassDef) and not child.name.startswith("_"):
                found.add(child.name)
                if isinstance(child, ast.FunctionDef):
                    found.update(argument.arg for argument in (*child.args.args, *child.args.kwonlyargs))
                else:
                    visit(child)
            elif isinstance(child, ast.Assign | ast.AnnAssign):
                targets = child.targets if isinstance(child, ast.Assign) else [child.target]
                names = {part.id for target in targets for part in ast.walk(target) if isinstance(part, ast.Name)}
                found.update(name for name in names if not name.startswith("_"))

    visit(ast.parse(module.read_text(encoding="utf-8")))
    return found


def test_the_list_is_read():
    assert {"company", "pace", "knob", "wake-up"} <= WORDS
    assert all(map(PLAIN.search, ("beside company", "Knobs", "a wake-up")))
    assert not PLAIN.search("accompany the space-lattice")
    assert ("steering" in parts("GpuSteeringEnv"), "pace" in parts("least_pace")) == (True, True)


def test_no_public_name_has_such_a_word_or_is_given_twice():
    singular = {word.removesuffix("s") for word in WORDS} | WORDS
    found = {
        f"{module.relative_to(ROOT)}: {name}"
        for module in MODULES
        for name in public_names(module)
        if {part.removesuffix("s") for part in parts(name)} & singular or name in WORDS
    }
    assert found == set()
    places: dict[str, set[Path]] = {}
    for module in MODULES:
        for node in ast.parse(module.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places.setdefault(node.name, set()).add(module)
    assert {name: found for name, found in places.items() if len(found) > 1} == {}


def test_no_sentence_of_the_sources_has_such_a_word():
    found = {(str(module.relative_to(ROOT)), *PLAIN.findall(module.read_text(encoding="utf-8"))) for module in MODULES}
    assert {words for words in found if len(words) > 1} == set()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_no_page_has_such_a_word(page):
    text = page.read_text(encoding="utf-8")
    assert [text[max(0, m.start() - 40) : m.end() + 20] for m in PLAIN.finditer(text)] == []


@pytest.mark.parametrize("command", command_places())
def test_no_help_text_has_such_a_word(command):
    text = CliRunner().invoke(app, [command, "--help"], env={"COLUMNS": "200"}).output
    assert PLAIN.findall(text) == []


@pytest.mark.parametrize("kind", ["scenarios", "tracks"])
def test_no_scenario_file_has_such_a_word(kind):
    for path in (ROOT / "gpusched_env/workload" / kind).glob("*.toml"):
        assert PLAIN.findall(path.read_text(encoding="utf-8")) == [], path


def test_no_description_of_a_policy_or_setting_has_such_a_word():
    texts = [*policy_descriptions().values(), scenario_toml(load_scenario("default")), track_toml(load_track("busy"))]
    assert [PLAIN.findall(text) for text in texts if PLAIN.search(text)] == []


def documented(docstring: str, heading: str) -> list[str]:
    found = re.search(rf"^{heading}:\n((?:    .*\n?|\n)+)", docstring, re.MULTILINE)
    listed = re.findall(r"^    (\w+(?:, \w+)*): ", found[1], re.MULTILINE) if found else []
    return [name for names in listed for name in names.split(", ")]


def test_docstrings_name_the_arguments_and_attributes_that_there_are():
    wrong = []
    for module in MODULES:
        for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef):
                have, heading = {part.arg for part in ast.walk(node.args) if isinstance(part, ast.arg)}, "Args"
            elif isinstance(node, ast.ClassDef):
                members = [
                    part for part in ast.walk(node) if isinstance(part, ast.Attribute | ast.FunctionDef | ast.arg)
                ]
                have = {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}
                have |= {getattr(part, "attr", getattr(part, "name", getattr(part, "arg", ""))) for part in members}
                heading = "Attributes"
            else:
                continue
            names = documented(ast.get_docstring(node) or "", heading)
            wrong += [f"{module.relative_to(ROOT)}: {node.name}: {name}" for name in names if have and name not in have]
    assert wrong == []
