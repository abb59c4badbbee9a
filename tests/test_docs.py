"""The documentation: its Python runs and prints what it says, and its tables name everything that there is."""

import ast
import contextlib
import io
import re
from inspect import signature
from pathlib import Path

import gymnasium
import numpy as np
import pytest

import gpusched_agents
import gpusched_baselines
import gpusched_env
import gpusched_experiments
import gpusched_operations
from gpusched_baselines import policy_descriptions
from gpusched_baselines.registry import FAITHFUL, POLICIES
from gpusched_env import ENVIRONMENT_ID, GpuClusterEnv, builtin_scenarios
from gpusched_env.mechanisms.cap.names import FEATURES as CAP_FEATURES
from gpusched_env.mechanisms.prices.names import FEATURES as PRICE_FEATURES
from gpusched_env.observation import CLUSTER_FEATURES, JOB_FEATURES, JOBS_FEATURES, OPTION_FEATURES, QUEUE_FEATURES
from gpusched_env.simulator import kernels

ROOT = Path(__file__).parents[1]
PAGES = (
    "README.md",
    *sorted(
        str(path.relative_to(ROOT))
        for path in (ROOT / "docs").rglob("*.md")
        if path.parts[len(ROOT.parts) + 1] != "results" or path.name == "index.md"
    ),
)
PHILLY = "timestamp,duration,num_gpus\n2017-10-09 07:01:55,66.0,1\n2017-10-09 07:13:03,2951.0,4\n"
NEEDS = {
    "gpusched_agents": ("sb3_contrib", "needs the extra `agents`"),
    "sb3_contrib": ("sb3_contrib", "needs the extra `agents`"),
    "stable_baselines3": ("stable_baselines3", "needs the extra `agents`"),
}
"""What a block needs whose text has the word, and why it is skipped where that is missing."""
BLOCK = re.compile(r"^```python\n(.*?)^```\n(?:\n```text\n(.*?)^```\n)?", re.MULTILINE | re.DOTALL)


def read(page: str) -> str:
    return (ROOT / page).read_text(encoding="utf-8")


def section(page: str, heading: str) -> str:
    """Return what stands between `heading` and the next one."""
    return read(page).split(f"\n{heading}\n")[1].split("\n#")[0]


def python_blocks() -> list[object]:
    """Return every Python block of the pages, with what the page says that it prints ("" for nothing said)."""
    return [
        pytest.param(code, said, id=f"{page}-{number}")
        for page in PAGES
        for number, (code, said) in enumerate(BLOCK.findall(read(page)), 1)
    ]


