"""The one error: field, value and what is allowed in one line, however odd the value."""

import pickle
import re
import tomllib
from pathlib import Path

import numpy as np
import pytest

import gpusched_agents
import gpusched_baselines
import gpusched_env
import gpusched_experiments
import gpusched_operations
from gpusched_env import version
from gpusched_env.errors import SHOWN, InputError
from gpusched_env.provenance import provenance


def test_the_message_says_field_value_of_which_a_long_one_is_shortened_and_what_is_allowed():
    assert str(InputError("jobs.count", "ten", "a whole number")) == "jobs.count = 'ten'; allowed: a whole number"
    value = "a" * 3_000 + "z"
    error = InputError("path", value, "short")
    shown = str(error).removeprefix("path = ").removesuffix("; allowed: short")
    assert (len(shown), shown[:3], shown[-3:]) == (SHOWN, "'aa", "az'")
    assert "a…a" in shown
    assert error.value == value
    assert str(pickle.loads(pickle.dumps(error))) == str(error)  # noqa: S301 - our own bytes
    assert "…" not in str(InputError("x", "a" * (SHOWN - 2), "y"))
    assert "…" in str(InputError("x", "a" * (SHOWN - 1), "y"))


@pytest.mark.parametrize(
    "value",
    ["\0" * 3_000, "a\nb", np.zeros((9, 9)), 10**5_000, "\u2028"],
    ids=["binary", "two lines", "array", "long number", "line separator"],
)
def test_the_message_is_one_short_line_whatever_the_value(value):
    message = str(InputError("x", value, "two\nlines"))
    assert len(message.splitlines()) == 1
    assert len(message) <= SHOWN + 30


@pytest.mark.parametrize(
    ("field", "value", "allowed", "meant"),
    [
        ("policy", "EDF", "one of fifo, edf, sts-x, or agent:NAME", "edf"),
        ("policy", "stsx", "one of fifo, edf, sts-x", "sts-x"),
        ("scenario", "pubished-high", "one of default, published-high, or a .toml file", "published-high"),
        ("cluster.node", 3, "no such setting; there are nodes, gpu_types", "nodes"),
        ("gpu_types[0].nam", "A", "no such setting; there are name, memory_gib", "name"),
    ],
)
def test_it_asks_whether_a_name_much_like_it_was_meant(field, value, allowed, meant):
    error = InputError(field, value, allowed)
    assert str(error).endswith(f"; did you mean {meant}?")
    assert error.allowed == allowed


@pytest.mark.parametrize(
    ("field", "value", "allowed"),
    [
        ("policy", "quicksort", "one of fifo, edf, sts"),
        ("nodes", 3, "one of 1, 2, 4"),
        ("foo", 1, "no such setting; there are nodes, gpu_types"),
        ("name", "edf", "a name other than edf"),
    ],
)
def test_it_asks_nothing_where_no_name_is_near(field, value, allowed):
    assert "did you mean" not in str(InputError(field, value, allowed))


def test_all_packages_have_the_version_of_the_distribution(monkeypatch):
    packages = (gpusched_env, gpusched_baselines, gpusched_agents, gpusched_experiments, gpusched_operations)
    assert {package.__version__ for package in packages} == {version.installed_version()}
    assert gpusched_env.__version__ == (provenance()["packages"]["gpusched-env"] or version.UNKNOWN)
    monkeypatch.setattr(version, "DISTRIBUTION", "gpusched-env-that-is-not-installed")
    assert version.installed_version() == "0+unknown"


def test_the_citation_names_the_version_and_the_licence_of_the_project():
    root = Path(__file__).parents[1]
    project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    citation = (root / "CITATION.cff").read_text()
    assert re.search(r"^version: (.*)$", citation, re.MULTILINE)[1] == project["version"]
    assert re.search(r"^license: (.*)$", citation, re.MULTILINE)[1] == project["license"]
    assert project["authors"] == [{"name": re.search(r"^  - name: (.*)$", citation, re.MULTILINE)[1]}]
