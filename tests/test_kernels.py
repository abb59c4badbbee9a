"""What every kernel keeps to: few parameters, and hidden things only where the state is moved."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = ("gpusched_env", "baselines", "agents", "experiments", "benchmarks")
MOST_PARAMETERS = 8
DRAWS_IT_ITSELF = "baselines/gpusched_baselines/look_ahead/"  # what jobs need in a roll-out, from their distributions
MAY_TAKE_HIDDEN = (
    *(f"gpusched_env/{room}/" for room in ("simulator", "observation", "envs/vector")), DRAWS_IT_ITSELF,
    "baselines/gpusched_baselines/steering_env/run.py",  # an environment: it moves the state, and rewards use needs
)  # fmt: skip


def kernels() -> dict[str, ast.FunctionDef]:
    """Find every kernel, by file and name."""
    found = {}
    for path in (path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py"))):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef) and any("kernel" in ast.unparse(d) for d in node.decorator_list):
                found[f"{path.relative_to(ROOT).as_posix()}::{node.name}"] = node
    return found


def parameters(node: ast.FunctionDef) -> list[ast.arg]:
    return [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]


@pytest.fixture(scope="module")
def every_kernel() -> dict[str, ast.FunctionDef]:
    found = kernels()
    assert len(found) > 150  # else the tests below would show nothing
    return found


def test_no_kernel_has_more_than_eight_parameters(every_kernel):
    long = {name: len(parameters(node)) for name, node in every_kernel.items()}
    assert {name: count for name, count in long.items() if count > MOST_PARAMETERS} == {}


def test_only_kernels_that_move_the_state_or_observe_it_take_what_is_hidden(every_kernel):
    takers = {name for name, node in every_kernel.items() if any(takes_hidden(each) for each in parameters(node))}
    assert takers
    assert {name for name in takers if not name.startswith(MAY_TAKE_HIDDEN)} == set()


def takes_hidden(parameter: ast.arg) -> bool:
    annotation = "" if parameter.annotation is None else ast.unparse(parameter.annotation)
    return parameter.arg == "hidden" or "Hidden" in annotation
