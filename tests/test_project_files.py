"""What is beside the code agrees: workflows, hooks, templates and the release with the Makefile and pyproject.toml."""

import re
import runpy
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[1]
GITHUB = ROOT / ".github"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
PYTHONS = [text.split(" :: ")[-1] for text in PROJECT["classifiers"] if re.search(r" :: 3\.\d+$", text)]
ACTION = re.compile(r"[\w.-]+/[\w.-]+@(v\d+|release/v\d+)")
CHANGELOG = "# Changelog\n\n## [Unreleased]\n\n- B\n\n## [0.2.0] - 2026-11-23\n\n- A\n\n## [0.1.0] - 2026-11-01\n"


def parsed(path: Path) -> Any:
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def workflow(name: str) -> dict[str, Any]:
    return parsed(GITHUB / "workflows" / f"{name}.yml")


def steps(name: str) -> list[dict[str, Any]]:
    return [step for job in workflow(name)["jobs"].values() for step in job.get("steps", ())]


def recipe(target: str) -> list[str]:
    text = (ROOT / "Makefile").read_text(encoding="utf-8")
    return re.search(rf"^{target}:.*\n((?:\t.*\n)+)", text, re.MULTILINE)[1].replace("\t", "").splitlines()


def script(name: str) -> dict[str, Any]:
    return runpy.run_path(str(ROOT / "scripts" / f"{name}.py"))


def test_the_workflow_runs_everything_on_the_oldest_python_and_checks_all_others():
    rows = workflow("check")["jobs"]["linux"]["strategy"]["matrix"]["include"]
    assert f">={PYTHONS[0]}" == PROJECT["requires-python"]
    found = {(row["python"], row["target"]) for row in rows}
    assert found == {(python, "test") for python in PYTHONS} | {(PYTHONS[0], "test-slow")}


@pytest.mark.parametrize("name", ["check", "release"])
def test_what_workflows_run_is_in_the_project(name):
    rows = workflow("check")["jobs"]["linux"]["strategy"]["matrix"]["include"]
    commands = " ; ".join(step["run"] for step in steps(name) if "run" in step)
    targets = set(re.findall(r"make ([\w-]+)", commands)) | {row["target"] for row in rows}
    assert all(recipe(target) for target in targets)
    scripts = re.findall(r"scripts/\w+\.py", commands)
    assert scripts
    assert [path for path in scripts if not (ROOT / path).is_file()] == []
    extras = {extra for text in re.findall(r"\.\[([\w,]+)\]", commands) for extra in text.split(",")}
    assert extras <= set(PROJECT["optional-dependencies"])


@pytest.mark.parametrize("name", ["check", "release"])
def test_workflows_read_only_and_take_actions_of_a_major_version(name):
    assert workflow(name)["permissions"] == {"contents": "read"}
    assert "concurrency" in workflow(name)
    actions = [step["uses"] for step in steps(name) if "uses" in step]
    assert actions
    assert [action for action in actions if not ACTION.fullmatch(action)] == []
    called = [job["uses"] for job in workflow(name)["jobs"].values() if "uses" in job]
    assert [path for path in called if not (ROOT / path).is_file()] == []


def test_both_workflows_take_the_same_version_of_an_action():
    versions = {
        tuple(step["uses"].split("@")) for name in ("check", "release") for step in steps(name) if "uses" in step
    }
    assert len({action for action, _ in versions}) == len(versions)


def test_the_cache_of_kernels_covers_every_folder_that_has_some():
    caching = next(step["with"] for step in steps("check") if step.get("uses", "").startswith("actions/cache@"))
    cached = {path.partition("/")[0] for path in caching["path"].split()}
    having = {
        path.relative_to(ROOT).parts[0]
        for folder in ROOT.iterdir()
        if folder.is_dir() and not folder.name.startswith(".")
        for path in folder.rglob("*.py")
        if re.search(r"^@(?:\w+_)?kernel$", path.read_text(encoding="utf-8"), re.MULTILINE)
    }
    assert "gpusched_env" in having
    assert having <= cached | {"build", "site"}
    assert [folder for folder in cached if not (ROOT / folder).is_dir()] == []


def test_a_release_is_checked_before_it_is_built_and_published_with_a_persons_consent():
    jobs = workflow("release")["jobs"]
    publish = jobs.pop("publish")
    assert publish["permissions"] == {"id-token": "write"}
    assert [job for job in jobs.values() if "permissions" in job or "environment" in job] == []
    assert set(publish["needs"]) == set(jobs)
    assert jobs["test"]["uses"] == "./.github/workflows/check.yml"
    assert "workflow_call" in workflow("check")[True]  # YAML reads the word `on` so
    variable = re.fullmatch(r"vars\.(\w+) == 'yes'", publish["if"])[1]
    steps_of_a_person = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").split("\n## Release\n")[1]
    for name in (f"`{variable}`", f"`{publish['environment']}`", "`release.yml`", f"`{PROJECT['name']}`"):
        assert name in steps_of_a_person
    build = [step.get("run") or step["uses"] for step in workflow("release")["jobs"]["build"]["steps"]]
    order = [
        next(place for place, text in enumerate(build) if part in text)
        for part in ("check_release.py", "python -m build", "check_wheel.py dist/", "upload-artifact")
    ]
    assert order == sorted(order)
    assert workflow("release")[True] == {"push": {"tags": ["v*"]}}


