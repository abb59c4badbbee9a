import ast
import subprocess
import sys
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path

from agent_folders import description, weights
from gpusched_agents.files.storage import save_agent
from gpusched_env.child_processes import usable_cores
from gpusched_experiments.report.code_version import agent_version, code_version, commit, machine

module = sys.modules[code_version.__wrapped__.__module__]
READS = {
    f"gpusched_agents.{name}"
    for name in ("spec", "files.description", "files.find_agent", "files.storage", "training.config")
}
"""What reads agents: that they are read as they were written is tested elsewhere."""


def version_of(root, monkeypatch):
    monkeypatch.setattr(module, "files", lambda package: root / package)
    return code_version.__wrapped__()


def write_places(folder: Path) -> list[Path]:
    """Write a source at every place that decides a run; give them."""
    paths = [folder / package / path for package, path in module._DECIDES]
    sources = [path if path.suffix == ".py" else path / "one.py" for path in paths]
    for source in sources:
        source.parent.mkdir(parents=True, exist_ok=True)
        source.write_text("one")
    return sources


def test_the_version_follows_every_source_and_table_that_decides_a_run(tmp_path, monkeypatch):
    sources = write_places(tmp_path)
    versions = {version_of(tmp_path, monkeypatch)}
    assert versions == {version_of(tmp_path, monkeypatch)}
    (tmp_path / "gpusched_experiments" / "report" / "table.py").write_text("reports do not decide")
    (tmp_path / "gpusched_env" / "model" / "notes.md").write_text("nor do notes")
    assert versions == {version_of(tmp_path, monkeypatch)}
    table = tmp_path / "gpusched_env/workload/tables/data/times.csv"
    table.parent.mkdir(parents=True)
    for path in (*sources, table, tmp_path / "gpusched_env/simulator/new.py"):
        path.write_text("two")
        versions.add(version_of(tmp_path, monkeypatch))
    assert len(versions) == len(sources) + 3
    assert {"named_arrays.py", "workloads.py", "cell.py", "run_summary.py"} <= {path.name for path in sources}


def test_where_nothing_is_reproduced_the_rest_decides(tmp_path, monkeypatch):
    write_places(tmp_path)
    monkeypatch.setattr(module, "find_spec", lambda name: None if name == "gpusched_reproductions" else name)
    before = version_of(tmp_path, monkeypatch)
    (tmp_path / "gpusched_reproductions/published/workloads.py").write_text("two")
    assert version_of(tmp_path, monkeypatch) == before


def test_every_place_that_decides_a_run_is_there():
    for package, path in (*module._DECIDES, *module._DECIDES_FOR_AGENTS):
        place = files(package).joinpath(path) if path else files(package)
        assert place.is_dir() or place.is_file(), f"{package}/{path}"
        assert list(module._contents(place, path)), f"{package}/{path} holds no source"


def test_a_source_that_is_renamed_is_other_code(tmp_path, monkeypatch):
    write_places(tmp_path)
    (tmp_path / "gpusched_baselines/a.py").write_text("same")
    before = version_of(tmp_path, monkeypatch)
    (tmp_path / "gpusched_baselines/a.py").rename(tmp_path / "gpusched_baselines/b.py")
    assert version_of(tmp_path, monkeypatch) != before


def test_the_present_code_has_a_version_and_the_machine_a_name():
    assert len(code_version()) == 16
    assert code_version() == code_version.__wrapped__()
    assert f"{usable_cores()} cores" in machine()


def test_the_version_of_an_agent_follows_its_files_and_what_applies_them_but_not_how_agents_are_trained(
    tmp_path, monkeypatch
):
    places = (f"{package}/{path}" for package, path in module._DECIDES_FOR_AGENTS)
    for name in ("gpusched_env/observation/features.py", *(place for place in places if place.endswith(".py"))):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("one")
    save_agent(tmp_path / "mine", description(), weights())
    monkeypatch.setattr(module, "files", lambda package: tmp_path / package)
    name = f"agent:{tmp_path / 'mine'}"
    versions = {agent_version(name)}
    for unused in ("training.py", "study.py"):
        (tmp_path / "gpusched_agents" / unused).write_text("how it learns")
        assert versions == {agent_version(name)}
    for used in ("gpusched_env/observation/features.py", "gpusched_agents/network/actors.py"):
        (tmp_path / used).write_text("two")
        versions.add(agent_version(name))
    save_agent(tmp_path / "mine", description(), weights(1))
    versions.add(agent_version(name))
    save_agent(tmp_path / "mine", description(algorithm="another"), weights(1))
    versions.add(agent_version(name))
    assert len(versions) == 5


def test_every_module_that_an_agents_choice_needs_is_in_its_version():
    found, wanted = set(), {"gpusched_agents.policy"}
    while wanted:
        name = wanted.pop()
        found.add(name)
        tree = ast.parse(Path(find_spec(name).origin).read_text(encoding="utf-8"))
        froms = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
        wanted |= {each for each in froms if each.startswith("gpusched_agents.")} - found - READS
    files = {f"{name.replace('.', '/')}.py" for name in found}
    assert files <= {f"{package}/{path}" for package, path in module._DECIDES_FOR_AGENTS}


def test_the_commit_is_that_of_the_checkout_and_says_whether_sources_differ(tmp_path, monkeypatch):
    def git(*arguments: str) -> str:
        made = ["git", "-c", "user.name=a", "-c", "user.email=a@b", *arguments]
        return subprocess.run(made, cwd=tmp_path, capture_output=True, text=True, check=True).stdout.strip()

    source = tmp_path / "experiments" / "code.py"
    source.parent.mkdir()
    source.write_text("1\n")
    git("init", "-q")
    git("add", "-A")
    git("commit", "-qm", "first")
    monkeypatch.setattr(module, "__file__", str(source))
    head = git("rev-parse", "HEAD")
    assert commit.__wrapped__() == head
    source.write_text("2\n")
    assert commit.__wrapped__() == head + "+"
    monkeypatch.setattr(module, "__file__", str(tmp_path.parent / "code.py"))
    assert commit.__wrapped__() is None
