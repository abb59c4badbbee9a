"""Which modules a module loads, read from sources."""

import ast
from pathlib import Path

import pytest

from gpusched_experiments.report.import_graph import ImportGraph, parse_imports

LAZY = """
from typing import TYPE_CHECKING
from gpusched_env.lazy import lazy_names
if TYPE_CHECKING:
    from gpusched_env.model.job import (  # a comment with a bracket)
        Job,
        Row as Line,
    )
__getattr__ = lazy_names(__name__, __file__)
"""
FILES = {
    "gpusched_env/__init__.py": "",
    "gpusched_env/lazy.py": "from importlib import import_module\nimport_module('gpusched_env.named')\n",
    "gpusched_env/named.py": "",
    "gpusched_env/model/__init__.py": LAZY,
    "gpusched_env/model/job.py": "def late():\n    from gpusched_env import inside\n",
    "gpusched_env/model/unused.py": "",
    "gpusched_env/inside.py": "",
    "gpusched_env/types_only.py": "",
    "gpusched_env/model/tables/times.csv": "1",
    "gpusched_env/model/tables/notes.md": "1",
    "gpusched_baselines/__init__.py": "",
    "gpusched_baselines/rule.py": """
from typing import TYPE_CHECKING
import numpy as np
if TYPE_CHECKING:
    from gpusched_env.types_only import Anything

from gpusched_env.model import Job
from gpusched_reproductions.published import changes
""",
}


def write(folder: Path) -> ImportGraph:
    for name, text in FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return ImportGraph({name: folder / name for name in ("gpusched_env", "gpusched_baselines")})


def test_it_follows_names_of_lazy_packages_functions_and_named_modules_but_not_types(tmp_path):
    found = write(tmp_path).modules_of(["gpusched_baselines.rule:decide", "gpusched_reproductions.published"])
    assert found == {
        "gpusched_baselines",
        "gpusched_baselines.rule",
        "gpusched_env",
        "gpusched_env.inside",
        "gpusched_env.lazy",
        "gpusched_env.model",
        "gpusched_env.model.job",
        "gpusched_env.named",
    }


def test_it_lists_the_modules_of_a_package_at_any_depth_and_those_that_define_its_names(tmp_path):
    graph = write(tmp_path)
    assert "gpusched_env.model.job" in graph.modules_of(["gpusched_env.model:Job"])
    assert "gpusched_env.model.job" not in graph.modules_of(["gpusched_env.model"])
    assert {"gpusched_env", "gpusched_env.model", "gpusched_env.model.job"} <= set(graph.modules_in("gpusched_env"))
    assert graph.modules_in("gpusched_reproductions") == ()


def test_contents_are_sources_and_tables_and_the_same_wherever_the_packages_lie(tmp_path):
    here, there = write(tmp_path / "checkout"), write(tmp_path / "site-packages")
    modules = here.modules_of(["gpusched_baselines.rule"])
    digests = list(here.digests(modules))
    assert digests == list(there.digests(sorted(modules, reverse=True)))
    assert [name for name, _ in digests if "/" in name] == ["gpusched_env.model/tables/times.csv"]


@pytest.mark.parametrize(
    ("source", "same"),
    [
        ('def half(x):\n    """Return half of it."""\n    return x / 2\n', True),
        ("def half(x):\n    # a comment\n    return (\n        x / 2\n    )\n", True),
        ("def half(x):\n    return x / 3\n", False),
        ("def half(y):\n    return y / 2\n", False),
        ('"""Halves."""\n\ndef half(x):\n    return x / 2\n', True),
        ('def half(x):\n    "a" + "b"\n    return x / 2\n', False),
        ("", False),
    ],
)
def test_comments_docstrings_and_line_breaks_of_a_module_do_not_count(tmp_path, source, same):
    files = tmp_path / "half.py", tmp_path / "other.py"
    files[0].write_text("def half(x):\n    return x / 2\n")
    files[1].write_text(source)
    graph = ImportGraph({})
    assert (graph.digest(files[0]) == graph.digest(files[1])) == same


@pytest.mark.parametrize("code", ["class Half:\n{}    part = 2\n", "async def half(x):\n{}    return x / 2\n"])
def test_docstrings_of_classes_and_asynchronous_functions_do_not_count(tmp_path, code):
    files = tmp_path / "half.py", tmp_path / "other.py"
    for file, docstring in zip(files, ("", '    """Half."""\n'), strict=True):
        file.write_text(code.format(docstring))
    graph = ImportGraph({})
    assert graph.digest(files[0]) == graph.digest(files[1])


def imports_by_syntax(source: str) -> set[str]:
    """Return the modules of all imports of our packages that are not for types only."""
    tree = ast.parse(source)
    blocks = [node for node in ast.walk(tree) if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"]
    for_types = {inner for block in blocks for each in block.body for inner in ast.walk(each)}
    nodes = [node for node in ast.walk(tree) if node not in for_types]
    froms = {f"{node.module}:{name.name}" for node in nodes if isinstance(node, ast.ImportFrom) for name in node.names}
    plain = {f"{name.name}:" for node in nodes if isinstance(node, ast.Import) for name in node.names}
    return {each for each in froms | plain if each.startswith("gpusched_")}


@pytest.mark.parametrize("package", ["gpusched_env", "gpusched_experiments.report"])
def test_it_finds_the_imports_that_the_parser_of_python_finds(package):
    graph = ImportGraph.installed()
    for module in graph.modules_in(package):
        source = graph.source(module)
        if "__getattr__" in source:
            continue
        by_name = {f"{name}:" for name, imported in parse_imports(source).executed if not imported}
        found = {f"{name}:{imported}" for name, imported in parse_imports(source).executed} - by_name
        expected = imports_by_syntax(source)
        assert found == {each for each in expected if not each.endswith(":")}, module
        assert by_name >= {each for each in expected if each.endswith(":")}, module