@pytest.mark.parametrize(
    ("tag", "version", "changelog", "parts"),
    [
        ("v0.2.0", "0.2.0", CHANGELOG, []),
        ("v0.2.0", "0.3.0", CHANGELOG, ["the tag is v0.2.0", "no section"]),
        ("0.2.0", "0.2.0", CHANGELOG, ["whose tag is v0.2.0"]),
        ("v0.1.0", "0.1.0", CHANGELOG, ["says nothing below"]),
        ("v0.2.0", "0.2.0", CHANGELOG.replace(" - 2026-11-23", ""), ["no section"]),
        ("v0.2.0", "0.2.0", CHANGELOG.replace("[0.2.0]", "[Unreleased]"), ["no section"]),
        ("v0.2.0", "0.2.0", CHANGELOG.replace("0.2.0", "0x2.0"), ["no section"]),
    ],
)
def test_a_tag_is_released_if_it_is_the_version_and_the_changelog_has_it(tag, version, changelog, parts):
    found = script("check_release")["faults"](tag, version, changelog)
    assert len(found) == len(parts)
    assert all(part in fault for part, fault in zip(parts, found, strict=True))


def test_the_scripts_refuse_a_tag_of_another_version_and_two_wheels(capsys):
    main = script("check_release")["main"]
    assert main(["v999.0"]) == 1
    assert f"has version {PROJECT['version']}" in capsys.readouterr().err
    assert main([]) == 2
    assert "usage" in capsys.readouterr().err
    assert script("check_wheel")["main"](["a.whl", "b.whl"]) == 2
    assert "usage" in capsys.readouterr().err


def test_the_local_hooks_are_the_commands_of_make_check_and_others_have_a_version():
    local = next(each for each in parsed(ROOT / ".pre-commit-config.yaml")["repos"] if each["repo"] == "local")
    commands = [hook["entry"].replace(".venv/bin", "$(BIN)") for hook in local["hooks"]]
    assert sorted(commands) == sorted(recipe("check"))
    assert all(hook["language"] == "system" and hook["pass_filenames"] is False for hook in local["hooks"])
    others = [each for each in parsed(ROOT / ".pre-commit-config.yaml")["repos"] if each["repo"] != "local"]
    assert all(re.fullmatch(r"v\d+\.\d+\.\d+", each["rev"]) for each in others)
    hooks = {hook["id"]: hook.get("args") for each in others for hook in each["hooks"]}
    assert set(hooks) == {"end-of-file-fixer", "check-toml", "check-yaml", "check-added-large-files"}
    assert hooks["check-added-large-files"] == ["--maxkb=200"]


@pytest.mark.parametrize("name", ["bug", "feature"])
def test_the_forms_of_issues_are_such_as_github_takes(name):
    form = parsed(GITHUB / "ISSUE_TEMPLATE" / f"{name}.yml")
    assert set(form) <= {"name", "description", "title", "labels", "body"}
    assert form["name"]
    assert form["description"]
    assert {item["type"] for item in form["body"]} <= {"markdown", "textarea", "input", "dropdown", "checkboxes"}
    names = [item["id"] for item in form["body"]]
    assert len(set(names)) == len(names)
    options = [item["attributes"]["options"] for item in form["body"] if item["type"] == "dropdown"]
    assert all(isinstance(option, str) for each in options for option in each)  # `No` without quotes is false


def test_the_badges_name_the_oldest_gymnasium_that_is_taken():
    oldest = next(text for text in PROJECT["dependencies"] if text.startswith("gymnasium")).partition(">=")[2]
    for page in ("README.md", "docs/assets/gymnasium.svg"):
        text = (ROOT / page).read_text(encoding="utf-8")
        assert set(re.findall(r"(?:Gymnasium |>)≥ (\d[\d.]*)", text)) == {oldest}, page
    listing = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").split("\n## Listing\n")[1]
    assert re.search(r"badge/Gymnasium-%3E%3D([\d.]+)-blue", listing)[1] == oldest


PACKAGES = {"gpusched_env": "gpusched_env"} | {
    f"gpusched_{name}": f"{name}/gpusched_{name}"
    for name in ("baselines", "agents", "experiments", "operations", "reproductions")
}


def rooms(package: str) -> set[str]:
    """Return the packages and modules directly in a package, without those that the contracts make optional."""
    paths = (ROOT / PACKAGES[package]).iterdir()
    names = {path.stem for path in paths if path.suffix == ".py" or (path / "__init__.py").is_file()}
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"][
        "contracts"
    ]
    layers = [layer for each in contracts if each.get("containers") == [package] for layer in each["layers"]]
    return names - {"__init__", "__main__"} - set(re.findall(r"\((\w+)\)", " ".join(layers)))


@pytest.mark.parametrize("package", PACKAGES)
def test_the_page_on_the_architecture_names_every_room_and_no_other(package):
    page = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
    section = re.search(rf"^## {package}\n(.*?)^## ", page, re.MULTILINE | re.DOTALL)[1]
    assert rooms(package) - set(re.findall(r"`(\w+)`", section)) == set()
    begins = re.findall(r"^(?:- \*\*|\| )((?:`\w+`(?:, )?)+)", section, re.MULTILINE)
    assert set(re.findall(r"`(\w+)`", " ".join(begins))) - rooms(package) == set()
