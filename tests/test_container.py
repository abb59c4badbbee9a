"""The container of the service: tests have no engine that builds it, so its instructions are checked one by one."""

import fnmatch
import json
import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
INSTRUCTIONS = [
    line.split(maxsplit=1)
    for line in (ROOT / "Containerfile").read_text(encoding="utf-8").splitlines()
    if line and not line.startswith("#")
]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def all_of(name: str) -> list[str]:
    return [rest for instruction, rest in INSTRUCTIONS if instruction == name]


def copied() -> list[str]:
    return [source for rest in all_of("COPY") for source in rest.split()[1:-1]]


def test_every_instruction_is_one():
    assert {name for name, _ in INSTRUCTIONS} <= {
        "FROM", "RUN", "USER", "WORKDIR", "ENV", "COPY", "EXPOSE", "HEALTHCHECK", "ENTRYPOINT", "CMD",
    }  # fmt: skip
    assert INSTRUCTIONS[0][0] == "FROM"
    python = re.fullmatch(r"docker\.io/library/python:(3\.\d+)-slim", INSTRUCTIONS[0][1])
    assert python
    assert f"Programming Language :: Python :: {python[1]}" in PROJECT["project"]["classifiers"]


def test_what_is_copied_is_there_is_not_ignored_and_is_what_the_wheel_is_built_of():
    lines = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    kept = {line[1:] for line in lines if line.startswith("!")}
    assert set(copied()) == kept
    assert [name for name in kept if not (ROOT / name).exists()] == []
    wheel = PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]
    assert {package.split("/")[0] for package in wheel} <= kept
    assert {PROJECT["project"]["readme"], *PROJECT["project"]["license-files"]} <= kept
    assert fnmatch.fnmatch("gpusched_env/model/__pycache__", lines[-1])


def test_it_installs_extras_that_there_are_and_compiles_what_it_serves():
    run = " ; ".join(all_of("RUN"))
    (extras,) = re.findall(r'"\.\[(.+?)\]"', run)
    assert set(extras.split(",")) <= set(PROJECT["project"]["optional-dependencies"])
    assert "gpusched" in PROJECT["project"]["scripts"]
    (compiled,) = re.findall(r"gpusched serve --compile-only --policies (\S+)", run)
    assert json.loads(all_of("CMD")[0]) == ["--policies", compiled]
    assert all_of("USER") == ["gpusched"]  # not root