@pytest.mark.parametrize(("code", "said"), python_blocks())
def test_each_python_block_runs_alone_and_prints_what_the_page_says(code, said, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code = code.replace(
        "learn(20_000, progress_bar=True)", "learn(512)"
    )  # what comes of the whole training is no test of the page
    printed = io.StringIO()
    for word, (package, reason) in NEEDS.items():
        if word in code:
            pytest.importorskip(package, reason=reason, exc_type=ImportError)
    if "philly.csv" in code:
        (tmp_path / "philly.csv").write_text(PHILLY, encoding="utf-8")
    with contextlib.redirect_stdout(printed):
        exec(compile(code, "html_report", "exec", dont_inherit=True), {"__name__": "__main__"})  # noqa: S102 - our pages
    if said:
        assert printed.getvalue().strip() == said.strip()


@pytest.mark.parametrize(
    ("key", "features"),
    [("job", JOB_FEATURES), ("options", OPTION_FEATURES), ("cluster", CLUSTER_FEATURES), ("queue", QUEUE_FEATURES)],
)
def test_the_environments_page_names_every_feature_in_order(key, features):
    rows = re.findall(r"^\| (\d+) \| (.*) \|$", section("docs/environment.md", f"### `{key}`"), re.MULTILINE)
    assert rows == [(str(i), name) for i, name in enumerate(features)]


def test_the_environments_page_names_every_number_key_and_parameter():
    rows = re.findall(r"^\| (\d+) \| (.*) \|$", section("docs/environment.md", "### `jobs`"), re.MULTILINE)
    new = [(str(i), name) for i, name in enumerate(JOBS_FEATURES) if name not in JOB_FEATURES]
    assert rows == new
    text = section("docs/environment.md", "### Prices, the cap and power limits")
    prices, caps = re.findall(r"(?:^\|.*\|\n)+", text, re.MULTILINE)
    rows = re.findall(r"^\| (\d+) \| (.*) \|$", prices, re.MULTILINE)
    hours = [name for name in PRICE_FEATURES if name.startswith("squash(price from")]
    assert rows == [(str(i), name) for i, name in enumerate(PRICE_FEATURES) if name not in hours]
    assert "| 1 to 36 | squash(price from k h to k + 1 h from now / m - 1), published or forecast |" in prices
    assert [name.replace("from 7 h to 8 h", "from k h to k + 1 h") for name in hours][7] in prices
    assert re.findall(r"^\| (\d+) \| (.*) \|$", caps, re.MULTILINE) == [(str(i), n) for i, n in enumerate(CAP_FEATURES)]
    groups = {f"{name}_features": True for name in ("price", "cap", "limit")}
    env = GpuClusterEnv("tiny", job_features=3, **groups)
    sizes = {"C": len(env.configurations), "V": len(env.instance.gpu_types), "K": 3}
    rows = re.findall(r"^\| `(\w+)` \| \((.*),\) \|", section("docs/environment.md", "## Observation"), re.MULTILINE)
    shapes = {key: (int(np.prod([sizes.get(f) or int(f) for f in text.split(" · ")])),) for key, text in rows}
    assert shapes == {key: box.shape for key, box in env.observation_space.spaces.items()}
    env = gymnasium.make(ENVIRONMENT_ID, scenario="tiny")
    _, info = env.reset(seed=0)
    named = set(re.findall(r"`(\w+)`", section("docs/environment.md", "## Info").strip().split("\n\n")[0]))
    assert named == set(info)
    parameters = set(re.findall(r"^\| `(\w+)` \|", section("docs/environment.md", "## Parameters"), re.MULTILINE))
    assert parameters == set(signature(GpuClusterEnv).parameters)


def test_the_pages_name_everything_public():
    page = read("docs/policies.md")
    rows = re.findall(r"^\| (`.*`) \| .* \| (.*) \| (.*) \| (?:job by job|whole rounds) \|", page, re.MULTILINE)
    listed = {name: row[1:] for row in rows for name in re.findall(r"`([^`]+)`", row[0])}
    assert listed == {name: (POLICIES[name].source, POLICIES[name].faithful) for name in policy_descriptions()}
    assert [word for word, meaning in FAITHFUL.items() if f"\n| {word} | {meaning}" in page] == list(FAITHFUL)
    for name in builtin_scenarios():
        assert f"`{name}`" in read("docs/your-cluster.md")
    package = read("docs/reference/gpusched_env.md")
    assert [n for n in gpusched_env.__all__ if f"`{n}`" not in package] == []
    baselines = read("docs/reference/baselines.md")
    assert [n for n in gpusched_baselines.__all__ if f"- {n}\n" not in baselines] == []
    report = read("docs/reference/report.md")
    assert [n for n in gpusched_experiments.__all__ if f"{n}," not in report] == []
    simulator = read("docs/reference/simulator.md")
    assert [n for n in kernels.__all__ if f"- {n}\n" not in simulator and f"`{n}`" not in simulator] == []
    members = re.findall(
        r"^    +members: \[(.*)\]$|^::: [\w.]+\.(\w+)$", read("docs/reference/agents.md"), re.MULTILINE
    )
    agents = {name for listed, single in members for name in (listed.split(", ") if listed else [single])}
    assert set(gpusched_agents.__all__) <= agents


@pytest.mark.parametrize(
    "package", [gpusched_env, gpusched_baselines, gpusched_agents, gpusched_experiments, gpusched_operations]
)
def test_dir_and_so_tab_list_the_public_names_and_not_what_makes_them(package):
    listed = dir(package)
    assert set(package.__all__) <= set(listed)
    assert "__version__" in listed
    assert not {"TYPE_CHECKING", "lazy_names", "Any"} & set(listed)


def exports(package: Path) -> dict[str, str]:
    """Return the module of every name that a package imports and lists in `__all__`."""
    tree = ast.parse(package.read_text(encoding="utf-8"))
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    modules = {alias.asname or alias.name: node.module for node in imports for alias in node.names}
    listed = [ast.literal_eval(node.value) for node in tree.body if isinstance(node, ast.Assign)
              and ast.unparse(node.targets[0]) == "__all__"]  # fmt: skip
    return {name: modules[name] for names in listed for name in names if modules.get(name, "").startswith("gpusched_")}


def source_of(module: str) -> Path:
    path = ROOT.joinpath(*FOLDERS.get(module.partition(".")[0], ()), *module.split("."))
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


def without_docstring(module: str, name: str) -> list[str]:
    """List what has no docstring of a function or class that a module defines or imports: itself, and its methods."""
    path = source_of(module)
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name == name:
            functions = [each for each in node.body if isinstance(each, ast.FunctionDef) and each.name[0] != "_"]
            methods = [each for each in functions if not any(".setter" in ast.unparse(d) for d in each.decorator_list)]
            public = [node, *(methods if isinstance(node, ast.ClassDef) else [])]
            return [f"{module}: {name}: {each.name}" for each in public if not ast.get_docstring(each)]
    further = exports(path).get(name)
    return without_docstring(further, name) if further else []


FOLDERS = {
    f"gpusched_{name}": (name,) for name in ("baselines", "agents", "experiments", "operations", "reproductions")
}


def test_what_packages_export_has_docstrings():
    folders = [source_of(package).parent for package in ("gpusched_env", *FOLDERS)]
    packages = [path for folder in folders for path in sorted(folder.rglob("__init__.py"))]
    found = {(module, name) for package in packages for name, module in exports(package).items()}
    assert {"GpuClusterEnv", "compare", "StsX", "load_policy", "Instance"} <= {name for _, name in found}
    assert [each for module, name in sorted(found) for each in without_docstring(module, name)] == []


def test_what_code_calls_the_sections_of_the_theory_are_sections_of_its_page():
    headings = re.findall(r"^## (\d+)\. ", read("docs/theory.md"), re.MULTILINE)
    cited = {
        number
        for folder in ("gpusched_env", "baselines", "agents", "experiments", "operations")
        for path in (ROOT / folder).rglob("*.py")
        for number in re.findall(r"\(theory, section (\d+)\)", path.read_text(encoding="utf-8"))
    }
    assert cited
    assert cited <= set(headings)


def anchor(heading: str) -> str:
    return re.sub(r"[^\w -]", "", re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower()).strip().replace(" ", "-")


@pytest.mark.parametrize("page", [*PAGES, "SECURITY.md", "CONTRIBUTING.md"])
def test_pages_link_to_files_and_headings_that_are_there(page):
    text = re.sub(r"^```.*?^```", "", read(page), flags=re.MULTILINE | re.DOTALL)
    links = [link for link in re.findall(r"\]\(([^)\s]+)\)", text) if "://" not in link]
    for target, _, name in (link.partition("#") for link in links):
        place = (ROOT / page).parent / target if target else ROOT / page
        assert place.exists(), f"{page}: {target}"
        if name and place.suffix == ".md":
            headings = re.findall(r"^#+ (.*)$", place.read_text(encoding="utf-8"), re.MULTILINE)
            assert re.sub("-+", "-", name) in {re.sub("-+", "-", anchor(h)) for h in headings}, (
                f"{page}: {target}#{name}"
            )


def words_outside_tables_and_code(page: str) -> int:
    text = re.sub(r"^```.*?^```", "", read(page), flags=re.MULTILINE | re.DOTALL)
    return sum(len(line.split()) for line in text.splitlines() if not line.startswith("|"))


def test_the_pages_are_short_enough_to_be_read_and_results_small():
    pages = [page for page in PAGES if page.startswith("docs")]
    assert len(pages) <= 46
    written = [page for page in pages if not page.startswith("docs/results")]
    assert sum(map(words_outside_tables_and_code, written)) <= 30_000
    assert words_outside_tables_and_code("docs/train.md") <= 1_700
    assert len(read("README.md").split()) <= 900
    files = [path for path in (ROOT / "docs/results").rglob("*") if path.is_file()]
    frames = [path for path in files if path.suffix == ".png"]  # tests/test_gallery.py limits their size
    assert {path.parent.name for path in frames} == {"gallery"}
    files = [path for path in files if path not in frames]
    assert {path.suffix for path in files} == {".md", ".csv", ".json", ".svg", ".toml"}
    assert not [path for path in files if path.name == "cells.csv"]
    assert sum(path.stat().st_size for path in files) < 4_500_000
