"""One version for all five packages, and for the command."""

import re
import tomllib
from pathlib import Path

import gpusched_agents
import gpusched_baselines
import gpusched_env
import gpusched_experiments
import gpusched_operations
from gpusched_env import version
from gpusched_env.provenance import provenance


def test_all_packages_have_the_version_of_the_distribution():
    packages = (gpusched_env, gpusched_baselines, gpusched_agents, gpusched_experiments, gpusched_operations)
    assert {package.__version__ for package in packages} == {version.installed_version()}
    assert gpusched_env.__version__ == (provenance()["packages"]["gpusched-env"] or version.UNKNOWN)


def test_sources_that_are_not_installed_have_a_version_that_says_so(monkeypatch):
    monkeypatch.setattr(version, "DISTRIBUTION", "gpusched-env-that-is-not-installed")
    assert version.installed_version() == "0+unknown"


def test_the_citation_names_the_version_and_the_licence_of_the_project():
    root = Path(__file__).parents[1]
    project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    citation = (root / "CITATION.cff").read_text()
    assert re.search(r"^version: (.*)$", citation, re.MULTILINE)[1] == project["version"]
    assert re.search(r"^license: (.*)$", citation, re.MULTILINE)[1] == project["license"]
    assert project["authors"] == [{"name": re.search(r"^  - name: (.*)$", citation, re.MULTILINE)[1]}]
